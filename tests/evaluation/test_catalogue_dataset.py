# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The drawn benchmark as a data set."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from radical_haystack.catalog import benchmark_composed, benchmark_text, draw
from radical_haystack.evaluation import CatalogueDataset, load_catalogue
from radical_haystack.evaluation.datasets.catalogue import FULL_MATCH


@pytest.fixture(scope="module")
def dataset() -> CatalogueDataset:
    return load_catalogue(queries=3, seed=5)


def test_it_is_the_benchmark_of_the_catalogue(dataset: CatalogueDataset) -> None:
    items = [*benchmark_text(5, 3), *benchmark_composed(5, 3)]
    assert [query.text for query in dataset.queries] == [item.query.text for item in items]
    assert [query.category for query in dataset.queries] == ["text"] * 3 + ["composed"] * 3
    assert len(dataset.documents) == len(dataset.by_id) == 120
    assert dataset.missing == ()
    for query, item in zip(dataset.queries, items, strict=True):
        assert dataset.items[query.id] == item
        assert (query.reference is None) == (item.reference is None)
        candidates = dataset.draw_candidates(query)
        assert [dataset.scenes[name] for name in candidates] == list(item.candidates)
        assert all(dataset.by_id[name].meta["category"] == query.category for name in candidates)
        assert set(dataset.qrels[query.id]) == set(candidates)
        grades = [dataset.qrels[query.id][name] for name in candidates]
        assert grades.index(FULL_MATCH) == item.target_index
        assert sum(grade >= dataset.relevant_from for grade in grades) == 1
        order = np.argsort(item.relevances, kind="stable")
        assert np.all(np.diff(np.array(grades)[order]) >= 0)


def test_references_are_apart(dataset: CatalogueDataset) -> None:
    references = [query.reference for query in dataset.queries if query.reference]
    assert len(references) == 3
    assert not {document.id for document in references} & set(dataset.by_id)


def test_pictures_are_the_same_from_memory_and_from_files(tmp_path: Path) -> None:
    unfiled = load_catalogue(queries=1, seed=5, candidates=4)
    seen = []
    root = tmp_path / "made" / "here"
    filed = load_catalogue(root, queries=1, seed=5, candidates=4, progress=lambda *at: seen.append(at))
    assert seen[-1] == (9, 9)
    assert len(list(root.iterdir())) == 9
    reference = filed.queries[1].reference
    assert reference is not None
    for document in (filed.documents[0], filed.documents[7], reference):
        drawn = draw(*unfiled.scenes[document.id]).image
        assert np.array_equal(filed.image(document), drawn)
        assert np.array_equal(unfiled.image(document), drawn)


def test_files_that_are_there_are_kept(tmp_path: Path) -> None:
    dataset = load_catalogue(tmp_path, queries=1, seed=5, candidates=4)
    first, second = (tmp_path / document.meta["file_path"] for document in dataset.documents[:2])
    first.write_bytes(second.read_bytes())
    third = tmp_path / dataset.documents[2].meta["file_path"]
    third.unlink()
    load_catalogue(tmp_path, queries=1, seed=5, candidates=4)
    assert first.read_bytes() == second.read_bytes()
    assert third.is_file()
    assert len(list(tmp_path.iterdir())) == 9  # and nothing half-written


def test_other_numbers_of_candidates_are_other_pictures(dataset: CatalogueDataset) -> None:
    small = load_catalogue(queries=2, candidates=5, seed=5)
    assert all(len(small.draw_candidates(query)) == 5 for query in small.queries)
    assert (small.candidates_per_query, small.pool_size) == (5, 5)
    assert not set(small.by_id) & set(dataset.by_id)


def test_full_matches_among_the_candidates_of_other_queries() -> None:
    """Give some queries another one's target, and compare with asking each query about each outfit."""
    dataset = load_catalogue(queries=6, seed=0)
    scenes = dict(dataset.scenes)
    for first, second in ((0, 1), (1, 2), (6, 7), (0, 7)):
        loser, target = dataset.queries[first].id, dataset.queries[second].id
        names = dataset.candidates[loser]
        place = (dataset.items[loser].target_index + second) % 20
        scenes[names[place]] = scenes[dataset.candidates[target][dataset.items[target].target_index]]
    dataset = replace(dataset, scenes=scenes).sample(9, seed=1)
    found_elsewhere = 0
    for query in dataset.queries:
        graded = dataset.gallery_qrels()[query.id]
        own = dataset.candidates[query.id]
        assert {name: graded[name] for name in own} == dataset.qrels[query.id]
        others = {
            document.id
            for document in dataset.documents
            if document.id not in own
            and document.meta["category"] == query.category
            and dataset.items[query.id].query.matches(scenes[document.id][0])
        }
        assert {name: grade for name, grade in graded.items() if name not in own} == dict.fromkeys(others, FULL_MATCH)
        found_elsewhere += len(others)
    assert found_elsewhere >= 2


def test_numbers_must_be_positive() -> None:
    with pytest.raises(ValueError, match="not 0 and 20"):
        load_catalogue(queries=0)
    with pytest.raises(ValueError, match="not 200 and 0"):
        load_catalogue(candidates=0)


def test_seeds_differ_and_repeat(dataset: CatalogueDataset) -> None:
    again = load_catalogue(queries=3, seed=5)
    assert (again.queries, again.qrels, again.scenes) == (dataset.queries, dataset.qrels, dataset.scenes)
    other = load_catalogue(queries=3, seed=6)
    assert not {query.text for query in other.queries} & {query.text for query in dataset.queries}
    assert not set(other.by_id) & set(dataset.by_id)


def test_one_category(dataset: CatalogueDataset) -> None:
    part = dataset.of_category("composed")
    assert isinstance(part, CatalogueDataset)
    assert set(part.candidates) == set(part.qrels) == {query.id for query in part.queries}
    assert len(part.documents) == 60
    assert part.image(part.documents[0]).size == (256, 256)
