# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What this package must know about a family of vision-language models: one subclass, one file per family."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class ImageEncoding:
    """
    One image as the vision encoder left it.

    :param grid: Patch grid `(t, h, w)`, shape `(3,)`, int64.
    :param tokens: Visual tokens after the merger, shape `(M, d)`.
    :param deepstack: Features added at the outputs of the first decoder layers, each of shape `(M, d)`.
    :param attention: Attention that each token received in the encoder's last layer from the patches of this image,
        averaged over heads and over the patches merged into the token, shape `(M,)`, float32; `None` if not asked for.
    """

    grid: Tensor
    tokens: Tensor
    deepstack: tuple[Tensor, ...]
    attention: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        optional = () if self.attention is None else (self.attention,)
        return sum(tensor.nbytes for tensor in (self.grid, self.tokens, *self.deepstack, *optional))


class ModelFamily(ABC):
    """Everything that differs between model families; holds no state."""

    @abstractmethod
    def decoder(self, model: nn.Module) -> nn.Module:
        """The module whose forward runs all decoder layers on `inputs_embeds`."""

    @abstractmethod
    def layers(self, model: nn.Module) -> nn.ModuleList:
        """The decoder layers."""

    @abstractmethod
    def attention(self, layer: nn.Module) -> nn.Module:
        """A decoder layer's attention module, called with `hidden_states` and `position_embeddings`."""

    @abstractmethod
    def query_source(self, attention: nn.Module) -> nn.Module:
        """The sub-module whose output is the layer's queries before rotation, shape `(1, S, heads, head_dim)`."""

    @abstractmethod
    def key_source(self, attention: nn.Module) -> nn.Module:
        """The same for keys, `(1, S, kv_heads, head_dim)`; it runs after `query_source`."""

    @abstractmethod
    def rotate(self, heads: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
        """
        Apply the rotary embedding as the attention module does it.

        :param heads: Queries or keys, shape `(R, heads, head_dim)`.
        :param rotary: Cosines and sines of those rows, each `(R, head_dim)`.
        :returns: Shape `(heads, R, head_dim)`.
        """

    @abstractmethod
    def scaling(self, attention: nn.Module) -> float:
        """The factor on the product of queries and keys."""

    @abstractmethod
    def take_deepstack(self, kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
        """
        Remove the visual features that decoder layers add at their outputs from the decoder's arguments.

        :param kwargs: The decoder's keyword arguments; changed in place so that the decoder adds nothing itself.
        :returns: One tensor per injecting layer, starting at layer 0, rows in the order of the visual tokens.
        """

    @abstractmethod
    def first_complete_layer(self, model: nn.Module) -> int:
        """The first layer whose output holds complete visual tokens: that of the last DeepStack injection, or 0."""

    @abstractmethod
    def token_grid(self, image_processor: Any, size: Mapping[str, int], width: int, height: int) -> tuple[int, int]:
        """
        Rows and columns of visual tokens that an image becomes.

        :param image_processor: The model's image processor.
        :param size: The range of pixels it is called with.
        :param width: The image's width in pixels.
        :param height: Its height.
        """

    @abstractmethod
    def encode(
        self, model: nn.Module, pixel_values: Tensor, grids: Tensor, *, attention: bool = False
    ) -> list[ImageEncoding]:
        """
        Run the vision encoder.

        :param pixel_values: Patches of all images, as the image processor gives them.
        :param grids: One patch grid per image, shape `(n, 3)`.
        :param attention: Whether the encodings shall hold the attention that tokens received.
        """

    @abstractmethod
    def vision_inputs(self, encodings: Sequence[ImageEncoding], token_types: Tensor) -> dict[str, Any]:
        """
        The model arguments that pass precomputed vision outputs in.

        :param encodings: All images of the prompt, in prompt order.
        :param token_types: 1 for visual tokens, 0 for text, shape `(1, S)`.
        """
