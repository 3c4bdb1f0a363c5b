# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""RaDiCal with one part taken away or replaced: the ablations of the paper, each a few parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from radical_haystack.pruning.pruners import Pruner, build_pruner
from radical_haystack.pruning.schedule import PruningSchedule


@dataclass(frozen=True)
class Ablation:
    """
    How a variant differs from RaDiCal.

    :param parameters: The pruner's parameters.
    :param pruner: The pruner's name.
    :param strategy: How the schedule's layers are chosen: one of `STRATEGIES`. The schedule has to be made so; see
        `PruningSchedule.from_entropies`.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    pruner: str = "radical"
    strategy: str = "alpha-maximin"

    def build(self, schedule: PruningSchedule) -> Pruner:
        """
        The variant's pruner.

        :param schedule: A schedule whose layers were chosen by this variant's strategy.
        """
        return build_pruner(self.pruner, schedule, **self.parameters)


ABLATIONS: dict[str, Ablation] = {
    "full": Ablation(),
    "without-dti": Ablation({"alpha": 0.0}),
    "dti-only": Ablation({"alpha": 1.0}),
    "fixed-alpha": Ablation({"alpha": 0.5}),
    "arithmetic-fusion": Ablation({"mean": "arithmetic"}),
    "qrel-only": Ablation({"uniqueness": None}),
    "ccu-only": Ablation({"relevance": False}),
    "without-token-scoring": Ablation(pruner="random"),
    "without-alpha-maximin": Ablation(strategy="even"),
}
"""
The ablations of the paper by name. "qrel-only" and "ccu-only" replace DTI by one of its factors and keep the fusion
with attention [choice]; "without-token-scoring" keeps random tokens at the same layers.
"""
