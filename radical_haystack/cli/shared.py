# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the commands share: options, output and progress."""

import json
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
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from typer.core import TyperCommand

messages = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")]
Store = Annotated[Path, typer.Option("--store", help="Folder of the index.")]
KeepRatio = Annotated[float, typer.Option("--keep-ratio", help="Share of the visual tokens to keep, in (0, 1].")]
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


def print_json(result: object) -> None:
    """Print a result for machines."""
    print(json.dumps(result, indent=2))


def note_on_bundled_models(images: str | Path, *models: str) -> None:
    """
    Say on stderr if models that know the drawn catalogue only are used on other images.

    :param images: The folder of the images.
    :param models: The first stage, the reranking model or both.
    """
    from radical_haystack.catalog.gallery import CAPTIONS_FILE
    from radical_haystack.components.bundled import BUNDLED_MODELS

    bundled = [model for model in models if model in ("bundled", *BUNDLED_MODELS)]
    if bundled and not (Path(images) / CAPTIONS_FILE).is_file():  # the gallery is written with captions
        text = (
            f"Note: for the drawn catalogue only, no use on other images such as photos: {' and '.join(bundled)}. "
            "Choose real models with --first-stage of index and --model of search."
        )
        messages.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def work() -> Iterator[Callable[[str, int, int], None]]:
    """Show progress on stderr; whatever libraries print meanwhile goes there too, so that stdout holds the result."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=messages,
    )
    tasks: dict[str, TaskID] = {}

    def progress(step: str, done: int, total: int) -> None:
        bar.start()
        if step not in tasks:
            tasks[step] = bar.add_task(step)
        bar.update(tasks[step], completed=done, total=total or None)

    with redirect_stdout(sys.stderr):
        try:
            yield progress
        finally:
            bar.stop()
