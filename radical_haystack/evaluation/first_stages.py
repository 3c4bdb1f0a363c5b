# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How much the ranking depends on which first stage chose the candidates."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from haystack import Document
from haystack.utils import ComponentDevice
from haystack_integrations.document_stores.faiss import FAISSDocumentStore
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from radical_haystack.components.composed_query import ComposedQuery
from radical_haystack.components.image_loading import ImageReadError
from radical_haystack.components.retrievers import FirstStageRetriever, find_retriever
from radical_haystack.evaluation.datasets import Dataset, DatasetQuery
from radical_haystack.evaluation.filling import fill_store
from radical_haystack.evaluation.metrics import OVERALL, evaluate_run
from radical_haystack.evaluation.trec import Qrels, Run
from radical_haystack.pipelines.first_stages import AnyFirstStage, EmbedderPair, FirstStage, first_stage_of
from radical_haystack.pipelines.stores import (
    StoreInfo,
    check_first_stage,
    create_store,
    journal,
    open_store,
    read_store_info,
    save_store,
)
from radical_haystack.vlm import ListwiseVLM

PERSISTENCE = 0.9
"""The parameter p of rank-biased overlap."""


@dataclass(frozen=True)
class PoolFigures:
    """
    What became of the candidates of one first stage.

    :param pool_recall: Share of the queries that have a relevant image among their candidates.
    :param first_stage: MRR@10 of the first stage's own order, over all queries.
    :param dense: That of reranking without pruning.
    :param radical: That of reranking with RaDiCal.
    """

    pool_recall: float
    first_stage: float
    dense: float
    radical: float


@dataclass(frozen=True)
class PoolOverlap:
    """
    How alike the candidates of two first stages are, on average over the queries.

    :param first: Name of one.
    :param second: Name of the other.
    :param jaccard: Jaccard index of their candidates.
    :param rbo: Rank-biased overlap of their orders.
    """

    first: str
    second: str
    jaccard: float
    rbo: float


