# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The pruning methods, one file each, and the names users choose them by."""

from collections.abc import Callable
from typing import Any

from radical_haystack.pruning.pruners.base import (
    CandidateTokens,
    LayerObservation,
    Pruner,
    ScorePruner,
    keep_count,
    top_positions,
)
from radical_haystack.pruning.pruners.dense import DensePruner
from radical_haystack.pruning.pruners.radical import RadicalPruner
from radical_haystack.pruning.pruners.random import RandomPruner
from radical_haystack.pruning.schedule import PruningSchedule

PRUNERS: dict[str, Callable[..., Pruner]] = {
    "radical": RadicalPruner,
    "random": lambda schedule, **kw: RandomPruner(schedule.layers, schedule.keep_ratio, **kw),
    "dense": lambda schedule, **kw: DensePruner(**kw),
}
"""Each method's name and how it is built: called with the model's schedule and the method's own parameters."""


def build_pruner(name: str, schedule: PruningSchedule | None, **kw: Any) -> Pruner:
    """
    Build a pruning method by name.

    :param name: One of `PRUNERS`.
    :param schedule: The model's schedule; only `"dense"` does without.
    :param kw: The method's own parameters, such as `seed` for `"random"`.
    :raises ValueError: If the name is unknown, or the method needs a schedule and there is none.
    """
    if name not in PRUNERS:
        raise ValueError(f"Unknown pruner {name!r}: choose one of {', '.join(sorted(PRUNERS))}.")
    if schedule is None and name != "dense":
        raise ValueError(f"The pruner {name!r} needs a pruning schedule.")
    return PRUNERS[name](schedule, **kw)


__all__ = [
    "PRUNERS",
    "CandidateTokens",
    "DensePruner",
    "LayerObservation",
    "Pruner",
    "RadicalPruner",
    "RandomPruner",
    "ScorePruner",
    "build_pruner",
    "keep_count",
    "top_positions",
]
