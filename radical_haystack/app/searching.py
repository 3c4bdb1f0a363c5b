# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What a search of the app does, apart from any user interface: retrieve, rerank, compare."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from haystack import Document, Pipeline
from haystack.utils import ComponentDevice
from PIL import Image

from radical_haystack.components.bundled import resolve_model
from radical_haystack.components.image_loading import (
    FORMATS,
    ImageReadError,
    load_document_image,
    load_document_images,
    load_image,
)
from radical_haystack.components.rankers import RadicalRanker
from radical_haystack.pipelines.builders import build_composed_pipeline, build_text_to_image_pipeline
from radical_haystack.pipelines.indexes import Index
from radical_haystack.pipelines.searching import CANDIDATES
from radical_haystack.pruning.pruners import BEFORE_DECODER
from radical_haystack.viz.masks import TokenMask, pruning_layers, token_masks
from radical_haystack.vlm import ListwiseVLM, Ranking

MAX_QUERY = 500
"""The longest query, in characters."""
MAX_UPLOAD_BYTES = 10 * 2**20
"""The largest file that is taken as a reference image."""
MAX_UPLOAD_PIXELS = 50_000_000
"""The most pixels of a reference image: a small file can hold a picture that fills the memory."""


class SearchError(ValueError):
    """A search that cannot be done; the message is for the user and says what to do."""


@dataclass(frozen=True)
class Reference:
    """
    The reference image of a composed query.

    :param name: What it is called.
    :param image: The image.
    :param document_id: The id of its document, if it is one of the index's.
    """

    name: str
    image: Image.Image
    document_id: str | None = None


@dataclass(frozen=True)
class Found:
    """
    What the first stage found.

    :param query: The query; with a reference, the modification text.
    :param reference: The reference image of a composed query.
    :param first_stage: Name of the first stage.
    :param documents: The candidates, best first.
    :param images: The image of each, or the error that says why there is none.
    :param seconds: How long it took, by step.
    """

    query: str
    reference: Reference | None
    first_stage: str
    documents: tuple[Document, ...]
    images: tuple[Image.Image | ImageReadError, ...]
    seconds: dict[str, float]


@dataclass(frozen=True)
class Candidate:
    """
    One candidate in both orders.

    :param document_id: The id of its document.
    :param name: What it is called.
    :param image: Its image, or the error that says why there is none.
    :param first_rank: Its rank by the first stage, from 1.
    :param rank: Its rank after reranking, from 1.
    :param score: The reranker's score; `None` if it could not be ranked.
    :param total_tokens: Visual tokens before pruning.
    :param kept_tokens: Visual tokens at the end.
    :param masks: Which tokens were left after each of the comparison's stages.
    """

    document_id: str
    name: str
    image: Image.Image | ImageReadError
    first_rank: int
    rank: int
    score: float | None = None
    total_tokens: int = 0
    kept_tokens: int = 0
    masks: tuple[TokenMask, ...] = ()

    @property
    def moved(self) -> int:
        """By how many places reranking moved it up (positive) or down (negative)."""
        return self.first_rank - self.rank


@dataclass(frozen=True)
class Stage:
    """
    The visual tokens of all candidates at one point of the way through the model.

    :param layer: The decoder layer after which they were left, or -1 for the decoder's input.
    :param tokens: How many.
    """

    layer: int
    tokens: int

    @property
    def label(self) -> str:
        """What it is called."""
        return "input" if self.layer == BEFORE_DECODER else f"layer {self.layer}"


@dataclass(frozen=True)
class Comparison:
    """
    Both orders of one search's candidates, and what became of their tokens.

    :param found: What the first stage found.
    :param candidates: The candidates, in the first stage's order.
    :param stages: Where tokens were pruned, in order of depth.
    :param pruner: The pruning method's name.
    :param keep_ratio: Share of the visual tokens that was to be kept.
    :param calibrating: Whether nothing was pruned because the model measured itself on this search.
    :param seconds: How long it took, by step.
    """

    found: Found
    candidates: tuple[Candidate, ...]
    stages: tuple[Stage, ...]
    pruner: str
    keep_ratio: float
    calibrating: bool
    seconds: dict[str, float]

    @property
    def reranked(self) -> list[Candidate]:
        """The candidates in the reranked order."""
        return sorted(self.candidates, key=lambda candidate: candidate.rank)

    @property
    def total_tokens(self) -> int:
        """Visual tokens of all candidates before pruning."""
        return sum(candidate.total_tokens for candidate in self.candidates)

    @property
    def kept_tokens(self) -> int:
        """Visual tokens of all candidates at the end."""
        return sum(candidate.kept_tokens for candidate in self.candidates)


