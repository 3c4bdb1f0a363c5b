# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What every data set yields: documents, queries, relevance, and the candidates a query is ranked with."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from haystack import Document
from PIL import Image

from radical_haystack.components.image_loading import load_image

_Set = TypeVar("_Set", bound="Dataset")


@dataclass(frozen=True)
class DatasetQuery:
    """
    One query.

    :param id: Its id, the same each time the data set is loaded.
    :param text: What is asked for; with a reference, what shall be different from it.
    :param category: The part of the data set it belongs to and whose images it is answered with; empty if there are no
        such parts.
    :param reference: The document of the reference image of a composed query, or `None`.
    """

    id: str
    text: str
    category: str = ""
    reference: Document | None = None


@dataclass(frozen=True)
class Dataset:
    """
    Images, queries, and which images answer which query.

    A document's image is the file that `meta["file_path"]` names, relative to `root`; `meta["name"]` is what the
    annotations call it, and `meta["category"]` its part of the data set, where there are such parts.

    :param name: Name of the data set.
    :param root: The folder that the documents' paths start from; empty where the images are not in files.
    :param documents: The images that may be found.
    :param queries: The queries.
    :param qrels: By query id and document id, the grade of relevance; documents that are not named have grade 0.
    :param missing: Documents of the images that the annotations name and that are not there.
    :param candidates: By query id, the ids of the candidates, where the data set itself chooses them.
    :param relevant_from: The least grade that counts as relevant where relevance is a matter of yes or no.
    :param candidates_per_query: How many candidates a query is ranked with.
    :param pool_size: From how many of the first stage's best they are drawn.
    """

    name: str
    root: str
    documents: tuple[Document, ...]
    queries: tuple[DatasetQuery, ...]
    qrels: Mapping[str, Mapping[str, int]]
    missing: tuple[Document, ...] = ()
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    relevant_from: int = 1
    candidates_per_query: int = 20
    pool_size: int = 20

    @cached_property
    def by_id(self) -> dict[str, Document]:
        """The documents by their ids."""
        return {document.id: document for document in self.documents}

    @cached_property
    def categories(self) -> dict[str, str]:
        """The category of each query by its id; empty where there are no categories."""
        return {query.id: query.category for query in self.queries if query.category}

    def image(self, document: Document) -> Image.Image:
        """
        The picture of one of its documents, a reference included.

        :param document: The document.
        :returns: An RGB image.
        :raises ImageReadError: If it cannot be read.
        """
        return load_image(document, root_path=self.root)

    def of_category(self: _Set, category: str) -> _Set:
        """
        The part that one category makes up; a store filled with it answers the queries of that category.

        :param category: The category.
        :raises ValueError: If no query belongs to it.
        """
        if category not in self.categories.values():
            known = ", ".join(dict.fromkeys(self.categories.values())) or "none"
            raise ValueError(f"The data set '{self.name}' has no queries of a category '{category}'; known: {known}.")
        part = self._with_queries([query for query in self.queries if query.category == category])
        return replace(
            part,
            documents=tuple(d for d in self.documents if d.meta["category"] == category),
            missing=tuple(d for d in self.missing if d.meta["category"] == category),
        )

    def sample(self: _Set, count: int, *, seed: int = 42) -> _Set:
        """
        The same data set with fewer queries, drawn at random without replacement; all images stay.

        :param count: How many queries; all of them if there are not more.
        :param seed: Seed of the drawing.
        :raises ValueError: If the count is not positive.
        """
        if count < 1:
            raise ValueError(f"At least 1 query must be sampled, not {count}.")
        drawn = random.Random(f"{self.name}/queries/{seed}").sample(self.queries, min(count, len(self.queries)))
        wanted = {query.id for query in drawn}
        return self._with_queries([query for query in self.queries if query.id in wanted])

    def draw_candidates(
        self, query: DatasetQuery, retrieved: Sequence[str] | None = None, *, seed: int = 42
    ) -> list[str]:
        """
        Choose the candidates that a query is ranked with. The reference is never among them.

        Candidates that the data set fixes are returned as they are. Else `candidates_per_query` are drawn at random
        from the first `pool_size` of `retrieved`, in whose order they stay [choice]: the target may or may not be
        among them. With no first stage they are drawn from all images of the query's category, the target included, in
        random order [choice].

        :param query: The query.
        :param retrieved: Ids of what a first stage found, best first, or `None`. At least one more than `pool_size`,
            so that the pool is full when the reference is taken out.
        :param seed: Seed of the drawing; each query has a generator of its own.
        :returns: Their ids.
        """
        if query.id in self.candidates:
            return list(self.candidates[query.id])
        rng = random.Random(f"{self.name}/candidates/{seed}/{query.id}")
        reference = query.reference.id if query.reference else None
        if retrieved is not None:
            pool = [document for document in retrieved if document != reference][: self.pool_size]
            places = rng.sample(range(len(pool)), min(self.candidates_per_query, len(pool)))
            return [pool[place] for place in sorted(places)]
        grades = self.qrels.get(query.id, {})
        chosen = [name for name, grade in grades.items() if grade >= self.relevant_from and name in self.by_id]
        excluded = {*chosen, reference}
        gallery = self._galleries.get(query.category, [])
        drawn = rng.sample(gallery, min(self.candidates_per_query + len(excluded), len(gallery)))
        chosen += [document for document in drawn if document not in excluded]
        chosen = chosen[: self.candidates_per_query]
        rng.shuffle(chosen)
        return chosen

    def summary(self) -> dict[str, Any]:
        """
        What was found, as plain values.

        :returns: `queries`; `queries_by_category`; `images` that are there; `missing_images` that are not, and
            `missing_image_names`; `candidates` per query and the `pool` they are drawn from;
            `queries_without_reference` and `queries_without_target`, whose images are missing.
        """
        missing = {document.id for document in self.missing}
        references = [query.reference.id for query in self.queries if query.reference]
        targets = [self._targets(query) for query in self.queries]
        names = list(dict.fromkeys(document.meta["name"] for document in self.missing))
        return {
            "queries": len(self.queries),
            "queries_by_category": dict(Counter(self.categories.values())),
            "images": len({document.meta["file_path"] for document in self.documents}),
            "missing_images": len(names),
            "missing_image_names": names,
            "candidates": self.candidates_per_query,
            "pool": self.pool_size,
            "queries_without_reference": sum(reference in missing for reference in references),
            "queries_without_target": sum(ids <= missing for ids in targets),
        }

    @cached_property
    def _galleries(self) -> dict[str, list[str]]:
        """The ids of the documents by category; the empty one where there are none."""
        galleries: dict[str, list[str]] = {}
        for document in self.documents:
            galleries.setdefault(document.meta.get("category", ""), []).append(document.id)
        return galleries

    def _targets(self, query: DatasetQuery) -> set[str]:
        return {name for name, grade in self.qrels[query.id].items() if grade >= self.relevant_from}

    def _with_queries(self: _Set, queries: Sequence[DatasetQuery]) -> _Set:
        return replace(
            self,
            queries=tuple(queries),
            qrels={query.id: self.qrels[query.id] for query in queries},
            candidates={query.id: self.candidates[query.id] for query in queries if query.id in self.candidates},
        )
