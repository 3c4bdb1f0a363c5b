# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Metrics against plain loops, and what counts as a query."""

import importlib.util
import json
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.evaluation import METRICS, OVERALL, evaluate_run, metrics

DOCUMENTS = [f"d{number}" for number in range(25)]
QUERIES = ["q1", "q2", "q3", "q4"]


def slow_metrics(found: list[str], grades: dict[str, int], relevant_from: int) -> dict[str, float]:
    """Reciprocal rank and recall by counting."""
    relevant = [document for document, grade in grades.items() if grade >= relevant_from]
    reciprocal = 0.0
    for rank in range(1, min(10, len(found)) + 1):
        if found[rank - 1] in relevant:
            reciprocal = 1 / rank
            break
    values = {"MRR@10": reciprocal}
    for cutoff in (1, 5, 10):
        hits = 0
        for document in relevant:
            if document in found[:cutoff]:
                hits += 1
        values[f"R@{cutoff}"] = hits / len(relevant) if relevant else 0.0
    return values


runs = st.dictionaries(st.sampled_from(QUERIES), st.lists(st.sampled_from(DOCUMENTS), unique=True, max_size=25))
judgements = st.fixed_dictionaries(
    {query: st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 12), max_size=6) for query in QUERIES}
)
categories_of = st.dictionaries(st.sampled_from(QUERIES), st.sampled_from(["dress", "shirt"]))


@given(runs, judgements, st.integers(1, 11), categories_of)
def test_agrees_with_plain_loops(run, qrels, relevant_from: int, categories) -> None:
    result = evaluate_run(run, qrels, relevant_from=relevant_from, categories=categories)
    for query in QUERIES:
        expected = slow_metrics(run.get(query, []), qrels[query], relevant_from)
        assert list(result.per_query[query]) == list(METRICS)
        assert result.per_query[query] == pytest.approx(expected)

    hit = [q for q in QUERIES if any(qrels[q].get(d, 0) >= relevant_from for d in run.get(q, []))]
    for groups, counted in ((result.unconditional, QUERIES), (result.conditional, hit)):
        assert next(iter(groups)) == OVERALL
        assert set(groups) == {OVERALL, *categories.values()}
        for name, group in groups.items():
            members = [query for query in counted if name in (OVERALL, categories.get(query))]
            assert group.queries == len(members)
            for metric in METRICS:
                total = sum(result.per_query[query][metric] for query in members)
                if members:
                    assert group.means[metric] == pytest.approx(total / len(members))
                else:
                    assert math.isnan(group.means[metric])


def test_the_order_counts_and_not_the_names() -> None:
    """`trec_eval` puts the higher id first among equal scores; here nothing is equal."""
    for found in (["a", "z"], ["z", "a"]):
        result = evaluate_run({"q": found}, {"q": {found[1]: 1}})
        assert result.per_query["q"] == {"MRR@10": 0.5, "R@1": 0.0, "R@5": 1.0, "R@10": 1.0}


def test_long_runs_keep_their_order() -> None:
    found = [f"d{(7 * number) % 5003}" for number in range(5003)]
    assert evaluate_run({"q": found}, {"q": {found[9]: 1}}).per_query["q"]["MRR@10"] == pytest.approx(0.1)
    assert evaluate_run({"q": found}, {"q": {found[10]: 1}}).per_query["q"]["MRR@10"] == 0


def test_conditional_on_the_candidates_not_on_what_is_returned() -> None:
    """A ranker that returns its best only does not change which queries are conditional."""
    qrels = {"q1": {"t": 1}, "q2": {"t": 1}, "q3": {"t": 1}}
    run = {"q1": ["t"], "q2": ["x"], "q3": ["x"]}
    candidates = {"q1": ["x", "t"], "q2": ["x", "t"], "q3": ["x", "y"]}
    result = evaluate_run(run, qrels, candidates=candidates)
    assert result.unconditional[OVERALL].means["R@1"] == pytest.approx(1 / 3)
    assert result.conditional[OVERALL].queries == 2
    assert result.conditional[OVERALL].means["R@1"] == pytest.approx(1 / 2)
    assert evaluate_run(run, qrels).conditional[OVERALL].queries == 1


def test_queries_that_found_nothing_count() -> None:
    qrels = {"q1": {"t": 1}, "q2": {"t": 1}}
    for run in ({"q1": ["t"]}, {"q1": ["t"], "q2": []}):
        result = evaluate_run(run, qrels)
        assert result.unconditional[OVERALL].means["MRR@10"] == 0.5
        assert result.conditional[OVERALL].means["MRR@10"] == 1


def test_to_dict_is_json_without_nan() -> None:
    result = evaluate_run({"q": ["x"]}, {"q": {"t": 1}}, categories={"q": "dress"})
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["conditional"]["dress"] == {"queries": 0, "means": dict.fromkeys(METRICS)}
    assert data["unconditional"]["dress"] == {"queries": 1, "means": dict.fromkeys(METRICS, 0.0)}
    assert data["per_query"]["q"]["R@5"] == 0


@pytest.mark.parametrize(
    ("run", "qrels", "parts"),
    [
        ({"q": ["a", "b", "a"]}, {"q": {"a": 1}}, ["'a'", "twice", "'q'"]),
        ({"q": ["a"], "other": ["a"]}, {"q": {"a": 1}}, ["'other'", "no relevance"]),
        ({}, {}, ["no queries"]),
    ],
)
def test_refused(run, qrels, parts: list[str]) -> None:
    with pytest.raises(ValueError, match=".*".join(parts)):
        evaluate_run(run, qrels)


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    spec = importlib.util.spec_from_file_location("metrics_without_extra", metrics.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(ImportError, match=r"pip install \"radical-haystack\[eval\]\""):
        module.evaluate_run({"q": ["a"]}, {"q": {"a": 1}})
