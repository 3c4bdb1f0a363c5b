# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The benchmark that comes with the package: held-out outfits of the drawn catalogue, with hard candidates."""

import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from haystack import Document
from PIL import Image

from radical_haystack.catalog import (
    BenchmarkItem,
    Garment,
    GarmentSpec,
    Outfit,
    Scene,
    benchmark_composed,
    benchmark_text,
    draw,
)
from radical_haystack.evaluation.datasets.base import Dataset, DatasetQuery

FULL_MATCH = 10
"""The grade of an image that has everything the query asks for; lower ones count tenths of what is asked for."""

_Look: TypeAlias = frozenset[tuple[str | None, ...]]


@dataclass(frozen=True)
class CatalogueDataset(Dataset):
    """
    The drawn benchmark. Its images are drawn when they are asked for, or lie in files.

    :param items: By query id, what the query, its candidates and its reference were drawn from, for whatever needs to
        know the truth, such as which tokens show the queried garment.
    :param scenes: By document id, what to draw.
    """

    items: Mapping[str, BenchmarkItem] = field(default_factory=dict)
    scenes: Mapping[str, tuple[Outfit, Scene]] = field(default_factory=dict)

    def image(self, document: Document) -> Image.Image:
        """
        The picture of one of its documents, a reference included; from its file, if it has one, else drawn.

        :param document: The document.
        :returns: An RGB image, the same in either case.
        """
        return super().image(document) if self.root else draw(*self.scenes[document.id]).image

    def gallery_qrels(self) -> dict[str, dict[str, int]]:
        """
        The relevance judgements for a first stage that searches all images of a query's category.

        The candidates of other queries have a few more full matches; `qrels` has those of its own candidates only.

        :returns: By query id and document id, the grade.
        """
        looks: defaultdict[tuple[str, _Look], list[tuple[str, Outfit]]] = defaultdict(list)
        for document in self.documents:
            outfit, _ = self.scenes[document.id]
            looks[document.meta["category"], _look(outfit.garments)].append((document.id, outfit))
        qrels: dict[str, dict[str, int]] = {}
        for query in self.queries:
            wanted = self.items[query.id].query
            # All queries of the benchmark name all garments, so whatever matches one has the look that it asks for.
            alike = looks[query.category, _look(wanted.wanted)]
            qrels[query.id] = {name: FULL_MATCH for name, outfit in alike if wanted.matches(outfit)}
            qrels[query.id] |= self.qrels[query.id]
        return qrels


def load_catalogue(
    root: str | Path | None = None,
    *,
    queries: int = 200,
    candidates: int = 20,
    seed: int = 42,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CatalogueDataset:
    """
    Make the benchmark of the drawn catalogue: as many text queries as composed ones, with hard candidates.

    The category of a query, and of its images, is `text` or `composed`. A query's candidates are graded from 0 to
    `FULL_MATCH`, which only one of them reaches. The same seed gives the same queries, candidates and images.

    :param root: A folder to draw the images into, for pipelines and stores, which read files; those that are there
        already are kept. `None`: draw each when it is asked for.
    :param queries: How many queries of each category.
    :param candidates: How many candidates each has, the target included.
    :param seed: Seed of the queries and of all that is drawn.
    :param progress: Called with the number of files looked at and of all.
    :returns: The data set.
    :raises ValueError: If a number is not positive.
    """
    if min(queries, candidates) < 1:
        raise ValueError(
            f"The catalogue needs at least 1 query of each category and 1 candidate, not {queries} and {candidates}."
        )
    made: list[DatasetQuery] = []
    items: dict[str, BenchmarkItem] = {}
    scenes: dict[str, tuple[Outfit, Scene]] = {}
    ids: dict[str, tuple[str, ...]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for category, benchmark in (
        ("text", benchmark_text(seed, queries, candidates)),
        ("composed", benchmark_composed(seed, queries, candidates)),
    ):
        for number, item in enumerate(benchmark, start=1):
            query_id = f"{category}-{seed}-{candidates}-{number:04d}"
            reference = None
            if item.reference:
                reference = _document(f"{query_id}-reference", category)
                scenes[reference.id] = item.reference
            made.append(DatasetQuery(query_id, item.query.text, category, reference))
            items[query_id] = item
            ids[query_id] = tuple(f"{query_id}-{place:02d}" for place in range(1, len(item.candidates) + 1))
            scenes |= dict(zip(ids[query_id], item.candidates, strict=True))
            grades = (FULL_MATCH * relevance // item.query.max_relevance for relevance in item.relevances)
            qrels[query_id] = dict(zip(ids[query_id], grades, strict=True))
    documents = tuple(_document(name, query.category) for query in made for name in ids[query.id])
    if root is not None:
        _write(Path(root), scenes, progress)
    return CatalogueDataset(
        name="catalogue",
        root=str(root or ""),
        documents=documents,
        queries=tuple(made),
        qrels=qrels,
        candidates=ids,
        relevant_from=FULL_MATCH,
        candidates_per_query=candidates,
        pool_size=candidates,
        items=items,
        scenes=scenes,
    )


def _document(name: str, category: str) -> Document:
    return Document(id=name, meta={"file_path": f"{name}.png", "name": name, "category": category})


def _look(garments: tuple[Garment, ...] | tuple[GarmentSpec, ...]) -> _Look:
    """All that a full description always names: everything but the pockets."""
    return frozenset((garment.kind, garment.colour, garment.pattern, garment.length) for garment in garments)


def _write(root: Path, scenes: Mapping[str, tuple[Outfit, Scene]], progress: Callable[[int, int], None]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for done, (name, scene) in enumerate(scenes.items(), start=1):
        path = root / f"{name}.png"
        if not path.exists():
            partial = root / f".{name}.{os.getpid()}.part"
            draw(*scene).image.save(partial, format="PNG")
            os.replace(partial, path)
        progress(done, len(scenes))
