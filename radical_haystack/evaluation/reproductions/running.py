# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Measuring one reproduction, or all of them with one model and no ranking made twice."""

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from radical_haystack.evaluation.environment import ModelInfo, environment, model_info
from radical_haystack.evaluation.reproductions.base import METHODS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import verdicts
from radical_haystack.evaluation.reproductions.registry import REPRODUCTIONS
from radical_haystack.evaluation.reproductions.session import Session, Settings

ALL = "all"


@dataclass(frozen=True)
class Finished:
    """
    A reproduction that was measured.

    :param reproduction: The reproduction.
    :param outcome: What it found.
    :param command: The command that measures the same.
    """

    reproduction: Reproduction
    outcome: Outcome
    command: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.reproduction.name,
            "number": self.reproduction.number,
            "shows": self.reproduction.shows,
            "command": self.command,
            "tables": [sheet.to_dict() for sheet in self.outcome.sheets],
            "notes": list(self.outcome.notes),
            "values": self.outcome.values,
        }


@dataclass(frozen=True)
class Report:
    """
    All that was measured.

    :param command: The command that measures all of it.
    :param settings: What the user chose.
    :param finished: What was measured.
    :param refused: By name, why something cannot be measured with these settings.
    :param verdicts: How RaDiCal compares, in sentences.
    :param model: The model.
    :param environment: With what it was measured.
    :param seconds: How long it took.
    """

    command: str
    settings: Settings
    finished: tuple[Finished, ...]
    refused: dict[str, str]
    verdicts: tuple[str, ...]
    model: ModelInfo
    environment: dict[str, Any]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "command": self.command,
            "reproductions": [one.to_dict() for one in self.finished],
            "refused": self.refused,
            "model": self.model.to_dict(),
            "environment": self.environment,
            "seconds": self.seconds,
        }


def reproduce(
    name: str,
    settings: Settings | None = None,
    *,
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> Report:
    """
    Measure what a table or figure of the paper shows.

    :param name: One of `REPRODUCTIONS`, or `"all"`, which leaves out what cannot be measured on the chosen data.
    :param settings: Data, models and amounts; default: the drawn catalogue and the bundled model.
    :param progress: Called with what is done, the number of items done and of all.
    :returns: What was measured.
    :raises ValueError: If there is none of that name, or it cannot be measured with these settings.
    :raises OSError: If the data or a model is not there.
    """
    settings = settings or Settings()
    if name not in (ALL, *REPRODUCTIONS):
        raise ValueError(f"There is nothing to reproduce by the name '{name}'; known: {', '.join(REPRODUCTIONS)}, all.")
    chosen = tuple(REPRODUCTIONS.values()) if name == ALL else (REPRODUCTIONS[name],)
    reasons = ((one.name, one.refusal(settings)) for one in chosen)
    refused = {known: reason for known, reason in reasons if reason is not None}
    if name in refused:
        raise ValueError(refused[name])
    started = time.perf_counter()
    session = Session(settings, [one for one in chosen if one.name not in refused], progress)
    finished = []
    for done, one in enumerate(session.reproductions):
        if name == ALL:
            progress("Reproductions", done, len(session.reproductions))
        finished.append(Finished(one, one.run(session), command_of(one.name, settings, session.count(one))))
    if name == ALL:
        progress("Reproductions", len(finished), len(finished))
    compared = session.compared(METHODS)
    return Report(
        command=command_of(name, settings, settings.queries),
        settings=settings,
        finished=tuple(finished),
        refused=refused,
        verdicts=() if compared is None else verdicts(compared),
        model=model_info(session.vlm(calibrate=False)),
        environment=environment(str(session.vlm(calibrate=False).device)),
        seconds=time.perf_counter() - started,
    )


def command_of(name: str, settings: Settings, queries: int | None) -> str:
    """
    The command that measures the same.

    :param name: What is measured.
    :param settings: What the user chose.
    :param queries: How many queries; `None` for what each takes by itself.
    """
    plain = Settings()
    words: list[str] = ["radical-haystack", "reproduce", name]
    given = {
        "--data": (settings.data, plain.data),
        "--root": (settings.root, plain.root),
        "--model": (settings.models, plain.models),
        "--first-stage": (settings.first_stages, plain.first_stages),
        "--candidates": (settings.candidates, plain.candidates),
        "--keep-ratio": (settings.keep_ratios, plain.keep_ratios),
        "--seeds": (settings.seeds, plain.seeds),
        "--records": (settings.records, plain.records),
        "--queries": (queries, None),
    }
    for option, (value, default) in given.items():
        if value != default:
            words += [option, *map(str, value if isinstance(value, tuple) else (value,))]
    if settings.trust_remote_code:
        words.append("--trust-remote-code")
    return shlex.join(words)
