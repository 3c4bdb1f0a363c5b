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

from haystack import Document, Pipeline

from radical_haystack.catalog import GalleryItem, Query, describe, gallery_items, write_gallery
from radical_haystack.components import RadicalRanker, load_image
from radical_haystack.components.bundled import resolve_model
from radical_haystack.demo.benchmark import Benchmark, run_benchmark, timed_rank
from radical_haystack.demo.report import write_report
from radical_haystack.pipelines import build_text_to_image_pipeline, index_folder, open_store
from radical_haystack.pipelines.first_stages import first_stage_of
from radical_haystack.vlm import ListwiseVLM

CANDIDATES = 20
SHOWN = 10
KEEP_RATIO = 0.2
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
    """

    text: str
    first_stage: tuple[ShownImage, ...]
    reranked: tuple[ShownImage, ...]
    seconds_dense: float
    seconds_pruned: float


@dataclass(frozen=True)
class DemoResult:
    """
    What the demo found.

    :param pictures: Number of pictures in the index.
    :param queries: The queries shown.
    :param benchmark: The figures on held-out queries.
    :param benchmark_queries: How many those were.
    :param report: The page that shows it all.
    :param seconds: How long it took.
    """

    pictures: int
    queries: tuple[ShownQuery, ...]
    benchmark: Benchmark
    benchmark_queries: int
    report: Path
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "mrr_at_10": self.benchmark.mrr_at_10,
            "prefill_speedup": self.benchmark.prefill_speedup,
            "prefill_ms": {name: 1000 * value for name, value in self.benchmark.prefill_seconds.items()},
            "benchmark_queries": self.benchmark_queries,
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
    :param shown_queries: How many gallery searches the report shows.
    :param benchmark_queries: How many held-out queries the figures are measured on.
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
    ranker = RadicalRanker(model=model, keep_ratio=KEEP_RATIO, root_path=str(gallery), top_k=SHOWN)
    pipeline = build_text_to_image_pipeline(open_store(store), first_stage, ranker=ranker, candidates=CANDIDATES)
    vlm = ListwiseVLM.load(resolve_model(model), device=ranker.device.to_torch_str())
    benchmark = run_benchmark(
        vlm,
        first_stage_of(first_stage),
        queries=benchmark_queries,
        candidates=CANDIDATES,
        progress=lambda *at: progress("Measuring on held-out queries", *at),
    )
    shown = []
    items = {f"{item.name}.jpg": item for item in gallery_items(pictures)}
    for number, query in enumerate(_queries(list(items.values()), shown_queries), start=1):
        shown.append(_search(pipeline, vlm, query, items, gallery))
        progress("Searching the gallery", number, shown_queries)
    report = write_report(
        Path(output) / "report.html",
        queries=shown,
        benchmark=benchmark,
        benchmark_queries=benchmark_queries,
        candidates=CANDIDATES,
        pictures=pictures,
        keep_ratio=KEEP_RATIO,
    )
    return DemoResult(pictures, tuple(shown), benchmark, benchmark_queries, report, time.perf_counter() - started)


def _queries(items: list[GalleryItem], count: int) -> list[Query]:
    """Descriptions of random pictures of the gallery, always the same ones; nothing is hand-picked."""
    rng = random.Random("demo")
    return [describe(rng.choice(items).outfit, rng) for _ in range(count)]


def _search(
    pipeline: Pipeline, vlm: ListwiseVLM, query: Query, items: dict[str, GalleryItem], gallery: Path
) -> ShownQuery:
    inputs = {"embedder": {"text": query.text}, "ranker": {"query": query.text}}
    output = pipeline.run(inputs, include_outputs_from={"retriever"})
    retrieved, ranked = output["retriever"]["documents"], output["ranker"]["documents"]
    images = [load_image(gallery / document.meta["file_path"]) for document in retrieved]
    seconds = {name: timed_rank(vlm, query.text, images, name)[1] for name in ("dense", "radical_0.2")}

    def show(document: Document, **figures: int) -> ShownImage:
        item = items[document.meta["file_path"]]
        path = gallery / document.meta["file_path"]
        return ShownImage(path=path, caption=item.caption, hit=query.matches(item.outfit), **figures)

    keys = ("rank", "first_stage_rank", "kept_tokens", "total_tokens")
    return ShownQuery(
        text=query.text,
        first_stage=tuple(
            show(document, rank=rank, first_stage_rank=rank) for rank, document in enumerate(retrieved[:SHOWN], start=1)
        ),
        reranked=tuple(show(d, **{key: d.meta["radical"][key] for key in keys}) for d in ranked),
        seconds_dense=seconds["dense"],
        seconds_pruned=seconds["radical_0.2"],
    )
