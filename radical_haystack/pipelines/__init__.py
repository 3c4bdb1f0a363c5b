# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Builders of Haystack pipelines, the first stages by name, and stores on disk."""

from radical_haystack.pipelines.builders import (
    build_composed_pipeline,
    build_indexing_pipeline,
    build_text_to_image_pipeline,
)
from radical_haystack.pipelines.calibrating import calibrate_on_folder
from radical_haystack.pipelines.first_stages import FIRST_STAGES, EmbedderPair, FirstStage
from radical_haystack.pipelines.indexing import IndexReport, index_folder
from radical_haystack.pipelines.searching import search_folder
from radical_haystack.pipelines.stores import (
    StoreError,
    StoreInfo,
    create_store,
    open_store,
    read_store_info,
    save_store,
)

__all__ = [
    "EmbedderPair",
    "FIRST_STAGES",
    "FirstStage",
    "IndexReport",
    "StoreError",
    "StoreInfo",
    "build_composed_pipeline",
    "build_indexing_pipeline",
    "build_text_to_image_pipeline",
    "calibrate_on_folder",
    "create_store",
    "index_folder",
    "open_store",
    "read_store_info",
    "save_store",
    "search_folder",
]
