# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Exposure and top-k shares of groups: against loops, without a change, and with a known one."""

import math
import random
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radical_haystack.evaluation.exposure import NO_GROUP, audit_exposure

GROUPS = {"a": "cat", "b": "dog", "c": "cat", "d": None, "e": "dog", "f": ""}


@st.composite
def runs(draw: st.DrawFn) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Two orders of the same candidates; queries may have few of them."""
    dense, pruned = {}, {}
    for number in range(draw(st.integers(1, 5))):
        candidates = draw(st.lists(st.sampled_from("abcdefg"), min_size=1, unique=True))
        dense[f"q{number}"] = draw(st.permutations(candidates))
        pruned[f"q{number}"] = draw(st.permutations(candidates))
    return dense, pruned


def slow_shares(run: dict[str, list[str]], group: str, k: int) -> tuple[float, float]:
    """Exposure and top-k share of a group, document by document."""
    exposures, tops = [], []
    for documents in run.values():
        own = everything = in_top = 0.0
        for rank, document in enumerate(documents, start=1):
            member = (GROUPS.get(document) or NO_GROUP) == group
            everything += 1 / math.log2(1 + rank)
            own += member / math.log2(1 + rank)
            in_top += member and rank <= k
        exposures.append(own / everything)
        tops.append(in_top / min(k, len(documents)))
    return sum(exposures) / len(run), sum(tops) / len(run)


@settings(max_examples=60)
@given(runs(), st.integers(1, 8))
def test_the_slow_shares(orders: tuple[dict[str, list[str]], dict[str, list[str]]], k: int) -> None:
    dense, pruned = orders
    found = audit_exposure(dense, pruned, GROUPS, top_k=k)
    for entry in found:
        for run, exposure, top in (
            (dense, entry.exposure.dense, entry.top_k.dense),
            (pruned, entry.exposure.pruned, entry.top_k.pruned),
        ):
            assert (exposure, top) == pytest.approx(slow_shares(run, entry.group, k))
        for shift in (entry.exposure, entry.top_k):
            assert shift.difference == pytest.approx(shift.pruned - shift.dense)
            assert (shift.low is None) == (shift.high is None) == (len(dense) == 1)
            if shift.low is not None:
                assert shift.low <= shift.difference <= shift.high
    documents = set(chain.from_iterable(dense.values()))
    assert {entry.group: entry.documents for entry in found} == {
        group: sum((GROUPS.get(document) or NO_GROUP) == group for document in documents)
        for group in {GROUPS.get(document) or NO_GROUP for document in documents}
    }
    for measure in ("exposure", "top_k"):
        for side in ("dense", "pruned"):
            assert sum(getattr(getattr(entry, measure), side) for entry in found) == pytest.approx(1)
        assert sum(getattr(entry, measure).difference for entry in found) == pytest.approx(0)


def test_equal_orders_differ_by_exactly_nothing() -> None:
    rng = random.Random(0)
    run = {str(query): rng.sample("abcdefg", 7) for query in range(9)}
    for entry in audit_exposure(run, dict(reversed(run.items())), GROUPS, top_k=3):
        for shift in (entry.exposure, entry.top_k):
            assert (shift.difference, shift.low, shift.high) == (0.0, 0.0, 0.0)
            assert not shift.is_clear


def test_groups_are_sorted_and_none_comes_last() -> None:
    run = {"q": ["f", "b", "a", "unknown"]}
    assert [entry.group for entry in audit_exposure(run, run, GROUPS)] == ["cat", "dog", NO_GROUP]
    assert [entry.documents for entry in audit_exposure(run, run, GROUPS)] == [1, 1, 2]


def test_a_known_shift_is_found() -> None:
    """Of every ten queries nine get all of one group's documents to the front."""
    rng = random.Random(1)
    groups = {f"{name}{number}": name for name in "xyz" for number in range(5)}
    dense = {str(query): rng.sample(list(groups), 15) for query in range(60)}
    pruned = {
        query: sorted(order, key=lambda name: name[0] != "x") if int(query) % 10 else order
        for query, order in dense.items()
    }
    x, y, z = audit_exposure(dense, pruned, groups, top_k=5)
    assert x.top_k.pruned > 0.85
    assert x.top_k.is_clear
    assert x.exposure.is_clear
    assert x.exposure.low > 0.1
    assert y.exposure.high < 0
    assert z.exposure.high < 0
    nothing = {query: rng.sample(order, 15) for query, order in dense.items()}
    assert not any(entry.top_k.is_clear for entry in audit_exposure(dense, nothing, groups, top_k=5))


def test_the_bootstrap_repeats_and_widens_with_fewer_queries() -> None:
    rng = random.Random(2)
    dense = {str(query): rng.sample("abcdefg", 7) for query in range(100)}
    pruned = {query: rng.sample(order, 7) for query, order in dense.items()}
    once, again = (audit_exposure(dense, pruned, GROUPS, seed=4) for _ in range(2))
    assert once == again
    other = audit_exposure(dense, pruned, GROUPS, seed=5)
    assert other[0].exposure.low != once[0].exposure.low
    assert other[0].exposure.difference == once[0].exposure.difference
    some = [str(query) for query in range(10)]
    few = audit_exposure({q: dense[q] for q in some}, {q: pruned[q] for q in some}, GROUPS, seed=4)
    assert few[0].exposure.high - few[0].exposure.low > 1.5 * (once[0].exposure.high - once[0].exposure.low)


@pytest.mark.parametrize(
    ("dense", "pruned", "k", "reason"),
    [
        ({"q": ["a"]}, {"q": ["a"]}, 0, "at least 1, not 0"),
        ({}, {}, 1, "no queries"),
        ({"q": ["a"]}, {"r": ["a"]}, 1, "same queries"),
        ({"q": []}, {"q": []}, 1, "'q' has no candidates"),
        ({"q": ["a", "b"]}, {"q": ["a"]}, 1, "'q' are not of the same candidates"),
        ({"q": ["a", "a"]}, {"q": ["a"]}, 1, "'q'"),
    ],
)
def test_what_cannot_be_compared(dense: dict, pruned: dict, k: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        audit_exposure(dense, pruned, {}, top_k=k)
