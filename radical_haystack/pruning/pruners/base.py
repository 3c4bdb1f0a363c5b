# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
The few classes every pruning method derives from, and what a method may look at.

A prompt passes three places where tokens can be saved, and each has one base class:

    images --------> vision encoder --------> decoder's input --------> decoder layers --------> answer
      | ImagePruner: sees sizes and, if it      | InputPruner: sees         | Pruner, ScorePruner: see one
      |   asks, the full encoding               |   CandidateTokens         |   layer's LayerObservation
      ` gives tokens per image (resizing)       ` gives a Reduction         ` give the positions that stay

A method is one file with one of these classes, and one line in `PRUNERS`; from the outside they are all the same.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from radical_haystack.pruning.schedule import PruningSchedule, check_keep_ratio, check_layers

AttentionRows = Literal["text", "last"]

BEFORE_DECODER = -1
"""Stands for the decoder's input where a trace names the layer after which tokens left."""

_PAPER_DEPTH = 36
"""Decoder layers of Qwen3-VL-4B, whose layer indices the paper's table of methods gives."""


@dataclass(frozen=True)
class CandidateTokens:
    """
    What is known about the candidates' visual tokens before the decoder runs.

    :param tokens: Vision-encoder outputs after the merger, shape `(V, d)`: all candidates in prompt order.
    :param candidate_index: The candidate each token belongs to, shape `(V,)`, int64, ascending, values `0..N-1`.
    :param query_embedding: Embedding of the query in the same space, shape `(d,)`.
    :param query_tokens: Input embeddings of the query's content tokens, shape `(Q, d)`; `Q` may be 0.
    :param sizes: Number of tokens of each candidate, `M_k`; they sum to `V`.
    :param encoder_attention: How much attention each token received in the vision encoder's last layer from the patches
        of its own image, shape `(V,)`, float32; `None` unless the method asks for it.
    """

    tokens: Tensor
    candidate_index: Tensor
    query_embedding: Tensor
    query_tokens: Tensor
    sizes: tuple[int, ...]
    encoder_attention: Tensor | None = None


@dataclass(frozen=True)
class CandidateImages:
    """
    What a method that resizes images may look at.

    :param sizes: Visual tokens of each candidate at its full size.
    :param encode: Called, encodes the candidates at full size and gives their tokens. A method that does not call it
        saves that work.
    """

    sizes: tuple[int, ...]
    encode: Callable[[], CandidateTokens]


@dataclass(frozen=True)
class Reduction:
    """
    Which tokens enter the decoder, and what they are made of.

    :param kept: Ascending indices into `CandidateTokens.tokens`, shape `(kept,)`, int64. A kept token stands at its own
        original position.
    :param merged_into: For each token the place in `kept` of the token it is averaged into, or -1 for none, shape
        `(V,)`, int64; a kept token must name itself. `None`: nothing is merged.
    """

    kept: Tensor
    merged_into: Tensor | None = None

    def apply(self, rows: Tensor) -> Tensor:
        """
        The kept tokens' rows, each averaged over the tokens merged into it.

        :param rows: One row per candidate token, shape `(V, d)`.
        :returns: Shape `(kept, d)`, in the dtype of `rows`.
        """
        kept = rows[self.kept.to(rows.device)]
        if self.merged_into is None:
            return kept
        # One place more than there are kept tokens, where everything that is dropped goes.
        places = self.merged_into.to(rows.device)
        places, order = torch.where(places < 0, len(kept), places).sort(stable=True)
        counts = torch.bincount(places, minlength=len(kept) + 1)
        # Sums each group in order, while adding by index would do so in any order on an accelerator.
        means = torch.segment_reduce(rows[order].float(), "mean", lengths=counts, unsafe=True)[: len(kept)]
        # A token that nothing is merged into stays as it is, to the last bit.
        return torch.where(counts[: len(kept), None] == 1, kept, means.to(rows.dtype))


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
    :param hidden: Called, gives the active tokens as they enter the layer, shape `(T, d)`.
    """

    layer: int
    active: Tensor
    candidates: CandidateTokens
    prior: Tensor | None
    attention: Callable[[AttentionRows], Tensor]
    keys: Callable[[], Tensor]
    hidden: Callable[[], Tensor]
    record: dict[str, float | Tensor] = field(default_factory=dict)
    """
    Figures worth tracing, such as `entropy` (H_norm) and `alpha`; copied into the trace as plain floats. A 0-d tensor
    is fine: whoever copies it converts it once the pass is over, so that the device is not waited for in between.
    """


@dataclass(frozen=True)
class Setting:
    """
    What a method given by name is built from.

    :param keep_ratio: `R`, the share of the candidates' visual tokens that reaches the end, in (0, 1].
    :param depth: Number of decoder layers of the model, if known.
    :param schedule: The model's pruning schedule, if there is one.
    :raises ValueError: If `R` is out of range.
    """

    keep_ratio: float
    depth: int | None = None
    schedule: PruningSchedule | None = None

    def __post_init__(self) -> None:
        check_keep_ratio(self.keep_ratio)

    def scaled(self, layer: int) -> int:
        """
        The layer at the same relative depth as one of a 36-layer model, never the last: pruning there changes nothing.

        Two layers may fall on one in a shallow model; a method then has one stage less.

        :param layer: The layer in a model of 36 layers, 0-based.
        :raises ValueError: If the depth is not known.
        """
        if self.depth is None:
            raise ValueError("This pruning method needs to know the model's number of decoder layers (depth).")
        return max(0, min(math.floor(layer * self.depth / _PAPER_DEPTH + 0.5), self.depth - 2))

    def required_schedule(self) -> PruningSchedule:
        """
        The schedule, with this keep ratio.

        :raises ValueError: If there is none.
        """
        if self.schedule is None:
            raise ValueError("This pruning method needs a pruning schedule.")
        return self.schedule.with_keep_ratio(self.keep_ratio)


class Pruner:
    """
    Chooses which candidate tokens stay in the sequence after each pruning layer. This one keeps them all.

    A pruner holds parameters only, never the state of a prompt: one instance may serve many queries.
    """

    needs_schedule: ClassVar[bool] = False
    """Whether `for_model` cannot do without the model's schedule."""

    @classmethod
    def for_model(cls, setting: Setting, **parameters: Any) -> "Pruner":
        """
        Build the method for a model and a budget, as the paper configures it.

        :param setting: Budget, depth and schedule.
        :param parameters: The method's own parameters.
        """
        return cls(**parameters)

    @property
    def layers(self) -> tuple[int, ...]:
        """The pruning layers, 0-based, ascending. Empty: nothing is pruned inside the decoder."""
        return ()

    def prior(self, candidates: CandidateTokens) -> Tensor | None:
        """
        Compute what can be known before the decoder runs, once per prompt.

        :param candidates: All candidate tokens, shape `(V, d)`.
        :returns: One score per token, shape `(V,)`, float32, or `None` if the method needs none.
        """
        return None

    def select(self, observation: LayerObservation) -> Tensor:
        """
        Choose the tokens that stay after `observation.layer`.

        :param observation: What can be seen at that layer.
        :returns: Ascending positions into `observation.active`, shape `(kept,)`, int64.
        """
        return torch.arange(observation.active.numel(), device=observation.active.device)


class ScorePruner(Pruner, ABC):
    """A pruner that keeps the best-scored tokens: a global top-k over all candidates together."""

    @property
    @abstractmethod
    def layers(self) -> tuple[int, ...]:
        """The pruning layers, 0-based, ascending."""

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

    def count(self, observation: LayerObservation) -> int:
        """How many tokens stay: `ceil(keep * T)`."""
        return keep_count(self.keep_ratio_at(observation.layer), observation.active.numel())

    def select(self, observation: LayerObservation) -> Tensor:
        """Keep the best tokens; of tokens equal in every respect the earlier one stays."""
        return top_positions(self.score(observation), self.count(observation))


class StagedPruner(ScorePruner):
    """
    A score pruner with fixed shares of *all* candidate tokens at its layers.

    :param stages: Pruning layer to the share of all candidate tokens that is left after it, in (0, 1], layers
        ascending, shares not ascending. The last share is `R`.
    :raises ValueError: If a layer or share is invalid.
    """

    def __init__(self, stages: Mapping[int, float]) -> None:
        check_layers(list(stages))
        for share in stages.values():
            check_keep_ratio(share)
        if sorted(stages.values(), reverse=True) != list(stages.values()):
            raise ValueError(f"The shares that are left must not grow from layer to layer: {dict(stages)}.")
        self.stages = dict(stages)

    @property
    def layers(self) -> tuple[int, ...]:
        """The stages' layers."""
        return tuple(self.stages)

    def keep_ratio_at(self, layer: int) -> float:
        """The share of what the stage before has left."""
        before = [share for stage, share in self.stages.items() if stage < layer]
        return self.stages[layer] / (before[-1] if before else 1.0)

    def count(self, observation: LayerObservation) -> int:
        """`ceil(share * V)`, so that several roundings do not add up."""
        total = observation.candidates.tokens.shape[0]
        return min(observation.active.numel(), keep_count(self.stages[observation.layer], total))


class BudgetPruner(Pruner, ABC):
    """
    A method that acts before the decoder and is configured by its budget alone.

    :param keep_ratio: `R`, the candidates' tokens that enter the decoder, relative to those of the images at full size,
        in (0, 1].
    :raises ValueError: If the keep ratio is out of range.
    """

    def __init__(self, keep_ratio: float) -> None:
        check_keep_ratio(keep_ratio)
        self.keep_ratio = keep_ratio

    @classmethod
    def for_model(cls, setting: Setting, **parameters: Any) -> "Pruner":
        """See `Pruner.for_model`."""
        return cls(setting.keep_ratio, **parameters)


class InputPruner(BudgetPruner):
    """A method that drops or merges visual tokens before the decoder's first layer."""

    needs_encoder_attention: ClassVar[bool] = False
    """Whether the method looks at `CandidateTokens.encoder_attention`."""

    @abstractmethod
    def reduce(self, candidates: CandidateTokens) -> Reduction:
        """
        Choose, and perhaps merge, the tokens that enter the decoder.

        :param candidates: All candidate tokens.
        """


class ImagePruner(BudgetPruner):
    """A method that makes images smaller, so that the vision encoder already gives fewer tokens."""

    @abstractmethod
    def token_targets(self, images: CandidateImages) -> list[float]:
        """
        How many visual tokens each candidate should have; what comes out depends on which grids there are.

        :param images: The candidates.
        :returns: One positive number per candidate, at most its full size.
        """


def keep_count(keep_ratio: float, total: int) -> int:
    """`ceil(keep_ratio * total)`, safe against the last bit of a float (0.55 of 100 is 55, not 56)."""
    return min(total, math.ceil(round(keep_ratio * total, 9)))


def split_count(count: int, sizes: Sequence[int]) -> list[int]:
    """
    Distribute a number of tokens over images in proportion to their sizes: the largest remainder method.

    An image that would get none comes before all others in line for one of those left over [choice]; of equal
    remainders the first image's counts. The order of the images matters in no other way.

    :param count: Tokens to keep in all, at most the sum of `sizes`.
    :param sizes: Tokens of each image.
    :returns: Tokens to keep of each image; they sum to `count`.
    """
    total = sum(sizes)
    shares = [divmod(count * size, total) for size in sizes]
    in_line = sorted(range(len(sizes)), key=lambda image: (shares[image][0] > 0, -shares[image][1]))
    lucky = set(in_line[: count - sum(whole for whole, _ in shares)])
    return [whole + (image in lucky) for image, (whole, _) in enumerate(shares)]


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


def true_positions(mask: Tensor, count: int) -> Tensor:
    """
    Positions of the true values, ascending; unlike `nonzero` it need not wait to learn how many there are.

    :param mask: Booleans, shape `(T,)`.
    :param count: How many of them are true.
    :returns: int64 positions, shape `(count,)`.
    """
    return torch.sort(mask.byte(), descending=True, stable=True).indices[:count]
