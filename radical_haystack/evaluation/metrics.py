# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How good a run is, through `ir-measures`: MRR@10 and R@k, per query and on average, conditional and unconditional."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from haystack.lazy_imports import LazyImport

from radical_haystack.evaluation.trec import Qrels, Run, check_run

with LazyImport("Run 'pip install \"radical-haystack[eval]\"'") as ir_measures_import:
    from ir_measures import RR, R, evaluator

METRICS = ("MRR@10", "R@1", "R@5", "R@10")
"""The metrics, in the order of the tables."""
OVERALL = "overall"
"""Name of the group of all queries."""


@dataclass(frozen=True)
class MeanMetrics:
    """
    Metrics averaged over a group of queries.

    :param queries: How many queries.
    :param means: The mean of each of `METRICS`, between 0 and 1; not a number where there are no queries.
    """

    queries: int
    means: dict[str, float]


@dataclass(frozen=True)
class RunMetrics:
    """
    Metrics of a run.

    :param per_query: By query id, each of `METRICS`.
    :param unconditional: Means over all queries: `OVERALL` and each category.
    :param conditional: Means over the queries that have a relevant document among their candidates, in the same groups.
    """

    per_query: dict[str, dict[str, float]]
    unconditional: dict[str, MeanMetrics]
    conditional: dict[str, MeanMetrics]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values for JSON; `None` where a group has no queries."""
        data = asdict(self)
        for groups in (data["unconditional"], data["conditional"]):
            for group in groups.values():
                group["means"] = {name: None if math.isnan(value) else value for name, value in group["means"].items()}
        return data


def evaluate_run(
    run: Run,
    qrels: Qrels,
    *,
    candidates: Mapping[str, Collection[str]] | None = None,
    categories: Mapping[str, str] | None = None,
    relevant_from: int = 1,
) -> RunMetrics:
    """
    Measure a run. What counts is the order of the documents; scores, and thus ties of scores, play no part.

    MRR@10 is the reciprocal rank of the first relevant document, 0 if it is not among the first 10; R@k is the share of
    the relevant documents that are among the first k. The overall mean is one over queries, not over categories
    [choice].

    :param run: By query id, the ids of the documents, best first.
    :param qrels: By query id and document id, the grade of relevance. These are the queries that count: one that the
        run lacks found nothing.
    :param candidates: By query id, the documents that were ranked; they decide which queries are conditional ones.
        `None`: those in the run, which must then not be cut.
    :param categories: By query id, its category, for means per category.
    :param relevant_from: The least grade that is relevant.
    :returns: The metrics.
    :raises ValueError: If the run has a query without judgements or a document twice, or there is no query.
    :raises ImportError: If `ir-measures` is not installed.
    """
    ir_measures_import.check()
    check_run(run)
    unjudged = [query for query in run if query not in qrels]
    if unjudged:
        raise ValueError(f"The run has the query '{unjudged[0]}', which has no relevance judgements.")
    if not qrels:
        raise ValueError("There are no queries to evaluate.")
    per_query = _measure(run, qrels, relevant_from)
    ranked = run if candidates is None else candidates
    hits = [query for query in qrels if _has_relevant(ranked.get(query, ()), qrels[query], relevant_from)]
    return RunMetrics(
        per_query=per_query,
        unconditional=_means(per_query, list(qrels), categories or {}),
        conditional=_means(per_query, hits, categories or {}),
    )


def _measure(run: Run, qrels: Qrels, relevant_from: int) -> dict[str, dict[str, float]]:
    """Each metric of each judged query."""
    r, rr = R(rel=relevant_from), RR(rel=relevant_from)
    names = {rr @ 10: "MRR@10", r @ 1: "R@1", r @ 5: "R@5", r @ 10: "R@10"}
    # `trec_eval` breaks ties by document id: scores that fall with the rank make the order ours.
    scores = {
        query: {document: float(-place) for place, document in enumerate(documents)} for query, documents in run.items()
    }
    judged = {query: dict(grades) for query, grades in qrels.items()}
    values: dict[str, dict[str, float]] = {query: dict.fromkeys(METRICS, 0.0) for query in qrels}
    for metric in evaluator(list(names), judged).iter_calc(scores):
        values[metric.query_id][names[metric.measure]] = metric.value
    return values


def _has_relevant(documents: Collection[str], grades: Mapping[str, int], relevant_from: int) -> bool:
    return any(grades.get(document, 0) >= relevant_from for document in documents)


def _means(
    per_query: Mapping[str, Mapping[str, float]], queries: Sequence[str], categories: Mapping[str, str]
) -> dict[str, MeanMetrics]:
    groups: dict[str, list[str]] = {OVERALL: list(queries)}
    groups |= {category: [] for category in dict.fromkeys(categories[q] for q in per_query if q in categories)}
    for query in queries:
        if query in categories:
            groups[categories[query]].append(query)
    return {
        name: MeanMetrics(
            len(members),
            {metric: fmean(per_query[q][metric] for q in members) if members else math.nan for metric in METRICS},
        )
        for name, members in groups.items()
    }
