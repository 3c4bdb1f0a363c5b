# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Results as they are stored: one JSON object per line, written as they come."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

Key = tuple[int, str, str, float]
"""Seed, query id, method and keep ratio of a result."""

SKIPPED = "skipped"


@dataclass(frozen=True)
class Stage:
    """
    What happened at one pruning layer.

    :param layer: The layer, 0-based; -1 for the decoder's input.
    :param before: Candidate tokens that reached it.
    :param kept: Candidate tokens that stayed.
    :param figures: What the method recorded there, such as `entropy` (H_norm) and `alpha`.
    """

    layer: int
    before: int
    kept: int
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Pass:
    """
    One prompt through the model.

    :param full: Visual tokens of its candidates at their full size.
    :param visual: Visual tokens of its candidates as it was built; fewer where a method makes images smaller.
    :param text: All other tokens, those of a reference image included.
    :param stages: The pruning layers.
    """

    full: int
    visual: int
    text: int
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True)
class Record:
    """
    One query ranked by one method. Where there is one entry per candidate, it is in the order of `candidates`.

    :param seed: The seed that drew the query and its candidates.
    :param query: The query's id.
    :param category: Its category; empty where there are none.
    :param method: The method's name.
    :param keep_ratio: The keep ratio; 1 for a method that has none.
    :param candidates: Ids of the candidates as they were presented.
    :param order: Their ids, best first; those that could not be read stand last.
    :param scores: Score per candidate, higher is better; `None` for one that could not be read.
    :param score_kind: See `Ranking`.
    :param relevant: Ids of all documents that are relevant to the query, among the candidates or not.
    :param target_rank: Rank of the first relevant one, from 1; `None` if no candidate is relevant.
    :param kept_tokens: Visual tokens per candidate that reached the end.
    :param total_tokens: Visual tokens per candidate before pruning, at full size.
    :param passes: The prompts; more than one where the candidates needed several windows.
    :param seconds: `encode_full` (all images at full size, once for all methods of the query), `encode` (what the
        method itself spent on encoding beyond that), `prefill` (the decoder on the prompts, with all that pruning adds
        to it), `select` (the part of it at pruning layers), `rank` (prompts and decoder) and `total`.
    :param fallback: Whether the model left out candidates in a written permutation.
    :param unreadable: By id, why a candidate's image could not be read.
    :param measured: What the experiment's own measure says, if it has one.
    """

    seed: int
    query: str
    category: str
    method: str
    keep_ratio: float
    candidates: tuple[str, ...]
    order: tuple[str, ...]
    scores: tuple[float | None, ...]
    score_kind: str
    relevant: tuple[str, ...]
    target_rank: int | None
    kept_tokens: tuple[int, ...]
    total_tokens: tuple[int, ...]
    passes: tuple[Pass, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    fallback: bool = False
    unreadable: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What tells this result from all others of its experiment."""
        return self.seed, self.query, self.method, self.keep_ratio

    @property
    def kept_share(self) -> float:
        """Share of the visual tokens that reached the end; not a number where there were none."""
        total = sum(self.total_tokens)
        return sum(self.kept_tokens) / total if total else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Record":
        """
        Make what `to_dict` wrote.

        :param data: The plain values.
        :raises TypeError: If a field is missing or unknown.
        """
        passes = tuple(
            Pass(**{**one, "stages": tuple(Stage(**stage) for stage in one["stages"])}) for one in data["passes"]
        )
        lists = ("candidates", "order", "scores", "relevant", "kept_tokens", "total_tokens")
        return cls(**{**data, **{name: tuple(data[name]) for name in lists}, "passes": passes})


@dataclass(frozen=True)
class Skipped:
    """
    A query that could not be ranked.

    :param seed: The seed that drew it.
    :param query: Its id.
    :param category: Its category; empty where there are none.
    :param skipped: Why.
    """

    seed: int
    query: str
    category: str
    skipped: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


Entry = Record | Skipped


def entry_from_dict(data: Mapping[str, Any]) -> Entry:
    """
    Make what a `to_dict` of this module wrote.

    :param data: The plain values.
    :raises TypeError: If a field is missing or unknown.
    """
    return Skipped(**data) if SKIPPED in data else Record.from_dict(data)


class ResultsFile:
    """
    A file of results that is only ever appended to. Use it as a context.

    A line that was being written when the process was killed is dropped when the file is opened again.

    :param path: The file; made if it is not there.
    :raises ValueError: If a line is not a result.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.entries, whole = _read(self.path)
        """What the file held when it was opened."""
        self._file = self.path.open("ab")
        self._file.truncate(whole)

    def append(self, entries: Iterable[Entry]) -> None:
        """
        Write results, and hand them to the operating system before this returns.

        :param entries: The results.
        """
        text = "".join(json.dumps(entry.to_dict()) + "\n" for entry in entries)
        self._file.write(text.encode())
        self._file.flush()

    def __enter__(self) -> "ResultsFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()


def read_results(path: str | Path) -> list[Entry]:
    """
    Read a file of results; a torn last line is passed over.

    :param path: The file.
    :raises ValueError: If a line is not a result.
    """
    return _read(Path(path))[0]


def _read(path: Path) -> tuple[list[Entry], int]:
    """The results, and how many bytes of the file hold them."""
    if not path.exists():
        return [], 0
    entries: list[Entry] = []
    whole = 0
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):  # the last one, torn
            break
        try:
            entries.append(entry_from_dict(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"'{path}', line {number} is not a result of an evaluation ({error}).") from error
        whole += len(line)
    return entries, whole
