# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Searching an indexed folder in one call."""

from pathlib import Path

from haystack import Document
from haystack.utils import ComponentDevice

from radical_haystack.components.rankers import RadicalRanker
from radical_haystack.pipelines.builders import build_text_to_image_pipeline
from radical_haystack.pipelines.stores import StoreError, open_store, read_store_info

CANDIDATES = 20
"""How many images the first stage hands to the ranker, unless more are asked for."""


def search_folder(
    store_path: str | Path,
    query: str,
    *,
    model: str = "catalog-vlm-tiny",
    top_k: int = 10,
    keep_ratio: float = 0.2,
    device: ComponentDevice | None = None,
) -> list[Document]:
    """
    Retrieve images from a store that `index_folder` made, and rerank them.

    :param store_path: The store's folder.
    :param query: What is asked for.
    :param model: The reranking model, as `RadicalRanker` takes it.
    :param top_k: How many images to return at most.
    :param keep_ratio: Share of the visual tokens to keep, in (0, 1].
    :param device: Where to run the models; `None` for the default device.
    :returns: Documents as `RadicalRanker` returns them, best first.
    :raises ValueError: If the query is blank or a value is out of range.
    :raises StoreError: If there is no store, or it is damaged or empty.
    """
    if not query.strip():
        raise ValueError("The query is blank.")
    info = read_store_info(store_path)
    ranker = RadicalRanker(model=model, keep_ratio=keep_ratio, top_k=top_k, root_path=info.root_path, device=device)
    store = open_store(store_path)
    if not store.count_documents():
        raise StoreError(f"The store at '{store_path}' is empty.")
    pipeline = build_text_to_image_pipeline(
        store, info.first_stage, ranker=ranker, candidates=max(CANDIDATES, top_k), device=device
    )
    documents: list[Document] = pipeline.run({"embedder": {"text": query}, "ranker": {"query": query}})["ranker"][
        "documents"
    ]
    return documents
