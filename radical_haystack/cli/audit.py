# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that tells what pruning does to groups of images."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from radical_haystack.cli.shared import (
    DEFAULT_MODEL,
    AsJson,
    KeepRatio,
    Model,
    TrustRemoteCode,
    messages,
    print_json,
    work,
)

if TYPE_CHECKING:
    from radical_haystack.evaluation.audit import Audit
    from radical_haystack.evaluation.exposure import Shift

DEFAULT_METHODS = ["radical"]


def audit(
    group_by: Annotated[
        str,
        typer.Option(
            metavar="FIELD",
            help="The field of the images to group by; 'folder' is the first folder of an image's path. On the "
            "catalogue: kind, colour, pattern, length or accent of the upper garment.",
        ),
    ],
    store: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the index. Default: the drawn catalogue.")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One query a line, or a .json or .jsonl file.")
    ] = None,
    metadata: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Fields of the images: a .csv, .json or .jsonl file with 'file_path'."),
    ] = None,
    methods: Annotated[
        list[str], typer.Option(metavar="NAME...", help="Pruning methods to compare with the dense order.")
    ] = DEFAULT_METHODS,
    keep_ratio: KeepRatio = 0.2,
    top_k: Annotated[int, typer.Option(min=1, help="The share of this many first places is compared.")] = 10,
    candidates: Annotated[int, typer.Option(min=1, help="How many images the first stage hands over.")] = 20,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for audit.json and exposure.csv.")] = None,
    model: Model = DEFAULT_MODEL,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
) -> None:
    """Compare which groups of images are seen with and without pruning, and what a query costs."""
    if (store is None) != (queries is None) or (store is None and metadata is not None):
        raise ValueError("An audit takes --store and --queries, with or without --metadata, or none of these.")
    with work() as progress:
        from radical_haystack.evaluation.audit import audit_catalogue, run_audit
        from radical_haystack.evaluation.audit_files import read_metadata, read_queries

        if store is None or queries is None:
            progress("Loading the models", 0, 0)
            result = audit_catalogue(
                group_by=group_by,
                methods=methods,
                model=model,
                candidates=candidates,
                keep_ratio=keep_ratio,
                top_k=top_k,
                progress=progress,
            )
        else:
            texts = read_queries(queries)
            fields = None if metadata is None else read_metadata(metadata)
            progress("Loading the models", 0, 0)
            result = run_audit(
                store,
                texts,
                group_by=group_by,
                metadata=fields,
                methods=methods,
                model=model,
                candidates=candidates,
                keep_ratio=keep_ratio,
                top_k=top_k,
                trust_remote_code=trust_remote_code,
                progress=progress,
            )
        files = [] if out is None else result.write(out)
    if as_json:
        return print_json(result.to_dict())
    _print(result)
    for file in files:
        print(file)


def _print(result: "Audit") -> None:
    console = Console()
    count = len(result.queries)
    for method, groups in result.shifts.items():
        title = f"{method} at a keep ratio of {result.keep_ratio:g}, {count} queries"
        for measure, name in (("exposure", "exposure"), ("top_k", f"top {result.top_k}")):
            table = Table(escape(result.group_by), "images", "dense", "pruned", "change", "95% interval")
            table.title = escape(f"{title}: share of {name} in %")
            for group in groups:
                table.add_row(escape(group.group), str(group.documents), *_cells(getattr(group, measure)))
            console.print(table)
    console.print("* the interval leaves 0 out\n", highlight=False)
    costs = Table("", "seconds", "joules", title="Cost of a query")
    for method, cost in result.costs.items():
        costs.add_row(method, f"{cost.seconds:.2f}", "no meter" if cost.joules is None else f"{cost.joules:.2f}")
    console.print(costs)
    energy = f"Energy read from {result.meter}" if result.meter else f"No meter: {result.no_meter}"
    console.print(energy, highlight=False, markup=False)
    for file, reason in result.unreadable.items():
        messages.print(f"Left out {file}: {reason}", style="yellow", markup=False, highlight=False)


def _cells(shift: "Shift") -> tuple[str, str, str, str]:
    interval = ""
    if shift.low is not None and shift.high is not None:
        interval = f"{100 * shift.low:+.1f} to {100 * shift.high:+.1f}{' *' if shift.is_clear else ''}"
    return f"{100 * shift.dense:.1f}", f"{100 * shift.pruned:.1f}", f"{100 * shift.difference:+.1f}", interval
