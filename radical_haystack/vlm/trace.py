# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What a pruned pass did: the tokens kept at each stage, the figures behind the choice, and how long it took."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from radical_haystack.pruning.pruners.base import BEFORE_DECODER

Stamp = float | torch.cuda.Event


def stamp(device: torch.device) -> Stamp:
    """A moment on a device's own clock; on CUDA an event, so that nothing waits."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(device))
    return event


def seconds_between(start: Stamp, end: Stamp) -> float:
    """Seconds from one stamp to a later one of the same device; waits for that device if it has not got there."""
    if isinstance(start, torch.cuda.Event) and isinstance(end, torch.cuda.Event):
        end.synchronize()
        return start.elapsed_time(end) / 1000
    assert isinstance(start, float)
    assert isinstance(end, float)
    return end - start


@dataclass(frozen=True)
class PruningStage:
    """
    What happened at one pruning layer.

    :param layer: The decoder layer, 0-based, or `BEFORE_DECODER` (-1) for the decoder's input.
    :param before: Number of candidate tokens that reached it.
    :param kept: Indices of the tokens that stayed, into all candidate tokens, ascending, int64 on the CPU.
    :param kept_per_candidate: How many of them belong to each candidate.
    :param figures: What the pruner recorded, such as `entropy` and `alpha`.
    """

    layer: int
    before: int
    kept: Tensor
    kept_per_candidate: tuple[int, ...]
    figures: Mapping[str, float]

    @property
    def entropy(self) -> float | None:
        """H_norm of the text-to-visual distribution at this layer, if the pruner looked at it."""
        return self.figures.get("entropy")

    @property
    def alpha(self) -> float | None:
        """The trust coefficient used at this layer, if the pruner has one."""
        return self.figures.get("alpha")

    def __str__(self) -> str:
        figures = "".join(f", {name} {value:.3f}" for name, value in self.figures.items())
        where = "input" if self.layer == BEFORE_DECODER else f"layer {self.layer}"
        return f"{where}: {self.before} -> {self.kept.numel()}{figures}"


@dataclass
class PruningTrace:
    """
    Filled while a prompt passes through a model under `prune`; read it afterwards.

    Results stay on the model's device until they are first read, so that a pass never waits for its own trace.

    :param candidate_index: The candidate each visual token belongs to, shape `(V,)`.
    :param patch_grids: Patch grid `(t, h, w)` of each candidate as the model was given it, shape `(N, 3)`, on any
        device; `None` if it is not known.
    :param members: For a pass of a ranking: which of its candidates this prompt held, in prompt order.
    """

    candidate_index: Tensor = field(repr=False)
    patch_grids: Tensor | None = field(default=None, repr=False)
    members: tuple[int, ...] = field(default=(), repr=False)
    _raw: list[tuple[int, int, Tensor, Mapping[str, float | Tensor]]] = field(default_factory=list, repr=False)
    _spans: list[tuple[str, Stamp, Stamp]] = field(default_factory=list, repr=False)
    _stages: tuple[PruningStage, ...] | None = field(default=None, repr=False)

    def clear(self) -> None:
        """Forget everything: a new pass begins."""
        self._raw.clear()
        self._spans.clear()
        self._stages = None

    def add_stage(self, layer: int, before: int, kept: Tensor, figures: Mapping[str, float | Tensor]) -> None:
        """
        Record one pruning layer.

        :param layer: See `PruningStage`.
        :param before: Number of candidate tokens that reached it.
        :param kept: Indices of the tokens that stay, on any device.
        :param figures: The pruner's record; values may still be tensors.
        """
        self._raw.append((layer, before, kept, figures))
        self._stages = None

    def add_span(self, name: str, start: Stamp, end: Stamp) -> None:
        """Record how long something took; spans of one name are summed."""
        self._spans.append((name, start, end))

    @property
    def stages(self) -> tuple[PruningStage, ...]:
        """One entry per pruning layer, in order of depth."""
        if self._stages is None:
            self._stages = tuple(self._read_stages())
        return self._stages

    def _read_stages(self) -> list[PruningStage]:
        if not self._raw:
            return []
        sizes = [kept.numel() for _, _, kept, _ in self._raw]
        together = torch.cat([kept for _, _, kept, _ in self._raw]).cpu().split(sizes)
        return [
            PruningStage(layer, before, kept, self._per_candidate(kept), {k: float(v) for k, v in figures.items()})
            for (layer, before, _, figures), kept in zip(self._raw, together, strict=True)
        ]

    def _per_candidate(self, kept: Tensor) -> tuple[int, ...]:
        count = len(self.total_per_candidate)
        return tuple(torch.bincount(self.candidate_index[kept], minlength=count).tolist())

    @property
    def total_per_candidate(self) -> tuple[int, ...]:
        """Number of visual tokens of each candidate before pruning."""
        return tuple(torch.bincount(self.candidate_index).tolist())

    @property
    def grids(self) -> tuple[tuple[int, int], ...]:
        """
        Rows and columns of each candidate's visual tokens, which are in row-major order.

        :raises ValueError: If the patch grids are not known or do not fit the tokens.
        """
        if self.patch_grids is None:
            raise ValueError("This trace does not know its images' token grids; ListwiseVLM.rank records them.")
        sizes = self.total_per_candidate
        return tuple(_token_grid(grid, size) for grid, size in zip(self.patch_grids.tolist(), sizes, strict=True))

    @property
    def kept(self) -> Tensor:
        """Indices of the candidate tokens that reached the end, ascending."""
        return self.stages[-1].kept if self.stages else torch.arange(self.candidate_index.numel())

    @property
    def kept_per_candidate(self) -> tuple[int, ...]:
        """Number of visual tokens of each candidate that reached the end."""
        return self.stages[-1].kept_per_candidate if self.stages else self.total_per_candidate

    @property
    def timings(self) -> dict[str, float]:
        """Seconds: `prior` (before the decoder), `select` (at pruning layers), `decoder` (all of it, prompt only)."""
        seconds: dict[str, float] = {}
        for name, start, end in self._spans:
            seconds[name] = seconds.get(name, 0.0) + seconds_between(start, end)
        return seconds

    def __repr__(self) -> str:
        total = self.candidate_index.numel()
        stages = "".join(f"; {stage}" for stage in self.stages)
        return f"PruningTrace({total} -> {self.kept.numel()} visual tokens{stages})"


def _token_grid(patches: Sequence[int], tokens: int) -> tuple[int, int]:
    """Rows and columns of an image's tokens, each of which merges a square of patches."""
    frames, height, width = patches
    side = math.isqrt(frames * height * width // tokens)
    rows, columns = frames * height // side, width // side
    if rows * columns != tokens:
        raise ValueError(f"{tokens} visual tokens do not fit a grid of {frames} x {height} x {width} patches.")
    return rows, columns
