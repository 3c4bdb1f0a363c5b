# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The model families this package can prune: one file each, and one line here."""

from torch import nn

from radical_haystack.vlm.families.base import ImageEncoding, ModelFamily
from radical_haystack.vlm.families.qwen3_vl import Qwen3VLFamily

FAMILIES: dict[str, ModelFamily] = {"qwen3_vl": Qwen3VLFamily()}
"""Families by the `model_type` of their configuration."""


def family_of(model: nn.Module) -> ModelFamily:
    """
    The family a loaded model belongs to.

    :param model: A Hugging Face vision-language model.
    :raises ValueError: If its type is not supported.
    """
    model_type = getattr(getattr(model, "config", None), "model_type", type(model).__name__)
    if model_type not in FAMILIES:
        raise ValueError(f"Models of type {model_type!r} are not supported; supported: {', '.join(sorted(FAMILIES))}.")
    return FAMILIES[model_type]


__all__ = ["FAMILIES", "ImageEncoding", "ModelFamily", "family_of"]
