# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that measures where a model may be pruned."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from radical_haystack.cli.shared import AsJson, Model, print_json, work


def calibrate(
    model: Model,
    images: Annotated[Path, typer.Option(help="Folder of images like those to be ranked.")],
    query: Annotated[list[str] | None, typer.Option(help="A typical query; may be given several times.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure where a model may be pruned, and remember it; without this, rankers do so on their first queries."""
    with work() as progress:
        from radical_haystack.pipelines.calibrating import QUERIES, calibrate_on_folder
        from radical_haystack.pruning import trust_coefficients

        schedule = calibrate_on_folder(
            images, model=model, queries=query or QUERIES, progress=lambda *at: progress("Measuring", *at)
        )
    if as_json:
        return print_json(json.loads(schedule.to_json()))
    entropies = schedule.entropies or ()
    table = Table("layer", "H_norm", "alpha", "", title=f"Attention of {model}")
    for layer, (entropy, alpha) in enumerate(zip(entropies, trust_coefficients(entropies), strict=True)):
        table.add_row(str(layer), f"{entropy:.3f}", f"{alpha:.2f}", "prune here" if layer in schedule.layers else "")
    Console().print(table)
