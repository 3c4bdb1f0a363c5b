# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""RaDiCal: discriminative token importance and attention, weighted by how sharp attention is at the layer."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

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
    active there. Records `entropy` (H_norm of the observed attention) and `alpha` (the coefficient used).

    Most tokens are below the uniform baseline, where AttentionInfo is 0, so at the sharpest layer (alpha = 0) they all
    have the same fused score. The more attended of them stays [choice]; their place in the prompt would favour the
    first candidates.

    :param schedule: Pruning layers, trust coefficients and keep ratio.
    :param uniqueness: How CCU is computed: `"prototype"` (the paper's), `"exact"`, or `None` for QRel alone.
    :param relevance: Whether QRel is part of DTI; `False` for CCU alone.
    :param alpha: One trust coefficient for all layers, in [0, 1], in place of the schedule's: 0 is attention without
        DTI, 1 is DTI without attention.
    :param mean: How the two signals are combined: `"geometric"` (the paper's) or `"arithmetic"`.
    :raises ValueError: If both parts of DTI are left out, or a parameter is out of range.
    """

    needs_schedule: ClassVar[bool] = True

    schedule: PruningSchedule
    uniqueness: Uniqueness | None = "prototype"
    relevance: bool = True
    alpha: float | None = None
    mean: Literal["geometric", "arithmetic"] = "geometric"

    def __post_init__(self) -> None:
        if self.uniqueness is None and not self.relevance:
            raise ValueError("RaDiCal's DTI needs uniqueness or relevance; both are left out.")
        if self.alpha is not None and not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must be in [0, 1], not {self.alpha}.")
        if self.mean not in ("geometric", "arithmetic"):
            raise ValueError(f"Unknown mean {self.mean!r}: use 'geometric' or 'arithmetic'.")

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
            relevance=self.relevance,
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
        alpha = self._alpha_at(observation.layer)
        observation.record.update(entropy=normalized_entropy(p), alpha=alpha)
        fused = fuse(observation.prior[observation.active], saliency(p), alpha, mean=self.mean)
        return torch.stack([fused, p], dim=1)

    def _alpha_at(self, layer: int) -> float:
        return self.schedule.alphas[self.schedule.layers.index(layer)] if self.alpha is None else self.alpha
