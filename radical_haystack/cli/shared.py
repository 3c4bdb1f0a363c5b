# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the commands share: options, output and progress."""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from typer.core import TyperCommand

messages = Console(stderr=True)

PRUNER_NAMES = (
    "radical",
    "dense",
    "fastv",
    "pyramiddrop",
    "sparsevlm",
    "dart",
    "visionzip",
    "qi-ei",
    "lowres",
    "dynres-qrel",
    "dynres-dti",
    "random",
)
"""The names in `PRUNERS`, which takes seconds to import: help and mistakes should not wait for it."""


def _check_share(value: float) -> float:
    if not 0 < value <= 1:
        raise typer.BadParameter(f"a keep ratio is a share in (0, 1], such as 0.2 for 20%, not {value:g}.")
    return value


def _check_pruner(name: str) -> str:
    if name not in PRUNER_NAMES:
        raise typer.BadParameter(f"there is no pruner '{name}'; choose one of {', '.join(PRUNER_NAMES)}.")
    return name


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")]
Store = Annotated[Path, typer.Option("--store", help="Folder of the index.")]
KeepRatio = Annotated[
    float,
    typer.Option("--keep-ratio", callback=_check_share, help="Share of the visual tokens to keep, in (0, 1]."),
]
Pruner = Annotated[
    str,
    typer.Option(
        "--pruner",
        callback=_check_pruner,
        help=f"Which visual tokens are dropped: {', '.join(PRUNER_NAMES)}; dense drops none.",
    ),
]
Model = Annotated[str, typer.Option("--model", help="Hub name or folder of the reranking model.")]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let code run that comes with the first stage's model.")
]

DEFAULT_MODEL = "catalog-vlm-tiny"


class ManyValues(TyperCommand):
    """A command whose list options take several values at once: `--methods radical random`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """
        Read the command line.

        :param ctx: See Click.
        :param args: The words; the values of a list option end at the next word with a dash.
        """
        lists = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        words: list[str] = []
        option, taken = "", False
        for word in args:
            if word.startswith("-"):
                option, taken = word if word in lists else "", False
            elif option and taken:
                words.append(option)
            else:
                taken = True
            words.append(word)
        return super().parse_args(ctx, words)


# transformers makes a default SiglipTextConfig beside the one that a SigLIP's folder holds, and warns about the former.
_NEEDLESS = re.compile(r"Model config: (bos|eos)_token_id must be .*\(between 0 and 31999\), got 4940[67]\.")


def hide_needless_warnings() -> None:
    """Drop two warnings that say nothing about the model that is loaded."""
    logging.getLogger("transformers.configuration_utils").addFilter(_is_needed)


def _is_needed(record: logging.LogRecord) -> bool:
    return _NEEDLESS.match(record.getMessage()) is None


def parse_seeds(texts: list[str]) -> tuple[int, ...]:
    """
    The numbers of `--seeds`, given one by one or joined by commas.

    :param texts: What was given.
    :raises ValueError: If one is not a whole number.
    """
    try:
        return tuple(int(part) for text in texts for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ValueError(f"--seeds takes whole numbers, such as 42,123, not {' '.join(texts)!r}.") from error


@contextmanager
def resumable(out: Path | None) -> Iterator[None]:
    """
    Say how to go on if the user interrupts what is done here.

    :param out: Where results are stored as they come, if anywhere.
    """
    try:
        yield
    except KeyboardInterrupt:
        if out is not None:
            messages.print(f"Interrupted; the same command goes on with what is in '{out}'.", markup=False)
        raise


def print_json(result: object) -> None:
    """Print a result for machines."""
    print(json.dumps(result, indent=2))


def note_on_bundled_models(images: str | Path, *models: str) -> None:
    """
    Say on stderr if models that know the drawn catalogue only are used on other images.

    :param images: The folder of the images.
    :param models: The first stage, the reranking model or both.
    """
    from radical_haystack.catalog.gallery import is_gallery
    from radical_haystack.components.bundled import BUNDLED_MODELS

    bundled = [model for model in models if model in ("bundled", *BUNDLED_MODELS)]
    if bundled and not is_gallery(images):
        text = (
            f"Note: for the drawn catalogue only, no use on other images such as photos: {' and '.join(bundled)}. "
            "Choose real models with --first-stage of index and --model of search."
        )
        messages.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


class _Steps(Progress):
    """A bar for what is counted, a spinner for what is not."""

    def get_renderables(self) -> Iterator[Table]:
        name = TextColumn("{task.description}")
        counted = (name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("left"))
        waiting = (SpinnerColumn(), name, TimeElapsedColumn(), TextColumn("so far"))
        for task in self.tasks:
            self.columns = waiting if task.total is None else counted
            yield self.make_tasks_table([task])


@contextmanager
def work() -> Iterator[Callable[[str, int, int], None]]:
    """Show progress on stderr; whatever libraries print meanwhile goes there too, so that stdout holds the result."""
    bar = _Steps(console=messages)
    tasks: dict[str, TaskID] = {}

    def progress(step: str, done: int, total: int) -> None:
        bar.start()
        if step not in tasks:
            for task in bar.tasks:  # what was waited for is there
                bar.update(task.id, visible=task.total is not None)
            tasks[step] = bar.add_task(step, total=None)
        bar.update(tasks[step], completed=done, total=total or None)

    with redirect_stdout(sys.stderr):
        try:
            yield progress
        finally:
            bar.stop()
