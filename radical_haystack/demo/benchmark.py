# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the reranker gains and what pruning costs and saves, on held-out queries of the catalogue."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from PIL import Image

from radical_haystack.catalog import BenchmarkItem, draw
from radical_haystack.components import ComposedQuery
from radical_haystack.pipelines.first_stages import FirstStage
from radical_haystack.vlm import ListwiseVLM, Ranking
from radical_haystack.vlm.families import family_of
from radical_haystack.vlm.trace import Stamp, seconds_between, stamp

METHODS: dict[str, tuple[str, float]] = {
    "dense": ("dense", 1.0),
    "radical_0.2": ("radical", 0.2),
    "radical_0.1": ("radical", 0.1),
    "random_0.2": ("random", 0.2),
}
"""The measured methods: pruner and keep ratio by name."""


@dataclass(frozen=True)
class Benchmark:
    """
    Figures over all queries.

    :param mrr_at_10: MRR@10 of the first stage and of each of `METHODS`.
    :param prefill_seconds: Median seconds of the decoder's prefill for each of `METHODS`.
    """

    mrr_at_10: dict[str, float]
    prefill_seconds: dict[str, float]

    @property
    def prefill_speedup(self) -> float:
        """How many times as fast RaDiCal's prefill is at 0.2 as the dense one."""
        return self.prefill_seconds["dense"] / self.prefill_seconds["radical_0.2"]


def run_benchmark(
    vlm: ListwiseVLM,
    first_stage: FirstStage,
    items: Sequence[BenchmarkItem],
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Benchmark:
    """
    Rank hard candidate sets of the catalogue with every method, each in the first stage's order.

    :param vlm: The reranking model.
    :param first_stage: The first stage.
    :param items: Queries with their candidates, text queries or composed ones, at least one.
    :param progress: Called with the number of queries done and of all.
    """
    image_embedder = first_stage.image_embedder()
    embed_query = _query_embedder(first_stage)
    ranks: dict[str, list[int]] = {name: [] for name in ("first_stage", *METHODS)}
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    for number, item in enumerate(items):
        images = [draw(outfit, scene).image for outfit, scene in item.candidates]
        reference = None if item.reference is None else draw(*item.reference).image
        order = _by_similarity(embed_query(item.query.text, reference), image_embedder.embed_images(images))
        ranks["first_stage"].append(order.index(item.target_index) + 1)
        for name in METHODS:
            ranking, duration = timed_rank(vlm, item.query.text, [images[k] for k in order], name, reference)
            ranks[name].append(ranking.order.index(order.index(item.target_index)) + 1)
            seconds[name].append(duration)
        progress(number + 1, len(items))
    return Benchmark(
        mrr_at_10={name: mrr_at_10(values) for name, values in ranks.items()},
        prefill_seconds={name: median(values) for name, values in seconds.items()},
    )


def mrr_at_10(ranks: Sequence[int]) -> float:
    """
    Mean reciprocal rank of the right answers; a rank beyond 10 counts as 0.

    :param ranks: Their ranks, from 1.
    """
    return fmean(1 / rank if rank <= 10 else 0.0 for rank in ranks)


def timed_rank(
    vlm: ListwiseVLM, query: str, images: Sequence[Image.Image], method: str, reference: Image.Image | None = None
) -> tuple[Ranking, float]:
    """
    Rank in one pass, and measure how long the decoder takes with all that pruning adds to it.

    :param vlm: The reranking model.
    :param query: The query.
    :param images: The candidates.
    :param method: One of `METHODS`.
    :param reference: The reference image of a composed query.
    :returns: The ranking and the decoder's seconds.
    """
    pruner, keep_ratio = METHODS[method]
    stamps: list[Stamp] = []
    decoder = family_of(vlm.model).decoder(vlm.model)
    handles = [
        decoder.register_forward_pre_hook(lambda *_: stamps.append(stamp(vlm.device))),
        decoder.register_forward_hook(lambda *_: stamps.append(stamp(vlm.device))),
    ]
    try:
        ranking = vlm.rank(query, images, reference, pruner=pruner, keep_ratio=keep_ratio, window_size=len(images))
    finally:
        for handle in handles:
            handle.remove()
    return ranking, seconds_between(*stamps)


def _query_embedder(first_stage: FirstStage) -> Callable[[str, Image.Image | None], list[float]]:
    text_embedder, composed_embedder = first_stage.text_embedder(), first_stage.composed_embedder()

    def embed(text: str, reference: Image.Image | None) -> list[float]:
        if reference is None:
            output = text_embedder.run(text=text)
        else:
            output = composed_embedder.run(composed_query=ComposedQuery(text, reference))
        embedding: list[float] = output["embedding"]
        return embedding

    return embed


def _by_similarity(query: Sequence[float], embeddings: Sequence[Sequence[float]]) -> list[int]:
    scores = [sum(a * b for a, b in zip(query, embedding, strict=True)) for embedding in embeddings]
    return sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
