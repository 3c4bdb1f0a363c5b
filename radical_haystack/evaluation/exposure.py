# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How pruning shifts what is seen of each group of images: exposure and top-k share against the dense order."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from radical_haystack.evaluation.bootstrap import bootstrap_mean
from radical_haystack.evaluation.trec import Run, check_run

NO_GROUP = "(none)"
"""The group of the documents that belong to none."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Shift:
    """
    A share of one group before and after, each averaged over queries.

    :param dense: With the dense order.
    :param pruned: With the pruned one.
    :param difference: What pruning adds.
    :param low: Lower end of the difference's 95% bootstrap interval over queries; `None` for a single query.
    :param high: Upper end.
    """

    dense: float
    pruned: float
    difference: float
    low: float | None
    high: float | None

    @property
    def is_clear(self) -> bool:
        """Whether there is an interval and it leaves 0 out."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class GroupShift:
    """
    What pruning does to one group.

    :param group: Its name, `NO_GROUP` for documents that belong to none.
    :param documents: How many of its documents were among the candidates of any query.
    :param exposure: Its share of all exposure.
    :param top_k: Its share of the first `k` places.
    """

    group: str
    documents: int
    exposure: Shift
    top_k: Shift


def audit_exposure(
    dense: Run, pruned: Run, groups: Mapping[str, str | None], *, top_k: int = 10, seed: int = 0
) -> tuple[GroupShift, ...]:
    """
    Compare what two orders of the same candidates show of each group.

    The document at rank `r` is seen with weight `1 / log2(1 + r)`; a query's weights are divided by their sum, so that
    the exposures of all groups sum to 1. The share of the top k is that of the first `k` places, or of all if there are
    fewer. Both are averaged over queries, and the intervals are percentile bootstrap intervals over queries: they tell
    of other queries of the same kind, not of other images.

    :param dense: By query id, the ids of its candidates, best first.
    :param pruned: The same candidates of the same queries in another order.
    :param groups: By document id, its group; `None`, or no entry, for documents that belong to none.
    :param top_k: `k`.
    :param seed: Seed of the bootstrap.
    :returns: One entry per group, by name, that of `NO_GROUP` last.
    :raises ValueError: If there are no queries, a query has no candidates or other ones in the other order, or `k` is
        not positive.
    """
    _check(dense, pruned, top_k)
    seen = {document for documents in dense.values() for document in documents}
    group_of = {document: groups.get(document) or NO_GROUP for document in seen}
    names = sorted(set(group_of.values()), key=lambda name: (name == NO_GROUP, name))
    place = {name: number for number, name in enumerate(names)}
    codes = {document: place[name] for document, name in group_of.items()}
    exposure, top = [], []
    for run in (dense, pruned):
        ranked = [np.array([codes[document] for document in run[query]]) for query in dense]
        exposure.append(np.stack([_shares(one, _discounts(len(one)), len(names)) for one in ranked]))
        top.append(np.stack([_shares(one[:top_k], np.ones(min(top_k, len(one))), len(names)) for one in ranked]))
    return tuple(
        GroupShift(
            group=name,
            documents=sum(code == number for code in codes.values()),
            exposure=_shift(exposure[0][:, number], exposure[1][:, number], seed),
            top_k=_shift(top[0][:, number], top[1][:, number], seed),
        )
        for number, name in enumerate(names)
    )


def _check(dense: Run, pruned: Run, top_k: int) -> None:
    if top_k < 1:
        raise ValueError(f"top_k must be at least 1, not {top_k}.")
    if not dense:
        raise ValueError("There are no queries to audit.")
    check_run(dense)
    check_run(pruned)
    if set(dense) != set(pruned):
        raise ValueError("The two orders are not of the same queries.")
    for query, documents in dense.items():
        if not documents:
            raise ValueError(f"The query '{query}' has no candidates.")
        if set(documents) != set(pruned[query]):
            raise ValueError(f"The two orders of the query '{query}' are not of the same candidates.")


def _discounts(count: int) -> Array:
    return 1 / np.log2(2.0 + np.arange(count))


def _shares(codes: NDArray[np.int64], weights: Array, groups: int) -> Array:
    """Each group's share of the weights."""
    shares: Array = np.bincount(codes, weights=weights, minlength=groups) / weights.sum()
    return shares


def _shift(dense: Array, pruned: Array, seed: int) -> Shift:
    estimate = bootstrap_mean({str(query): [change] for query, change in enumerate(pruned - dense)}, seed=seed)
    assert estimate is not None
    low, high = (estimate.low, estimate.high) if len(dense) > 1 else (None, None)
    return Shift(float(dense.mean()), float(pruned.mean()), estimate.mean, low, high)
