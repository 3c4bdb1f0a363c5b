# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Bootstrap confidence intervals of means over queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
"""How often the queries are drawn again."""
LEVEL = 0.95
"""The level of the intervals."""


@dataclass(frozen=True)
class Estimate:
    """
    A mean and its confidence interval.

    :param mean: The mean.
    :param low: Lower end of the interval.
    :param high: Upper end.
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap_mean(values: Mapping[str, Sequence[float]], *, seed: int = 0) -> Estimate | None:
    """
    The mean of values that belong to queries, with its 95% percentile bootstrap interval (Efron 1979).

    Queries are drawn, each with all of its values: what several seeds measured on one query is not independent. With
    one value per query this is the plain bootstrap. The same queries in the same order are drawn for whatever is
    measured on them, so that methods are compared on the same draws.

    :param values: By query id, its values, at least one each.
    :param seed: Seed of the drawing.
    :returns: The mean of all values; `None` if there are none.
    """
    if not values:
        return None
    counts = _draws(len(values), seed)
    sums = np.array([sum(of_query) for of_query in values.values()], dtype=np.float64)
    sizes = np.array([len(of_query) for of_query in values.values()], dtype=np.float64)
    means = counts @ sums / (counts @ sizes)
    mean = fmean(value for of_query in values.values() for value in of_query)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    # The mean may lie outside by the last bit where all values are equal.
    return Estimate(mean, min(float(low), mean), max(float(high), mean))


@lru_cache(maxsize=4)
def _draws(count: int, seed: int) -> NDArray[np.float64]:
    """How often each query is drawn, in each resample: shape `(RESAMPLES, count)`."""
    drawn = np.random.default_rng(seed).integers(count, size=(RESAMPLES, count))
    rows = np.arange(RESAMPLES)[:, None]
    counts = np.bincount((rows * count + drawn).ravel(), minlength=RESAMPLES * count)
    return counts.reshape(RESAMPLES, count).astype(np.float64)
