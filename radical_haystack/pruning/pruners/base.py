# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The two small classes every pruning method derives from, and what a method may look at."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

AttentionRows = Literal["text", "last"]


@dataclass(frozen=True)
class CandidateTokens:
    """
    What is known about the candidates' visual tokens before the decoder runs.

    :param tokens: Vision-encoder outputs after the merger, shape `(V, d)`: all candidates in prompt order.
    :param candidate_index: The candidate each token belongs to, shape `(V,)`, int64, values `0..N-1`.
    :param query_embedding: Embedding of the query in the same space, shape `(d,)`.
    """

    tokens: Tensor
    candidate_index: Tensor
    query_embedding: Tensor


@dataclass(frozen=True)
class LayerObservation:
    """
    What a pruner sees at one pruning layer. `T` is the number of candidate tokens still active there.

    :param layer: The decoder layer, 0-based.
    :param active: Indices of the active tokens into `CandidateTokens.tokens`, ascending, shape `(T,)`, int64.
    :param candidates: The tokens as they were before the decoder.
    :param prior: What `Pruner.prior` returned for this prompt.
    :param attention: Called with `"text"` (all text rows after the last image) or `"last"` (the last row), gives the
        layer's attention from those rows to the active tokens, averaged over heads, float32, shape `(rows, T)`. The
        softmax runs over the whole visible sequence, so rows sum to at most 1. Computed when called, so that a method
        that does not look at attention does not pay for it.
    :param keys: Called, gives the layer's keys of the active tokens, shape `(kv_heads, T, head_dim)`.
    """

    layer: int
    active: Tensor
    candidates: CandidateTokens
    prior: Tensor | None
    attention: Callable[[AttentionRows], Tensor]
    keys: Callable[[], Tensor]
    record: dict[str, float | Tensor] = field(default_factory=dict)
    """
    Figures worth tracing, such as `entropy` (H_norm) and `alpha`; copied into the trace as plain floats. A 0-d tensor
    is fine: whoever copies it converts it once the pass is over, so that the device is not waited for in between.
    """


class Pruner(ABC):
    """
    Chooses which candidate tokens stay in the sequence after each pruning layer.

    A pruner holds parameters only, never the state of a prompt: one instance may serve many queries.
    """

    @property
    @abstractmethod
    def layers(self) -> tuple[int, ...]:
        """The pruning layers, 0-based, ascending. Empty: nothing is pruned."""

    def prior(self, candidates: CandidateTokens) -> Tensor | None:
        """
        Compute what can be known before the decoder runs, once per prompt.

        :param candidates: All candidate tokens, shape `(V, d)`.
        :returns: One score per token, shape `(V,)`, float32, or `None` if the method needs none.
        """
        return None

    @abstractmethod
    def select(self, observation: LayerObservation) -> Tensor:
        """
        Choose the tokens that stay after `observation.layer`.

        :param observation: What can be seen at that layer.
        :returns: Ascending positions into `observation.active`, shape `(kept,)`, int64.
        """


class ScorePruner(Pruner):
    """A pruner that keeps the best-scored tokens: a global top-k over all candidates together."""

    @abstractmethod
    def keep_ratio_at(self, layer: int) -> float:
        """The share of the active tokens that stays after `layer`, in (0, 1]."""

    @abstractmethod
    def score(self, observation: LayerObservation) -> Tensor:
        """
        Score the active tokens, higher is kept.

        :param observation: What can be seen at the pruning layer.
        :returns: Scores, float32, shape `(T,)`; or `(T, 2)`, where the second column decides between tokens that are
            equal in the first.
        """

    def select(self, observation: LayerObservation) -> Tensor:
        """Keep the `ceil(keep * T)` best tokens; of tokens equal in every respect the earlier one stays."""
        total = observation.active.numel()
        return top_positions(self.score(observation), keep_count(self.keep_ratio_at(observation.layer), total))


def keep_count(keep_ratio: float, total: int) -> int:
    """`ceil(keep_ratio * total)`, safe against the last bit of a float (0.55 of 100 is 55, not 56)."""
    return min(total, math.ceil(round(keep_ratio * total, 9)))


def top_positions(scores: Tensor, count: int) -> Tensor:
    """
    Positions of the `count` highest scores, ascending; of equal scores the lower position wins.

    :param scores: Shape `(T,)`, or `(T, c)`: later columns decide between rows that are equal in the earlier ones.
    :param count: How many to keep.
    :returns: int64 positions, shape `(count,)`.
    """
    columns = scores.float().unsqueeze(-1) if scores.ndim == 1 else scores.float()
    order = torch.arange(scores.shape[0], device=scores.device)
    # Stable sorts from the least to the most important column.
    for column in reversed(columns.unbind(dim=1)):
        order = order[torch.sort(column[order], descending=True, stable=True).indices]
    return order[:count].sort().values
