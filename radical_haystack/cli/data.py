# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that tells what is in a data set."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from radical_haystack.cli.shared import AsJson, messages, print_json, work

SHOWN_NAMES = 5


def data(
    name: Annotated[str, typer.Argument(help="fashioniq, flickr30k or mscoco.")],
    root: Annotated[Path, typer.Option(help="Folder of the data set.")],
    as_json: AsJson = False,
) -> None:
    """Tell what was found of a data set: its queries, its images, and those that are missing."""
    with work():
        from radical_haystack.evaluation import load_dataset

        summary = load_dataset(name, root).summary()
    if as_json:
        return print_json(summary)
    table = Table("", "", title=escape(f"{name} in '{root}'"), show_header=False)
    for label, count in (
        ("queries", summary["queries"]),
        *((f"  {category}", count) for category, count in summary["queries_by_category"].items()),
        ("images found", summary["images"]),
        ("images missing", summary["missing_images"]),
        ("queries whose target is missing", summary["queries_without_target"]),
        ("queries whose reference is missing", summary["queries_without_reference"]),
        ("candidates per query", summary["candidates"]),
        ("drawn from a pool of", summary["pool"]),
    ):
        table.add_row(label, f"{count:,}")
    Console().print(table)
    missing = summary["missing_image_names"]
    if missing:
        more = f" and {len(missing) - SHOWN_NAMES:,} more (all with --json)" if len(missing) > SHOWN_NAMES else ""
        text = f"Missing: {', '.join(missing[:SHOWN_NAMES])}{more}"
        messages.print(text, style="yellow", markup=False, highlight=False)
