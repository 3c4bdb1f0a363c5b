# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""DART: keep what resembles a few pivot tokens least."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from radical_haystack.pruning.pruners.base import LayerObservation, Setting, StagedPruner, top_positions

_PIVOTS = 8
"""As many as in the authors' code, where half of them are text tokens; here all are visual tokens [choice]."""


class DARTPruner(StagedPruner):
    """
    DART, duplication-aware reduction of tokens (https://arxiv.org/abs/2502.11494): drops near-duplicates of pivots.

    Pivots are the tokens with the largest keys: the L2 norm over all key heads, which the rotary embedding does not
    change [choice]. They stay; of the others those stay whose largest cosine with a pivot is smallest, measured as the
    tokens enter the layer. The authors' code goes through the pivots one by one; one global order keeps the budget
    exactly [choice].

    :param stages: The pruning layer and the share of tokens left after it, such as `{1: 0.2}`.
    """

    @classmethod
    def for_model(cls, setting: Setting, **parameters: Any) -> "DARTPruner":
        """Layer 1 of 36, keeping `R`."""
        return cls({setting.scaled(1): setting.keep_ratio}, **parameters)

    def score(self, observation: LayerObservation) -> Tensor:
        """Unlikeness to the pivots, above 1 for the pivots themselves by the size of their keys, shape `(T,)`."""
        lengths = observation.keys().float().norm(dim=(0, 2))
        pivots = top_positions(lengths, min(_PIVOTS, lengths.numel()))
        hidden = F.normalize(observation.hidden().float(), dim=-1)
        unlikeness = -(hidden @ hidden[pivots].T).amax(dim=1)
        is_pivot = torch.zeros_like(unlikeness).index_fill_(0, pivots, 1.0)
        return torch.where(is_pivot > 0, 2 + lengths, unlikeness)
