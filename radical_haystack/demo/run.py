# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The demo from start to end."""

import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haystack import Document
from haystack.utils import ComponentDevice
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.catalog import (
    FIELDS,
    GalleryItem,
    Modification,
    Outfit,
    Query,
    benchmark_composed,
    benchmark_text,
    describe,
    gallery_items,
    modification,
    write_gallery,
)
from radical_haystack.components import RadicalRanker, load_image
from radical_haystack.components.bundled import resolve_model
from radical_haystack.demo.benchmark import Benchmark, run_benchmark, timed_rank
from radical_haystack.demo.report import write_report
from radical_haystack.pipelines import (
    build_composed_pipeline,
    build_text_to_image_pipeline,
    index_folder,
    open_store,
)
from radical_haystack.pipelines.first_stages import FirstStage, first_stage_of
from radical_haystack.vlm import ListwiseVLM

CANDIDATES = 20
SHOWN = 10
SHOWN_COMPOSED = 2
KEEP_RATIO = 0.2
SEED = 0
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ShownImage:
    """
    One picture of a result list.

    :param path: The picture.
    :param caption: What it shows.
    :param hit: Whether it is all that the query asks for.
    :param rank: Rank after reranking, from 1; in a first-stage list the same as `first_stage_rank`.
    :param first_stage_rank: Rank before.
    :param kept_tokens: Visual tokens that reached the model's end.
    :param total_tokens: Visual tokens before pruning.
    """

    path: Path
    caption: str
    hit: bool
    rank: int
    first_stage_rank: int
    kept_tokens: int = 0
    total_tokens: int = 0


@dataclass(frozen=True)
class ShownQuery:
    """
    A query with its two result lists.

    :param text: The query.
    :param first_stage: The first stage's best.
    :param reranked: The reranker's best.
    :param seconds_dense: The prefill's time without pruning.
    :param seconds_pruned: The prefill's time with it.
    :param reference: The reference image of a composed query.
    """

    text: str
    first_stage: tuple[ShownImage, ...]
    reranked: tuple[ShownImage, ...]
    seconds_dense: float
    seconds_pruned: float
    reference: Path | None = None


@dataclass(frozen=True)
class DemoResult:
    """
    What the demo found.

    :param pictures: Number of pictures in the index.
    :param queries: The queries shown, text queries first.
    :param benchmark: The figures on held-out text queries.
    :param benchmark_queries: How many those were.
    :param composed_benchmark: The figures on held-out composed queries.
    :param composed_queries: How many those were.
    :param report: The page that shows it all.
    :param seconds: How long it took.
    """

    pictures: int
    queries: tuple[ShownQuery, ...]
    benchmark: Benchmark
    benchmark_queries: int
    composed_benchmark: Benchmark
    composed_queries: int
    report: Path
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "mrr_at_10": self.benchmark.mrr_at_10,
            "prefill_speedup": self.benchmark.prefill_speedup,
            "prefill_ms": {name: 1000 * value for name, value in self.benchmark.prefill_seconds.items()},
            "benchmark_queries": self.benchmark_queries,
            "composed_mrr_at_10": self.composed_benchmark.mrr_at_10,
            "composed_queries": self.composed_queries,
            "benchmark_candidates": CANDIDATES,
            "pictures": self.pictures,
            "seconds": self.seconds,
            "report": str(self.report),
        }


def run_demo(
    output: str | Path,
    *,
    pictures: int = 600,
    shown_queries: int = 6,
    benchmark_queries: int = 40,
    model: str = "catalog-vlm-tiny",
    first_stage: str = "bundled",
    progress: Progress = lambda step, done, total: None,
) -> DemoResult:
    """
    Run the demo.

    :param output: Folder for the pictures, the index and the report; pictures that are there already are used again.
    :param pictures: How many pictures the gallery has.
    :param shown_queries: How many gallery searches by text the report shows, beside `SHOWN_COMPOSED` composed ones.
    :param benchmark_queries: How many held-out text queries the figures are measured on; and half as many composed
        ones.
    :param model: The reranking model, as `RadicalRanker` takes it.
    :param first_stage: A preset's name or a model for sentence-transformers.
    :param progress: Called with a step's name, what is done of it and its whole.
    :raises ValueError: If a number is not positive.
    """
    if min(pictures, shown_queries, benchmark_queries) < 1:
        raise ValueError("The numbers of pictures and queries must be at least 1.")
    started = time.perf_counter()
    gallery, store = Path(output) / f"gallery-{pictures}", Path(output) / f"index-{pictures}"
    write_gallery(gallery, pictures)
    shutil.rmtree(store, ignore_errors=True)  # an index of an earlier release's model would mislead
    index_folder(gallery, store, first_stage=first_stage, progress=lambda *at: progress("Indexing the gallery", *at))
    vlm = ListwiseVLM.load(resolve_model(model), device=ComponentDevice.resolve_device(None).to_torch_str())
    stage = first_stage_of(first_stage)
    assert isinstance(stage, FirstStage)  # as every name is
    composed_queries = (benchmark_queries + 1) // 2
    benchmark = run_benchmark(
        vlm,
        stage,
        benchmark_text(SEED, benchmark_queries, CANDIDATES),
        progress=lambda *at: progress("Measuring on held-out queries", *at),
    )
    composed_benchmark = run_benchmark(
        vlm,
        stage,
        benchmark_composed(SEED, composed_queries, CANDIDATES),
        progress=lambda *at: progress("Measuring on composed queries", *at),
    )
    search = _GallerySearch(gallery, gallery_items(pictures), open_store(store), vlm, model, first_stage)
    queries, changes = _queries(search.items, shown_queries), _changes(search.items, SHOWN_COMPOSED)
    shown = []
    for query in queries:
        shown.append(search.by_text(query))
        progress("Searching the gallery", len(shown), len(queries) + len(changes))
    for reference, change in changes:
        shown.append(search.composed(reference, change))
        progress("Searching the gallery", len(shown), len(queries) + len(changes))
    report = write_report(
        Path(output) / "report.html",
        queries=shown,
        benchmark=benchmark,
        benchmark_queries=benchmark_queries,
        composed_benchmark=composed_benchmark,
        composed_queries=composed_queries,
        candidates=CANDIDATES,
        pictures=pictures,
        keep_ratio=KEEP_RATIO,
    )
    return DemoResult(
        pictures=pictures,
        queries=tuple(shown),
        benchmark=benchmark,
        benchmark_queries=benchmark_queries,
        composed_benchmark=composed_benchmark,
        composed_queries=composed_queries,
        report=report,
        seconds=time.perf_counter() - started,
    )


