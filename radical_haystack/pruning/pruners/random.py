# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Random pruning, the baseline every scored method has to beat."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from radical_haystack.pruning.pruners.base import CandidateTokens, LayerObservation, ScorePruner, Setting
from radical_haystack.pruning.schedule import equal_keep


class RandomPruner(ScorePruner):
    """
    Keeps random candidate tokens, at the same layers and in the same numbers as a scored method would.

    The choice depends on nothing but the seed and the number of tokens: the same prompt always loses the same tokens,
    whatever ran before it and on whichever device.

    :param layers: Pruning layers, 0-based, ascending.
    :param keep_ratio: `R`, the share of tokens that remains after the last of them, in (0, 1].
    :param seed: Seed of the random scores.
    :raises ValueError: If the layers or the keep ratio are invalid.
    """

    needs_schedule: ClassVar[bool] = True

    def __init__(self, layers: Sequence[int], keep_ratio: float, seed: int = 0) -> None:
        self._keep = equal_keep(layers, keep_ratio)
        self.seed = seed

    @classmethod
    def for_model(cls, setting: Setting, **parameters: Any) -> "RandomPruner":
        """RaDiCal's layers."""
        schedule = setting.required_schedule()
        return cls(schedule.layers, schedule.keep_ratio, **parameters)

    @property
    def layers(self) -> tuple[int, ...]:
        """The pruning layers."""
        return tuple(self._keep)

    def prior(self, candidates: CandidateTokens) -> Tensor:
        """One random score per token, shape `(V,)`."""
        generator = torch.Generator().manual_seed(self.seed)
        return torch.rand(candidates.tokens.shape[0], generator=generator).to(candidates.tokens.device)

    def keep_ratio_at(self, layer: int) -> float:
        """`R^(1/K)` at every pruning layer."""
        return self._keep[layer]

    def score(self, observation: LayerObservation) -> Tensor:
        """The active tokens' random scores, shape `(T,)`."""
        if observation.prior is None:
            raise ValueError("RandomPruner needs the prior that its own `prior` computes for the prompt.")
        return observation.prior[observation.active]
