# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The candidates that a query is ranked with, and the sampling of queries: properties of every data set."""

from dataclasses import replace

import pytest
from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.evaluation import Dataset, DatasetQuery


def documents_of(category: str, count: int) -> list[Document]:
    return [Document(id=f"{category}{n}", meta={"name": str(n), "category": category}) for n in range(count)]


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """One composed query of the category `a`, whose target may be missing, among documents of two categories."""
    own = documents_of("a", draw(st.integers(2, 40)))
    query = DatasetQuery("q", "is red", "a", reference=own[0])
    missing = own[1:2] if draw(st.booleans()) else []
    return Dataset(
        name="drawn",
        root="",
        documents=tuple(d for d in [*own, *documents_of("b", 5)] if d not in missing),
        queries=(query,),
        qrels={"q": {"a1": 2, "a2": 1, "b1": 1}},
        missing=tuple(missing),
        relevant_from=2,
        candidates_per_query=draw(st.integers(1, 25)),
        pool_size=draw(st.integers(1, 50)),
    )


@given(datasets(), st.integers(0, 60), st.integers(0, 5))
def test_candidates_from_a_first_stage(dataset: Dataset, found: int, seed: int) -> None:
    query = dataset.queries[0]
    retrieved = [document.id for document in dataset.documents][:found]
    candidates = dataset.draw_candidates(query, retrieved, seed=seed)
    pool = [name for name in retrieved if name != "a0"][: dataset.pool_size]
    assert len(candidates) == min(dataset.candidates_per_query, len(pool))
    assert candidates == [name for name in pool if name in candidates]
    assert candidates == dataset.draw_candidates(query, retrieved, seed=seed)


@given(datasets(), st.integers(0, 5))
def test_candidates_without_a_first_stage(dataset: Dataset, seed: int) -> None:
    query = dataset.queries[0]
    candidates = dataset.draw_candidates(query, seed=seed)
    others = {document.id for document in dataset.documents if document.meta["category"] == "a"} - {"a0"}
    assert set(candidates) <= others
    assert len(candidates) == len(set(candidates)) == min(dataset.candidates_per_query, len(others))
    assert ("a1" in candidates) or dataset.missing
    assert candidates == dataset.draw_candidates(query, seed=seed)


def test_drawing_varies_and_is_even() -> None:
    """Over many seeds, each place of the pool is drawn as often as the others, and the target stands everywhere."""
    documents = documents_of("a", 11)
    query = DatasetQuery("q", "is red", "a", reference=documents[0])
    dataset = Dataset("drawn", "", tuple(documents), (query,), {"q": {"a1": 1}}, candidates_per_query=4, pool_size=8)
    retrieved = [document.id for document in documents]
    counts = dict.fromkeys(retrieved, 0)
    places = [0] * 4
    for seed in range(400):
        for name in dataset.draw_candidates(query, retrieved, seed=seed):
            counts[name] += 1
        places[dataset.draw_candidates(query, seed=seed).index("a1")] += 1
    assert all(150 < counts[f"a{n}"] < 250 for n in range(1, 9))  # 200 expected
    assert counts["a0"] == counts["a9"] == counts["a10"] == 0
    assert all(60 < place < 140 for place in places)  # 100 expected


def test_queries_have_draws_of_their_own() -> None:
    documents = documents_of("a", 30)
    queries = tuple(DatasetQuery(f"q{n}", "red", "a") for n in range(5))
    dataset = Dataset("d", "", tuple(documents), queries, {q.id: {"a1": 1} for q in queries}, candidates_per_query=5)
    assert len({tuple(dataset.draw_candidates(query)) for query in queries}) == 5
    smaller = replace(dataset, queries=queries[2:])
    assert smaller.draw_candidates(queries[3]) == dataset.draw_candidates(queries[3])


def test_fixed_candidates_stay() -> None:
    query = DatasetQuery("q", "red")
    dataset = Dataset("d", "", tuple(documents_of("a", 9)), (query,), {"q": {"a1": 1}}, candidates={"q": ("a5", "a1")})
    assert dataset.draw_candidates(query) == ["a5", "a1"]
    assert dataset.draw_candidates(query, ["a3", "a4"]) == ["a5", "a1"]


def test_candidates_of_a_data_set_without_categories() -> None:
    documents = [Document(id=str(n), meta={"name": str(n)}) for n in range(30)]
    query = DatasetQuery("q", "red")
    candidates = Dataset("d", "", tuple(documents), (query,), {"q": {"7": 1}}).draw_candidates(query)
    assert len(set(candidates)) == 20
    assert "7" in candidates


@pytest.mark.parametrize("count", [0, -1])
def test_sample_refuses(count: int) -> None:
    dataset = Dataset("d", "", (), (DatasetQuery("q", "red"),), {"q": {"1": 1}})
    with pytest.raises(ValueError, match=str(count)):
        dataset.sample(count)
    with pytest.raises(ValueError, match="known: none"):
        dataset.of_category("x")