class Searcher:
    """
    Searches indexes and reranks what it finds. Models are loaded once; any number of threads may use one instance.

    :param indexes: The indexes, at least one.
    :param model: The reranking model, as `RadicalRanker` takes it.
    :param device: Where to run the models; `None` for the default device.
    """

    def __init__(self, indexes: Sequence[Index], *, model: str, device: ComponentDevice | None = None) -> None:
        self.indexes = tuple(indexes)
        self.model = model
        self._device = ComponentDevice.resolve_device(device)
        self._vlm: ListwiseVLM | None = None
        self._pipelines: dict[tuple[int, bool], Pipeline] = {}
        self._lock = threading.Lock()

    def warm_up(self) -> None:
        """Load the reranking model, once."""
        with self._lock:
            if self._vlm is None:
                self._vlm = ListwiseVLM.load(resolve_model(self.model), device=self._device.to_torch_str())

    def retrieve(self, index: int, query: str, reference: Reference | None = None) -> Found:
        """
        Let the first stage find candidates.

        :param index: Which index to search.
        :param query: The query; with a reference image, what shall be different from it.
        :param reference: The reference image.
        :raises SearchError: If the query is blank or too long, or the index is empty or not there.
        """
        query = _checked(query, reference)
        searched = self._index(index)
        if not len(searched):
            raise SearchError(
                f"The index '{searched.path}' is empty. Fill it with: radical-haystack index FOLDER "
                f"--store {searched.path}, and start the app again."
            )
        started = time.perf_counter()
        documents = self._find(index, query, reference)
        found = time.perf_counter()
        images = load_document_images(documents, root_path=searched.info.root_path)
        seconds = {"first stage": found - started, "reading images": time.perf_counter() - found}
        return Found(query, reference, searched.info.first_stage, tuple(documents), tuple(images), seconds)

    def rank(self, found: Found, *, pruner: str = "radical", keep_ratio: float = 0.2) -> Comparison:
        """
        Rerank what was found.

        :param found: The candidates.
        :param pruner: A pruning method's name.
        :param keep_ratio: Share of the visual tokens to keep, in (0, 1].
        :raises SearchError: If no candidate's image can be read.
        :raises ValueError: If the method is unknown or the keep ratio out of range.
        """
        images = [image for image in found.images if isinstance(image, Image.Image)]
        if not images:
            reason = next((str(image) for image in found.images if isinstance(image, ImageReadError)), "")
            raise SearchError(f"None of the images found can be read any more. Index their folder again. {reason}")
        self.warm_up()
        assert self._vlm is not None
        reference = None if found.reference is None else found.reference.image
        ranking = self._vlm.rank(found.query, images, reference, pruner=pruner, keep_ratio=keep_ratio)
        return compare(found, ranking, pruner=pruner, keep_ratio=keep_ratio)

    def reference_from_result(self, index: int, document_id: str) -> Reference:
        """
        Take an image of an index as the reference.

        :param index: Which index.
        :param document_id: The id of the image's document.
        :raises SearchError: If there is no such document or its image cannot be read.
        """
        searched = self._index(index)
        match = {"field": "id", "operator": "==", "value": document_id}
        documents = searched.store.filter_documents(match) if isinstance(document_id, str) else []
        if not documents:
            raise SearchError("This image is not in the index that is chosen now. Search again, then pick one.")
        try:
            image = load_document_image(documents[0], root_path=searched.info.root_path)
        except ImageReadError as error:
            raise SearchError(f"This image cannot be the reference. {error}") from error
        return Reference(name_of(documents[0]), image, document_id)

    def _index(self, index: int) -> Index:
        if not 0 <= index < len(self.indexes):
            raise SearchError("There is no such index. Choose one from the list.")
        return self.indexes[index]

    def _find(self, index: int, query: str, reference: Reference | None) -> list[Document]:
        inputs: dict[str, Any] = {"embedder": {"text": query}}
        last = "retriever"
        if reference is not None:
            composed = {"reference_image": reference.image, "reference_id": reference.document_id}
            inputs = {"builder": {**composed, "modification": query}}
            last = "reference_filter"
        with self._lock:  # neither pipelines nor fast tokenizers may be entered by two threads at once
            documents: list[Document] = self._pipeline(index, reference is not None).run(inputs)[last]["documents"]
        return documents

    def _pipeline(self, index: int, composed: bool) -> Pipeline:
        """The first stage of an index alone: the app shows its order before the model has read anything."""
        if (index, composed) not in self._pipelines:
            searched = self.indexes[index]
            build = build_composed_pipeline if composed else build_text_to_image_pipeline
            ranker = RadicalRanker(root_path=searched.info.root_path)
            pipeline = build(searched.store, searched.stage, ranker=ranker, candidates=CANDIDATES, device=self._device)
            pipeline.remove_component("ranker")
            self._pipelines[index, composed] = pipeline
        return self._pipelines[index, composed]


