# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The drawn catalogue: outfits, their pictures, the words for them, hard candidate sets and benchmark splits."""

from radical_haystack.catalog.attributes import (
    COLOURS,
    FIELDS,
    KINDS,
    LENGTHS,
    PATTERNS,
    SLOT_OF,
    Garment,
    Outfit,
    World,
    mutate,
    sample_outfit,
    swap,
    world_of,
)
from radical_haystack.catalog.bundled import bundled_model_path
from radical_haystack.catalog.drawing import Drawing, Scene, draw, evidence_tokens, token_labels
from radical_haystack.catalog.gallery import GalleryItem, gallery_items, write_gallery
from radical_haystack.catalog.language import (
    NO_POCKET,
    GarmentSpec,
    Modification,
    Query,
    caption,
    describe,
    full_spec,
    modification,
)
from radical_haystack.catalog.sets import BenchmarkItem, benchmark_composed, benchmark_text, family, hard_set

__all__ = [
    "COLOURS",
    "FIELDS",
    "KINDS",
    "LENGTHS",
    "NO_POCKET",
    "PATTERNS",
    "SLOT_OF",
    "BenchmarkItem",
    "Drawing",
    "GalleryItem",
    "Garment",
    "GarmentSpec",
    "Modification",
    "Outfit",
    "Query",
    "Scene",
    "World",
    "benchmark_composed",
    "benchmark_text",
    "bundled_model_path",
    "caption",
    "describe",
    "draw",
    "evidence_tokens",
    "family",
    "full_spec",
    "gallery_items",
    "hard_set",
    "mutate",
    "modification",
    "sample_outfit",
    "swap",
    "token_labels",
    "world_of",
    "write_gallery",
]
