# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Ranking one search's candidates with several pruning methods, to compare what each of them kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from haystack import Document, Pipeline
from haystack.utils import ComponentDevice
from PIL import Image

from radical_haystack.components.bundled import resolve_model
from radical_haystack.components.image_loading import ImageReadError, load_document_images
from radical_haystack.pipelines.indexes import open_index
from radical_haystack.pipelines.searching import CANDIDATES
from radical_haystack.pruning.pruners import pruner_type
from radical_haystack.pruning.schedule import check_keep_ratio
from radical_haystack.vlm import ListwiseVLM, Ranking


@dataclass(frozen=True)
class Explanation:
    """
    One search's candidates, ranked by several methods.

    :param query: The query.
    :param documents: The candidates, in the first stage's order.
    :param images: Their images.
    :param rankings: The ranking of these candidates by each method.
    """

    query: str
    documents: tuple[Document, ...]
    images: tuple[Image.Image, ...]
    rankings: dict[str, Ranking]


def explain_search(
    store_path: str | Path,
    query: str,
    *,
    methods: Sequence[str] = ("radical", "random"),
    model: str = "catalog-vlm-tiny",
    candidates: int = CANDIDATES,
    keep_ratio: float = 0.2,
    trust_remote_code: bool = False,
    device: ComponentDevice | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Explanation:
    """
    Retrieve images from a store that `index_folder` made, and rank them with several pruning methods.

    :param store_path: The store's folder.
    :param query: What is asked for.
    :param methods: Names of pruning methods.
    :param model: The reranking model, as `RadicalRanker` takes it; it must have a schedule if a method needs one.
    :param candidates: How many images the first stage hands over; those that cannot be read are left out.
    :param keep_ratio: Share of the visual tokens to keep, in (0, 1].
    :param trust_remote_code: Whether code that comes with the first stage's model may run.
    :param device: Where to run the models; `None` for the default device.
    :param progress: Called with the number of methods done and of all.
    :raises ValueError: If the query is blank, no method is given or one is unknown, the model has no schedule, no image
        can be read, or a value is out of range.
    :raises StoreError: If there is no store, it is damaged or empty, or another first stage made it.
    """
    methods = list(dict.fromkeys(methods))
    if not query.strip():
        raise ValueError("The query is blank.")
    if not methods:
        raise ValueError("At least one pruning method is needed.")
    needs_schedule = [name for name in methods if pruner_type(name).needs_schedule]
    check_keep_ratio(keep_ratio)
    index = open_index(store_path, trust_remote_code=trust_remote_code)
    index.require_documents()
    pipeline = index.retrieval_pipeline(candidates=candidates, device=device)
    documents, images = _candidates(pipeline, query, index.info.root_path)
    vlm = ListwiseVLM.load(resolve_model(model), device=ComponentDevice.resolve_device(device).to_torch_str())
    if needs_schedule and vlm.schedule() is None:
        raise ValueError(
            f"The model '{model}' has no pruning schedule, which {', '.join(needs_schedule)} needs; make one with: "
            f"radical-haystack calibrate --model {model} --images FOLDER"
        )
    rankings = {}
    for number, name in enumerate(methods):
        progress(number, len(methods))
        rankings[name] = vlm.rank(query.strip(), images, pruner=name, keep_ratio=keep_ratio)
    progress(len(methods), len(methods))
    return Explanation(query, tuple(documents), tuple(images), rankings)


def _candidates(pipeline: Pipeline, query: str, root_path: str) -> tuple[list[Document], list[Image.Image]]:
    """What the first stage finds and can be read, with its images."""
    found: list[Document] = pipeline.run({"embedder": {"text": query}})["retriever"]["documents"]
    loaded = load_document_images(found, root_path=root_path)
    pairs = zip(found, loaded, strict=True)
    readable = [(document, image) for document, image in pairs if isinstance(image, Image.Image)]
    if not readable:
        reasons = " ".join(str(error) for error in loaded if isinstance(error, ImageReadError))
        raise ValueError(f"No image of the {len(found)} candidates can be read: {reasons}")
    return [document for document, _ in readable], [image for _, image in readable]
