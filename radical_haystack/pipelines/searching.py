# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Searching an indexed folder in one call."""

from pathlib import Path
from typing import Any

from haystack import Document
from haystack.utils import ComponentDevice

from radical_haystack.components.image_loading import ImageSource, load_image
from radical_haystack.components.rankers import RadicalRanker
from radical_haystack.pipelines.builders import build_composed_pipeline, build_text_to_image_pipeline
from radical_haystack.pipelines.first_stages import AnyFirstStage
from radical_haystack.pipelines.indexes import open_index
from radical_haystack.pipelines.running import run_pipeline

CANDIDATES = 20
"""How many images the first stage hands to the ranker, unless more are asked for."""


def search_folder(
    store_path: str | Path,
    query: str,
    *,
    reference_image: ImageSource | None = None,
    first_stage: AnyFirstStage | None = None,
    trust_remote_code: bool = False,
    model: str | None = "catalog-vlm-tiny",
    top_k: int = 10,
    keep_ratio: float = 0.2,
    pruner: str = "radical",
    device: ComponentDevice | None = None,
) -> list[Document]:
    """
    Retrieve images from a store that `index_folder` made, and rerank them if there is a model for it.

    :param store_path: The store's folder.
    :param query: What is asked for; with a reference image, what shall be different from it.
    :param reference_image: For a composed query: the image to start from, as a path (anywhere), a `ByteStream`, an
        `ImageContent`, a PIL image or a `Document` of the store. The reference itself is not among the results.
    :param first_stage: The first stage, as `index_folder` took it; `None` for the one of the name in the store, which
        cannot tell of one made by hand.
    :param trust_remote_code: Whether code that comes with the first stage's model may run.
    :param model: The reranking model, as `RadicalRanker` takes it; `None` for the first stage's order.
    :param top_k: How many images to return at most.
    :param keep_ratio: Share of the visual tokens to keep, in (0, 1].
    :param pruner: How to prune, as `RadicalRanker` takes it.
    :param device: Where to run the models; `None` for the default device.
    :returns: Documents as `RadicalRanker` returns them, best first; without a model, as the first stage found them.
    :raises ValueError: If the query is blank, the reference is not an image that can be read, or a value is out of
        range.
    :raises StoreError: If there is no store, it is damaged or empty, or another first stage made it.
    """
    if not query.strip():
        raise ValueError("The query is blank.")
    if reference_image is not None and not isinstance(reference_image, Document):
        reference_image = load_image(reference_image)  # a path leads from where the user is, not from the store's root
    index = open_index(store_path, first_stage, trust_remote_code=trust_remote_code)
    index.require_documents()
    ranker = RadicalRanker(
        model=model or "",
        keep_ratio=keep_ratio,
        pruner=pruner,
        top_k=top_k,
        root_path=index.info.root_path,
        device=device,
    )
    building: dict[str, Any] = {"ranker": ranker, "candidates": max(CANDIDATES, top_k), "device": device}
    if reference_image is None:
        pipeline, last = build_text_to_image_pipeline(index.store, index.stage, **building), "retriever"
        inputs: dict[str, Any] = {"embedder": {"text": query}, "ranker": {"query": query}}
    else:
        pipeline, last = build_composed_pipeline(index.store, index.stage, **building), "reference_filter"
        inputs = {"builder": {"reference_image": reference_image, "modification": query}}
    if model is None:
        pipeline.remove_component("ranker")
        inputs.pop("ranker", None)
    else:
        last = "ranker"
    documents: list[Document] = run_pipeline(pipeline, inputs)[last]["documents"]
    return documents[:top_k]
