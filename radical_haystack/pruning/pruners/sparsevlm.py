# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""SparseVLM: only text tokens that look at the images rate them, and redundant layers prune more."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from radical_haystack.pruning.pruners.base import LayerObservation, Pruner, Setting, keep_count, top_positions
from radical_haystack.pruning.schedule import check_keep_ratio, check_layers


class SparseVLMPruner(Pruner):
    """
    SparseVLM (https://arxiv.org/abs/2410.04417): text raters score the visual tokens, with a rank-adaptive ratio.

    Raters are the text tokens whose attention on the active visual tokens is above average. The paper prunes
    `lambda * (T - rank(P))` of the `T` tokens at a layer, `P` being the raters' attention. Here `lambda` is such that
    the ratios of all layers multiply to `R`: with `u = 1 - rank(P) / T` and `n` layers left, this one included, a
    layer takes `u / (u + n - 1)` of what is left to prune, in logarithms; the layers ahead, whose rank is not known
    yet, count as fully redundant, and the last one meets the budget [choice]. Pruned tokens are dropped, not recycled
    into clusters, because those would be tokens beyond the budget [choice].

    The rank decides how many tokens stay, so each pruning layer waits for the device once. Records `raters` and
    `rank`.

    :param layers: Pruning layers, 0-based, ascending.
    :param keep_ratio: `R`, the share of tokens that remains after the last of them, in (0, 1].
    :raises ValueError: If the layers or the keep ratio are invalid.
    """

    def __init__(self, layers: Sequence[int], keep_ratio: float) -> None:
        check_layers(layers)
        check_keep_ratio(keep_ratio)
        self._layers = tuple(layers)
        self.keep_ratio = keep_ratio

    @classmethod
    def for_model(cls, setting: Setting, **parameters: Any) -> "SparseVLMPruner":
        """Layers 3, 8 and 18 of 36."""
        return cls(tuple(dict.fromkeys(map(setting.scaled, (3, 8, 18)))), setting.keep_ratio, **parameters)

    @property
    def layers(self) -> tuple[int, ...]:
        """The pruning layers."""
        return self._layers

    def select(self, observation: LayerObservation) -> Tensor:
        """Keep the tokens with the raters' highest mean attention; of equal ones the earlier stays."""
        attention = observation.attention("text")
        mass = attention.sum(dim=1)
        raters = mass > mass.mean()
        # If all text looks at the images equally, all of it rates.
        raters = raters | ~raters.any()
        rated = attention * raters[:, None]
        observation.record["raters"] = raters.sum()
        return top_positions(rated.sum(dim=0) / raters.sum(), self._count(observation, rated))

    def _count(self, observation: LayerObservation, rated: Tensor) -> int:
        """What the rank of the raters' attention leaves; after the last layer `ceil(R * V)`."""
        active = observation.active.numel()
        budget = keep_count(self.keep_ratio, observation.candidates.tokens.shape[0])
        ahead = len(self._layers) - 1 - self._layers.index(observation.layer)
        if ahead == 0:
            return budget
        rank = torch.linalg.matrix_rank(rated)
        observation.record["rank"] = rank
        redundancy = 1 - int(rank) / active
        return keep_count((budget / active) ** (redundancy / (redundancy + ahead)), active)
