# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Haystack components."""

from haystack.core.serialization import allow_deserialization_module

from radical_haystack.components.composed_embedder import ComposedQueryEmbedder
from radical_haystack.components.composed_query import ComposedQuery, ComposedQueryBuilder, ReferenceFilter
from radical_haystack.components.embedders import DocumentImageEmbedder, QueryTextEmbedder
from radical_haystack.components.image_loading import ImageReadError, load_image
from radical_haystack.components.rankers import RadicalRanker
from radical_haystack.components.retrievers import FirstStageMarker, FirstStageRetriever

# Whoever imports this package trusts it: pipelines in YAML may then name its components.
allow_deserialization_module("radical_haystack.components")

__all__ = [
    "ComposedQuery",
    "ComposedQueryBuilder",
    "ComposedQueryEmbedder",
    "DocumentImageEmbedder",
    "FirstStageMarker",
    "FirstStageRetriever",
    "ImageReadError",
    "QueryTextEmbedder",
    "RadicalRanker",
    "ReferenceFilter",
    "load_image",
]