@dataclass(frozen=True)
class FirstStageComparison:
    """
    The comparison of first stages; printing it with `rich` shows its tables.

    :param dataset: Name of the data set.
    :param queries: How many queries.
    :param candidates: How many candidates each had.
    :param keep_ratio: RaDiCal's keep ratio.
    :param pools: The figures by the first stage's name.
    :param overlaps: For each two of them, how alike their candidates are.
    """

    dataset: str
    queries: int
    candidates: int
    keep_ratio: float
    pools: dict[str, PoolFigures]
    overlaps: tuple[PoolOverlap, ...]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values for JSON."""
        return {**asdict(self), "overlaps": [asdict(overlap) for overlap in self.overlaps]}

    def __rich__(self) -> Group:
        title = (
            f"MRR@10 over {self.candidates} candidates of each first stage, {self.queries} queries of {self.dataset}"
        )
        radical = f"RaDiCal, R = {self.keep_ratio:g}"
        figures = Table("first stage", "target among them", "its own order", "dense", radical, title=escape(title))
        for name, pool in self.pools.items():
            values = (pool.first_stage, pool.dense, pool.radical)
            figures.add_row(escape(name), f"{pool.pool_recall:.1%}", *(f"{value:.3f}" for value in values))
        jaccard, rbo = f"Jaccard@{self.candidates}", f"RBO (p = {PERSISTENCE})"
        alike = Table("first stage", "and", jaccard, rbo, title="How alike the candidates are")
        for two in self.overlaps:
            alike.add_row(escape(two.first), escape(two.second), f"{two.jaccard:.3f}", f"{two.rbo:.3f}")
        return Group(figures, alike) if self.overlaps else Group(figures)


def compare_first_stages(
    dataset: Dataset,
    first_stages: Sequence[AnyFirstStage],
    vlm: ListwiseVLM,
    *,
    qrels: Qrels | None = None,
    candidates: int = 20,
    keep_ratio: float = 0.2,
    batch_size: int = 32,
    trust_remote_code: bool = False,
    device: ComponentDevice | None = None,
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> FirstStageComparison:
    """
    Rerank the candidates of several first stages, and measure how alike those are (the paper's table of retrievers).

    Each first stage searches all images of the query's category; a composed query's own reference is left out.

    :param dataset: The data set, its images in files.
    :param first_stages: The first stages, as `build_indexing_pipeline` takes them.
    :param vlm: The reranking model. One without a schedule measures itself on its first queries, which are then not
        pruned: calibrate it before.
    :param qrels: The relevance judgements; `None` for the data set's. For the drawn catalogue take
        `dataset.gallery_qrels()`: more images than a query's own candidates are searched here.
    :param candidates: How many candidates each first stage gives.
    :param keep_ratio: RaDiCal's keep ratio, in (0, 1].
    :param batch_size: Images that a first stage embeds at once.
    :param trust_remote_code: Whether code that comes with a first stage's model may run.
    :param device: Where to run the first stages; `None` for the default device.
    :param progress: Called with what is done, the number of items done and of all.
    :returns: The comparison.
    :raises ValueError: If there is no first stage, two of one name, or no query, or `candidates` is not positive.
    :raises ImageReadError: If the reference image of a query is missing.
    """
    stages = [first_stage_of(stage, trust_remote_code=trust_remote_code) for stage in first_stages]
    names = [stage.name for stage in stages]
    if not stages or len(set(names)) < len(names):
        raise ValueError(f"First stages to compare must have names of their own, not {', '.join(names) or 'none'}.")
    if candidates < 1:
        raise ValueError(f"At least 1 candidate is needed, not {candidates}.")
    judged = dataset.qrels if qrels is None else qrels
    pools, figures = {}, {}
    for stage in stages:
        pools[stage.name] = retrieve_pools(
            dataset, stage, candidates, batch_size=batch_size, device=device, progress=progress
        )
        orders = _rerank(dataset, stage.name, pools[stage.name], vlm, keep_ratio, progress)
        figures[stage.name] = _figures(dataset, judged, pools[stage.name], *orders)
    overlaps = tuple(_overlap(one, other, pools[one], pools[other]) for one, other in combinations(names, 2))
    return FirstStageComparison(dataset.name, len(dataset.queries), candidates, keep_ratio, figures, overlaps)


def jaccard_index(first: Sequence[str], second: Sequence[str]) -> float:
    """
    Share of the documents of two lists that both have; 1 for two empty ones.

    :param first: Ids of documents.
    :param second: The same of another list.
    """
    union = set(first) | set(second)
    return len(set(first) & set(second)) / len(union) if union else 1.0


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], p: float = PERSISTENCE) -> float:
    """
    How alike two rankings are, their tops counting most: 1 for the same order, 0 for nothing in common.

    Rank-biased overlap, extrapolated beyond the end of the lists by the agreement there (Webber, Moffat and Zobel 2010,
    RBO_EXT).

    :param first: Ids of documents, best first.
    :param second: The same of another ranking, as long as the first.
    :param p: Probability of looking one rank further, in (0, 1).
    :raises ValueError: If the lists are not equally long or have a document twice, or `p` is out of range.
    """
    depth = len(first)
    if not 0 < p < 1:
        raise ValueError(f"p must be in (0, 1), not {p}.")
    if {depth} != {len(second), len(set(first)), len(set(second))}:
        raise ValueError("Rank-biased overlap needs two lists of the same length in which nothing comes twice.")
    if not depth:
        return 1.0
    seen: tuple[set[str], set[str]] = (set(), set())
    total, agreement = 0.0, 0.0
    for rank, (one, other) in enumerate(zip(first, second, strict=True), start=1):
        seen[0].add(one)
        seen[1].add(other)
        agreement = len(seen[0] & seen[1]) / rank
        total += (1 - p) * p ** (rank - 1) * agreement
    return total + p**depth * agreement


def retrieve_pools(
    dataset: Dataset,
    stage: FirstStage | EmbedderPair,
    size: int,
    *,
    batch_size: int = 32,
    device: ComponentDevice | None = None,
    skip_unreadable: bool = False,
    folder: str | Path | None = None,
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> dict[str, list[str]]:
    """
    Let a first stage find images for all queries, each among the images of its category.

    :param dataset: The data set, its images in files.
    :param stage: The first stage.
    :param size: How many images to find for each query; its own reference is left out.
    :param batch_size: Images that the first stage embeds at once.
    :param device: Where to run it; `None` for the default device.
    :param skip_unreadable: Whether a query whose reference image cannot be read is left out, and no error.
    :param folder: Where to keep embeddings, so that a run that is interrupted loses one batch; `None`: nowhere.
    :param progress: Called with what is done, the number of images looked at and of all.
    :returns: By query id, the ids of what was found, best first.
    :raises ValueError: If the images are not in files.
    :raises ImageReadError: If the reference image of a query cannot be read.
    """
    embed = _query_embedder(dataset, stage, device)
    pools: dict[str, list[str]] = {}
    parts = [dataset.of_category(name) for name in dict.fromkeys(dataset.categories.values())] or [dataset]
    for number, part in enumerate(parts):
        queries: dict[str, list[float]] = {}
        for query in part.queries:
            try:
                queries[query.id] = embed(query)
            except ImageReadError:
                if not skip_unreadable:
                    raise
        if not queries:
            continue
        dimension = len(next(iter(queries.values())))
        with _store(part, stage, dimension, None if folder is None else Path(folder) / str(number)) as (store, written):
            fill_store(
                part,
                store,
                stage,
                batch_size=batch_size,
                device=device,
                written=written,
                progress=lambda *at: progress(f"Embedding with {stage.name}", *at),
            )
        retriever = FirstStageRetriever(retriever=find_retriever(store), first_stage=stage.name, top_k=size + 1)
        references = {query.id: query.reference.id for query in part.queries if query.reference}
        for name, embedding in queries.items():
            found = [document.id for document in retriever.run(query_embedding=embedding)["documents"]]
            pools[name] = [document for document in found if document != references.get(name)][:size]
    return pools


@contextmanager
def _store(
    dataset: Dataset, stage: FirstStage | EmbedderPair, dimension: int, folder: Path | None
) -> Iterator[tuple[FAISSDocumentStore, Callable[[Sequence[Document]], None]]]:
    """A store, and what to tell of each batch that is written to it; the store's folder, if any, is then up to date."""
    if folder is None:
        yield FAISSDocumentStore(embedding_dim=dimension), lambda documents: None
        return
    if (folder / "store.json").exists():
        check_first_stage(folder, read_store_info(folder), stage)
        store = open_store(folder)
    else:
        store = create_store(folder, StoreInfo(stage.name, dimension, dataset.root, stage.weights_digest))
    with journal(folder) as append:
        yield store, append
    save_store(store, folder)


def _query_embedder(
    dataset: Dataset, stage: FirstStage | EmbedderPair, device: ComponentDevice | None
) -> Callable[[DatasetQuery], list[float]]:
    composed = any(query.reference for query in dataset.queries)
    text_embedder = stage.text_embedder(device=device)
    composed_embedder = stage.composed_embedder(device=device) if composed else None

    def embed(query: DatasetQuery) -> list[float]:
        if query.reference is None or composed_embedder is None:
            output = text_embedder.run(text=query.text)
        else:
            image = dataset.image(query.reference)
            output = composed_embedder.run(composed_query=ComposedQuery(query.text, image))
        embedding: list[float] = output["embedding"]
        return embedding

    return embed


def _rerank(
    dataset: Dataset,
    name: str,
    pools: Run,
    vlm: ListwiseVLM,
    keep_ratio: float,
    progress: Callable[[str, int, int], None],
) -> tuple[Run, Run]:
    """The orders of dense ranking and of RaDiCal."""
    dense: dict[str, list[str]] = {}
    radical: dict[str, list[str]] = {}
    for done, query in enumerate(dataset.queries, start=1):
        pool = pools[query.id]
        images = [dataset.image(dataset.by_id[document]) for document in pool]
        reference = dataset.image(query.reference) if query.reference else None
        for orders, pruner, ratio in ((dense, "dense", 1.0), (radical, "radical", keep_ratio)):
            ranking = vlm.rank(query.text, images, reference, pruner=pruner, keep_ratio=ratio)
            orders[query.id] = [pool[place] for place in ranking.order]
        progress(f"Ranking what {name} found", done, len(dataset.queries))
    return dense, radical


def _figures(dataset: Dataset, qrels: Qrels, pool: Run, dense: Run, radical: Run) -> PoolFigures:
    runs = [evaluate_run(run, qrels, relevant_from=dataset.relevant_from) for run in (pool, dense, radical)]
    hits = runs[0].conditional[OVERALL].queries / runs[0].unconditional[OVERALL].queries
    return PoolFigures(hits, *(run.unconditional[OVERALL].means["MRR@10"] for run in runs))


def _overlap(first: str, second: str, one: Run, other: Run) -> PoolOverlap:
    return PoolOverlap(
        first,
        second,
        jaccard=fmean(jaccard_index(one[query], other[query]) for query in one),
        rbo=fmean(rank_biased_overlap(one[query], other[query]) for query in one),
    )
