# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Intervals: against plain loops, against theory, and what must hold of any."""

import math
import random
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.evaluation import Estimate, bootstrap_mean
from radical_haystack.evaluation.bootstrap import RESAMPLES

values_by_query = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4),
    st.lists(st.floats(-1, 1), min_size=1, max_size=3),
    min_size=1,
    max_size=8,
)


def slow_interval(values: dict[str, list[float]], seed: int) -> tuple[float, float]:
    """Resample by resample, and quantiles by hand."""
    draws = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    groups = list(values.values())
    means = []
    for row in draws.tolist():
        drawn = [value for place in row for value in groups[place]]
        means.append(math.fsum(drawn) / len(drawn))
    means.sort()

    def quantile(share: float) -> float:
        place = share * (len(means) - 1)
        below = math.floor(place)
        above = min(below + 1, len(means) - 1)
        return means[below] + (place - below) * (means[above] - means[below])

    return quantile(0.025), quantile(0.975)


def estimate_of(values: dict[str, list[float]], seed: int = 0) -> Estimate:
    found = bootstrap_mean(values, seed=seed)
    assert found is not None
    return found


@given(values_by_query, st.integers(0, 3))
def test_is_the_slow_one(values: dict[str, list[float]], seed: int) -> None:
    found = estimate_of(values, seed)
    flat = [value for of_query in values.values() for value in of_query]
    low, high = slow_interval(values, seed)
    assert found.mean == pytest.approx(math.fsum(flat) / len(flat), abs=1e-12)
    assert found.low == pytest.approx(min(low, found.mean), abs=1e-9)
    assert found.high == pytest.approx(max(high, found.mean), abs=1e-9)


@given(values_by_query)
def test_holds_the_mean_and_stays_among_the_values(values: dict[str, list[float]]) -> None:
    found = estimate_of(values)
    means = [fmean(of_query) for of_query in values.values()]
    assert min(means) - 1e-9 <= found.low <= found.mean <= found.high <= max(means) + 1e-9


@given(values_by_query, st.integers(2, 4))
def test_repeating_all_values_of_all_queries_tells_nothing_new(values: dict[str, list[float]], times: int) -> None:
    once, often = estimate_of(values), estimate_of({name: of * times for name, of in values.items()})
    assert (often.low, often.high) == pytest.approx((once.low, once.high), abs=1e-9)


@given(values_by_query, st.floats(-2, 2), st.floats(0.1, 3))
def test_moves_and_scales_with_the_values(values: dict[str, list[float]], shift: float, scale: float) -> None:
    base = estimate_of(values)
    moved = estimate_of({name: [scale * value + shift for value in of] for name, of in values.items()})
    for name in ("mean", "low", "high"):
        assert getattr(moved, name) == pytest.approx(scale * getattr(base, name) + shift, abs=1e-9)


def test_is_as_wide_as_theory_says() -> None:
    rng = random.Random(1)
    values = {f"q{number}": [rng.random()] for number in range(400)}
    flat = [value for [value] in values.values()]
    found = estimate_of(values)
    assert found.high - found.low == pytest.approx(2 * 1.96 * stdev(flat) / 20, rel=0.1)


def test_seeds_of_one_query_count_as_one_query() -> None:
    """Five measurements of each of 50 queries are not 250 independent ones."""
    rng = random.Random(2)
    queries = {f"q{number}": rng.random() for number in range(50)}
    together = estimate_of({name: [value] * 5 for name, value in queries.items()})
    apart = estimate_of({f"{name}-{seed}": [value] for name, value in queries.items() for seed in range(5)})
    assert together.high - together.low > 1.8 * (apart.high - apart.low)


def test_nothing_has_no_mean_and_one_value_no_width() -> None:
    assert bootstrap_mean({}) is None
    assert bootstrap_mean({"q": [0.3]}) == Estimate(0.3, 0.3, 0.3)
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"


def test_the_same_seed_draws_the_same() -> None:
    values = {f"q{number}": [float(number % 3)] for number in range(30)}
    assert bootstrap_mean(values, seed=1) == bootstrap_mean(values, seed=1) != bootstrap_mean(values, seed=2)
