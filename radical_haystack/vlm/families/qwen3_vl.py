# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Qwen3-VL (dense), as transformers implements it: `Qwen3VLForConditionalGeneration`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize
from transformers.models.qwen3_vl.modeling_qwen3_vl import (
    BaseModelOutputWithDeepstackFeatures,
    apply_rotary_pos_emb,
    apply_rotary_pos_emb_vision,
)

from radical_haystack.vlm.attention import received_attention
from radical_haystack.vlm.families.base import ImageEncoding, ModelFamily


class Qwen3VLFamily(ModelFamily):
    """
    Qwen3-VL: M-RoPE, normalised queries and keys, and DeepStack features added after the first decoder layers.

    Paper: https://arxiv.org/abs/2511.21631
    """

    def decoder(self, model: nn.Module) -> nn.Module:
        """See `ModelFamily.decoder`."""
        return model.get_submodule("model.language_model")

    def layers(self, model: nn.Module) -> nn.ModuleList:
        """See `ModelFamily.layers`."""
        layers = model.get_submodule("model.language_model.layers")
        assert isinstance(layers, nn.ModuleList)
        return layers

    def attention(self, layer: nn.Module) -> nn.Module:
        """See `ModelFamily.attention`."""
        return layer.get_submodule("self_attn")

    def query_source(self, attention: nn.Module) -> nn.Module:
        """See `ModelFamily.query_source`."""
        return attention.get_submodule("q_norm")

    def key_source(self, attention: nn.Module) -> nn.Module:
        """See `ModelFamily.key_source`."""
        return attention.get_submodule("k_norm")

    def rotate(self, heads: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
        """See `ModelFamily.rotate`."""
        heads = heads.transpose(0, 1)
        return apply_rotary_pos_emb(heads, heads[:0], *rotary, unsqueeze_dim=0)[0]

    def scaling(self, attention: nn.Module) -> float:
        """See `ModelFamily.scaling`."""
        module: Any = attention
        return float(module.scaling)

    def take_deepstack(self, kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
        """See `ModelFamily.take_deepstack`."""
        kwargs.pop("visual_pos_masks", None)
        return tuple(kwargs.pop("deepstack_visual_embeds", None) or ())

    def first_complete_layer(self, model: nn.Module) -> int:
        """See `ModelFamily.first_complete_layer`."""
        config: Any = model.config
        return max(len(config.vision_config.deepstack_visual_indexes) - 1, 0)

    def token_grid(self, image_processor: Any, size: Mapping[str, int], width: int, height: int) -> tuple[int, int]:
        """See `ModelFamily.token_grid`."""
        factor = image_processor.patch_size * image_processor.merge_size
        limits = {"min_pixels": size["shortest_edge"], "max_pixels": size["longest_edge"]}
        rows, columns = smart_resize(height, width, factor, **limits)
        return rows // factor, columns // factor

    def encode(
        self, model: nn.Module, pixel_values: Tensor, grids: Tensor, *, attention: bool = False
    ) -> list[ImageEncoding]:
        """See `ModelFamily.encode`."""
        vision_language: Any = model
        with _last_attention(model) if attention else nullcontext() as seen:
            output = vision_language.get_image_features(pixel_values, grids, return_dict=True)
        layers = list(zip(*output.deepstack_features, strict=True)) or [()] * len(grids)
        received = [None] * len(grids) if seen is None else seen.received(grids)
        return [
            # Clones, because the split tensors are views that would keep the whole batch in memory.
            ImageEncoding(grid.clone(), tokens.clone(), tuple(feature.clone() for feature in features), scores)
            for grid, tokens, features, scores in zip(grids, output.pooler_output, layers, received, strict=True)
        ]

    def vision_inputs(self, encodings: Sequence[ImageEncoding], token_types: Tensor) -> dict[str, Any]:
        """See `ModelFamily.vision_inputs`."""
        # The model splits both fields by image, although their annotations speak of whole tensors.
        by_image: dict[str, Any] = {
            "pooler_output": tuple(encoding.tokens for encoding in encodings),
            "deepstack_features": list(zip(*(encoding.deepstack for encoding in encodings), strict=True)),
        }
        return {
            "mm_encoder_outputs": {"image": BaseModelOutputWithDeepstackFeatures(**by_image)},
            "image_grid_thw": torch.stack([encoding.grid for encoding in encodings]),
            "mm_token_type_ids": token_types,
        }


class _VisionAttention:
    """What the attention of the vision encoder's last layer was given in one pass."""

    def __init__(self, module: nn.Module) -> None:
        self._module: Any = module
        self._rotary: tuple[Tensor, Tensor] | None = None
        self._projected: Tensor | None = None

    def see_rotary(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Before the layer's attention."""
        self._rotary = kwargs["position_embeddings"]

    def see_projected(self, module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        """After the projection to queries, keys and values."""
        self._projected = output

    def received(self, grids: Tensor) -> list[Tensor]:
        """See `ImageEncoding.attention`, one tensor per image."""
        assert self._projected is not None
        assert self._rotary is not None
        module = self._module
        queries, keys, _ = self._projected.unflatten(-1, (3, module.num_heads, -1)).unbind(1)
        queries, keys = apply_rotary_pos_emb_vision(queries, keys, *self._rotary)
        patches = grids.prod(-1).tolist()
        pairs = zip(queries.split(patches), keys.split(patches), strict=True)
        each = [received_attention(q.transpose(0, 1), k.transpose(0, 1), module.scaling) for q, k in pairs]
        # The patches that become one visual token follow each other.
        return [scores.unflatten(0, (-1, module.config.spatial_merge_size**2)).mean(1) for scores in each]


@contextmanager
def _last_attention(model: nn.Module) -> Iterator[_VisionAttention]:
    """Listen to the vision encoder's last layer; no layer computes more than it does anyway."""
    blocks = model.get_submodule("model.visual.blocks")
    assert isinstance(blocks, nn.ModuleList)
    attention = blocks[-1].get_submodule("attn")
    seen = _VisionAttention(attention)
    hooks = [
        attention.register_forward_pre_hook(seen.see_rotary, with_kwargs=True),
        attention.get_submodule("qkv").register_forward_hook(seen.see_projected),
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
