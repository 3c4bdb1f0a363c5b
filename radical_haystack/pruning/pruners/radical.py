# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""RaDiCal: discriminative token importance and attention, weighted by how sharp attention is at the layer."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from radical_haystack.pruning.pruners.base import CandidateTokens, LayerObservation, ScorePruner, Setting
from radical_haystack.pruning.schedule import PruningSchedule
from radical_haystack.pruning.signals import (
    Uniqueness,
    discriminative_token_importance,
    normalized_entropy,
    saliency,
    text_to_visual_distribution,
)
from radical_haystack.pruning.trust import fuse


@dataclass(frozen=True)
class RadicalPruner(ScorePruner):
    """
    RaDiCal, rank-discriminative calibration (arXiv 2609.00667).

    DTI is computed and normalised once per prompt; attention information at every pruning layer over the tokens still
    active there. Records `entropy` (H_norm of the observed attention) and `alpha` (the schedule's).

    Most tokens are below the uniform baseline, where AttentionInfo is 0, so at the sharpest layer (alpha = 0) they all
    have the same fused score. The more attended of them stays [choice]; their place in the prompt would favour the
    first candidates.

    :param schedule: Pruning layers, trust coefficients and keep ratio.
    :param uniqueness: How CCU is computed: `"prototype"` (the paper's), `"exact"`, or `None` for QRel alone.
    """

    needs_schedule: ClassVar[bool] = True

    schedule: PruningSchedule
    uniqueness: Uniqueness | None = "prototype"

    @classmethod
    def for_model(cls, setting: Setting, **parameters: Any) -> "RadicalPruner":
        """The model's schedule at this budget."""
        return cls(setting.required_schedule(), **parameters)

    @property
    def layers(self) -> tuple[int, ...]:
        """The schedule's layers."""
        return self.schedule.layers

    def prior(self, candidates: CandidateTokens) -> Tensor:
        """DTI of all candidate tokens, shape `(V,)`."""
        return discriminative_token_importance(
            candidates.tokens,
            candidates.query_embedding,
            uniqueness=self.uniqueness,
            candidate_index=candidates.candidate_index,
        )

    def keep_ratio_at(self, layer: int) -> float:
        """`R^(1/K)` at every pruning layer."""
        return self.schedule.per_layer_keep

    def score(self, observation: LayerObservation) -> Tensor:
        """The fused score (eq. 6) of the active tokens, and their share of attention for ties, shape `(T, 2)`."""
        if observation.prior is None:
            raise ValueError("RadicalPruner needs the prior that its own `prior` computes for the prompt.")
        p = text_to_visual_distribution(observation.attention("text"))
        alpha = self.schedule.alphas[self.schedule.layers.index(observation.layer)]
        observation.record.update(entropy=normalized_entropy(p), alpha=alpha)
        return torch.stack([fuse(observation.prior[observation.active], saliency(p), alpha), p], dim=1)
