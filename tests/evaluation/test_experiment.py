# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What an experiment says, how it is stored, and what its seeds draw."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from radical_haystack.evaluation import (
    CatalogueDataset,
    Experiment,
    Method,
    load_catalogue,
    load_fashioniq,
    load_mscoco,
    parse_methods,
)
from radical_haystack.evaluation.experiment import Case, draw_cases, jobs_of

METHODS = parse_methods(["dense,radical,random", "radical:layers=1+3", "arithmetic-fusion"])


@pytest.fixture(scope="module")
def catalogue() -> CatalogueDataset:
    return load_catalogue(queries=4, candidates=5)


def test_json_brings_it_back() -> None:
    experiment = Experiment(
        METHODS,
        dataset="mscoco",
        root="/data/coco",
        dataset_arguments={"seed": 3},
        queries=None,
        candidates=30,
        pool=50,
        first_stage="bundled",
        keep_ratios=(0.2, 0.1),
        seeds=(42, 123),
        model="some/model",
        scoring="generate",
        window_size=30,
        window_step=15,
    )
    assert Experiment.from_dict(json.loads(json.dumps(experiment.to_dict()))) == experiment
    assert experiment != replace(experiment, seeds=(42,))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"methods": ()}, "at least one of methods"),
        ({"keep_ratios": ()}, "at least one of keep ratios"),
        ({"seeds": ()}, "at least one of seeds"),
        ({"methods": (Method("a"), Method("a", "random"))}, "method 'a' is given twice"),
        ({"keep_ratios": (0.2, 0.2)}, "keep ratio '0.2' is given twice"),
        ({"seeds": (1, 1)}, "seed '1' is given twice"),
        ({"keep_ratios": (0.0,)}, "keep ratio must be in"),
        ({"keep_ratios": (1.5,)}, "keep ratio must be in"),
        ({"queries": 0}, "at least 1 of queries, not 0"),
        ({"candidates": 0}, "at least 1 of candidates, not 0"),
        ({"pool": 10}, "A pool of 10 has no 20 candidates"),
        ({"scoring": "magic"}, "Unknown scoring 'magic'"),
        ({"window_size": 53}, "window size"),
        ({"window_size": 5}, "window step"),
    ],
)
def test_mistakes(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Experiment(**parameters)


def test_data_sets_by_name(fashioniq: Path) -> None:
    assert Experiment(queries=2, candidates=3).load_dataset().summary()["queries"] == 4
    assert Experiment(dataset="fashioniq", root=str(fashioniq)).load_dataset().name == "fashioniq"
    with pytest.raises(ValueError, match="no data set 'flickr8k'; known: catalogue, fashioniq, flickr30k, mscoco"):
        Experiment(dataset="flickr8k").load_dataset()
    with pytest.raises(ValueError, match="needs the folder"):
        Experiment(dataset="mscoco").load_dataset()


def test_captions_are_drawn_as_their_loader_draws_them(write_karpathy) -> None:
    root = write_karpathy("dataset_coco.json", filepath="val2014")
    experiment = Experiment(dataset="mscoco", root=str(root), queries=3, candidates=2, seeds=(5,))
    dataset = experiment.prepare(experiment.load_dataset())
    assert len(dataset.queries) == 6
    drawn = [query.id for query in experiment.queries_of(dataset, 5)]
    assert drawn == [query.id for query in load_mscoco(root, queries=3, seed=5).queries]


def test_seeds_draw_as_the_data_set_does(fashioniq: Path) -> None:
    experiment = Experiment(METHODS, dataset="fashioniq", root=str(fashioniq), queries=3, candidates=2, seeds=(1, 2, 3))
    dataset = experiment.prepare(load_fashioniq(fashioniq))
    cases = draw_cases(experiment, dataset)
    by_seed = {(seed, case.query): case.candidates for case in cases for seed in case.seeds}
    expected = {}
    for seed in (1, 2, 3):
        small = replace(load_fashioniq(fashioniq), candidates_per_query=2)
        for query in small.sample(3, seed=seed).queries:
            expected[seed, query.id] = tuple(small.draw_candidates(query, seed=seed))
    assert by_seed == expected
    assert len({(case.query, case.candidates) for case in cases}) == len(cases)


def test_what_seeds_draw_alike_is_ranked_once(catalogue: CatalogueDataset) -> None:
    experiment = Experiment(METHODS, queries=None, candidates=5, keep_ratios=(0.5, 0.2), seeds=(1, 2))
    cases = draw_cases(experiment, experiment.prepare(catalogue))
    assert [case.query for case in cases] == [query.id for query in catalogue.queries]
    assert all(case.seeds == (1, 2) for case in cases)
    jobs = [(job.method, job.keep_ratio, job.seeds) for job in jobs_of(experiment, cases[0])]
    assert jobs == [
        ("dense", 1.0, (1, 2)),
        ("radical", 0.5, (1, 2)),
        ("radical", 0.2, (1, 2)),
        ("random", 0.5, (1,)),
        ("random", 0.5, (2,)),
        ("random", 0.2, (1,)),
        ("random", 0.2, (2,)),
        ("radical:layers=1+3", 0.5, (1, 2)),
        ("radical:layers=1+3", 0.2, (1, 2)),
        ("arithmetic-fusion", 0.5, (1, 2)),
        ("arithmetic-fusion", 0.2, (1, 2)),
    ]


def test_category_candidates_and_pool(catalogue: CatalogueDataset, fashioniq: Path) -> None:
    text = Experiment(category="text", candidates=5).prepare(catalogue)
    assert {query.category for query in text.queries} == {"text"}
    assert (text.candidates_per_query, text.pool_size) == (5, 5)
    # FashionIQ draws its candidates from a pool, captions take the first stage's best.
    dataset = load_fashioniq(fashioniq)
    assert Experiment(candidates=10).prepare(dataset).pool_size == 50
    assert Experiment(candidates=51, window_size=52).prepare(dataset).pool_size == 51
    assert Experiment(candidates=10, pool=11).prepare(dataset).pool_size == 11
    with pytest.raises(ValueError, match="no queries of a category 'shoes'"):
        Experiment(category="shoes").prepare(catalogue)


def test_a_first_stage_searches_all_images(catalogue: CatalogueDataset) -> None:
    experiment = Experiment(first_stage="bundled", candidates=3)
    dataset = experiment.prepare(catalogue)
    query = dataset.queries[0]
    found = [document.id for document in dataset.documents[::-1]]
    assert draw_cases(replace(experiment, queries=None), dataset, {query.id: found})[0] == Case(
        query.id, tuple(found[:3]), (42,)
    )
    # Other queries' candidates may be right, too.
    assert all(catalogue.qrels[name].items() <= grades.items() for name, grades in dataset.qrels.items())
    # A query whose reference could not be embedded has no candidates.
    assert draw_cases(replace(experiment, queries=None), dataset, {})[0].candidates == ()