def compare(found: Found, ranking: Ranking, *, pruner: str, keep_ratio: float) -> Comparison:
    """
    Set the first stage's order and a reranking beside each other.

    :param found: What the first stage found. Candidates without an image keep their order at the end.
    :param ranking: The ranking of those candidates whose images could be read.
    :param pruner: The pruning method's name.
    :param keep_ratio: Share of the visual tokens that was to be kept.
    """
    readable = [place for place, image in enumerate(found.images) if isinstance(image, Image.Image)]
    unreadable = [place for place, image in enumerate(found.images) if not isinstance(image, Image.Image)]
    layers = pruning_layers(ranking)
    masks = [token_masks(ranking, layer) for layer in layers]
    order = [readable[member] for member in ranking.order] + unreadable
    ranks = {place: rank for rank, place in enumerate(order, start=1)}
    candidates = [
        Candidate(document.id, name_of(document), image, place + 1, ranks[place])
        for place, (document, image) in enumerate(zip(found.documents, found.images, strict=True))
    ]
    for member, place in enumerate(readable):
        candidates[place] = replace(
            candidates[place],
            score=ranking.scores[member],
            total_tokens=ranking.total_tokens[member],
            kept_tokens=ranking.kept_tokens[member],
            masks=tuple(stage[member] for stage in masks),
        )
    stages = tuple(
        Stage(layer, sum(int(mask.sum()) for mask in stage)) for layer, stage in zip(layers, masks, strict=True)
    )
    seconds = {
        **found.seconds,
        "vision encoder": ranking.timings["encode"],
        "language model": ranking.timings["rank"],
    }
    calibrating = bool(ranking.metadata["calibrating"])
    return Comparison(found, tuple(candidates), stages, pruner, keep_ratio, calibrating, seconds)


def reference_from_file(path: str | Path, name: str) -> Reference:
    """
    Read an uploaded image.

    :param path: The file.
    :param name: What the user calls it.
    :raises SearchError: If it is too large or not an image that can be read.
    """
    if Path(path).stat().st_size > MAX_UPLOAD_BYTES:
        raise SearchError(f"'{name}' is larger than {MAX_UPLOAD_BYTES // 2**20} MB. Choose a smaller image.")
    try:
        with Image.open(path, formats=FORMATS) as opened:  # reads the header only
            pixels = opened.width * opened.height
        if pixels <= MAX_UPLOAD_PIXELS:
            return Reference(name, load_image(path))
    except (ImageReadError, Image.DecompressionBombError, OSError, ValueError, SyntaxError) as error:
        raise SearchError(
            f"'{name}' cannot be read as an image. Choose another file, such as a JPEG, PNG or WebP."
        ) from error
    raise SearchError(f"'{name}' has more than {MAX_UPLOAD_PIXELS // 10**6} megapixels. Choose a smaller image.")


def name_of(document: Document) -> str:
    """
    What a document's image is called.

    :param document: The document.
    """
    return str(document.meta.get("file_path") or document.id)


def _checked(query: str, reference: Reference | None) -> str:
    query = query.strip() if isinstance(query, str) else ""
    if not query and reference is not None:
        raise SearchError("Say what shall be different from the reference image, such as “is blue instead”.")
    if not query:
        raise SearchError("The query is blank. Type what you are looking for, then press Enter.")
    if len(query) > MAX_QUERY:
        raise SearchError(f"The query has {len(query)} characters; at most {MAX_QUERY} are read. Shorten it.")
    return query
