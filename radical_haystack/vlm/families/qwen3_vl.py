# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Qwen3-VL (dense), as transformers implements it: `Qwen3VLForConditionalGeneration`."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.qwen3_vl.modeling_qwen3_vl import BaseModelOutputWithDeepstackFeatures, apply_rotary_pos_emb

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

    def encode(self, model: nn.Module, pixel_values: Tensor, grids: Tensor) -> list[ImageEncoding]:
        """See `ModelFamily.encode`."""
        vision_language: Any = model
        output = vision_language.get_image_features(pixel_values, grids, return_dict=True)
        layers = list(zip(*output.deepstack_features, strict=True)) or [()] * len(grids)
        return [
            # Clones, because the split tensors are views that would keep the whole batch in memory.
            ImageEncoding(grid.clone(), tokens.clone(), tuple(feature.clone() for feature in features))
            for grid, tokens, features in zip(grids, output.pooler_output, layers, strict=True)
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