def _queries(items: list[GalleryItem], count: int) -> list[Query]:
    """Descriptions of random pictures of the gallery, always the same ones; nothing is hand-picked."""
    rng = random.Random("demo")
    return [describe(rng.choice(items).outfit, rng) for _ in range(count)]


def _changes(items: list[GalleryItem], count: int) -> list[tuple[GalleryItem, Modification]]:
    """Random pictures, and for each what makes it the picture most like it."""
    rng = random.Random("demo, composed")
    changes: list[tuple[GalleryItem, Modification]] = []
    for reference in rng.sample(items, len(items)):
        if len(changes) == count:
            break
        others = [item for item in items if item is not reference and _slots(item.outfit) == _slots(reference.outfit)]
        if others:
            nearest = min(others, key=lambda item: _differences(reference.outfit, item.outfit))
            changes.append((reference, modification(reference.outfit, nearest.outfit, rng)))
    return changes


def _slots(outfit: Outfit) -> list[str]:
    return [garment.slot for garment in outfit.garments]


def _differences(one: Outfit, other: Outfit) -> int:
    pairs = zip(one.garments, other.garments, strict=True)
    return sum(getattr(a, field) != getattr(b, field) for a, b in pairs for field in FIELDS)


class _GallerySearch:
    """The two pipelines over the gallery, and what their results look like in the report."""

    def __init__(
        self,
        gallery: Path,
        items: list[GalleryItem],
        store: FAISSDocumentStore,
        vlm: ListwiseVLM,
        model: str,
        first_stage: str,
    ) -> None:
        def ranker() -> RadicalRanker:
            return RadicalRanker(model=model, keep_ratio=KEEP_RATIO, root_path=str(gallery), top_k=SHOWN)

        self.items = items
        self._gallery = gallery
        self._items = {f"{item.name}.jpg": item for item in items}
        self._vlm = vlm
        self._text = build_text_to_image_pipeline(store, first_stage, ranker=ranker(), candidates=CANDIDATES)
        self._composed = build_composed_pipeline(store, first_stage, ranker=ranker(), candidates=CANDIDATES)

    def by_text(self, query: Query) -> ShownQuery:
        inputs = {"embedder": {"text": query.text}, "ranker": {"query": query.text}}
        output = self._text.run(inputs, include_outputs_from={"retriever"})
        return self._shown(query, output["retriever"]["documents"], output["ranker"]["documents"])

    def composed(self, reference: GalleryItem, change: Modification) -> ShownQuery:
        inputs = {"builder": {"reference_image": f"{reference.name}.jpg", "modification": change.text}}
        output = self._composed.run(inputs, include_outputs_from={"reference_filter"})
        candidates, ranked = output["reference_filter"]["documents"], output["ranker"]["documents"]
        return self._shown(change, candidates, ranked, self._gallery / f"{reference.name}.jpg")

    def _shown(
        self,
        query: Query | Modification,
        candidates: list[Document],
        ranked: list[Document],
        reference: Path | None = None,
    ) -> ShownQuery:
        images = [load_image(self._gallery / document.meta["file_path"]) for document in candidates]
        start = None if reference is None else load_image(reference)
        seconds = {name: timed_rank(self._vlm, query.text, images, name, start)[1] for name in ("dense", "radical_0.2")}

        def show(document: Document, **figures: int) -> ShownImage:
            item = self._items[document.meta["file_path"]]
            path = self._gallery / document.meta["file_path"]
            return ShownImage(path=path, caption=item.caption, hit=query.matches(item.outfit), **figures)

        keys = ("rank", "first_stage_rank", "kept_tokens", "total_tokens")
        return ShownQuery(
            text=query.text,
            first_stage=tuple(
                show(document, rank=rank, first_stage_rank=rank)
                for rank, document in enumerate(candidates[:SHOWN], start=1)
            ),
            reranked=tuple(show(d, **{key: d.meta["radical"][key] for key in keys}) for d in ranked),
            seconds_dense=seconds["dense"],
            seconds_pruned=seconds["radical_0.2"],
            reference=reference,
        )
