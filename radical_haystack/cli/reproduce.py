# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that measures what a table or figure of the paper shows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from radical_haystack.cli.shared import (
    DEFAULT_MODEL,
    AsJson,
    TrustRemoteCode,
    parse_seeds,
    print_json,
    resumable,
    work,
)

if TYPE_CHECKING:
    from radical_haystack.evaluation.engine import EngineName
    from radical_haystack.evaluation.reproductions import Report

DEFAULT_MODELS = [DEFAULT_MODEL]
DEFAULT_KEEP_RATIOS = [0.2, 0.1]
DEFAULT_SEEDS = ["42"]


def reproduce(
    name: Annotated[str, typer.Argument(help="Which table or figure, such as main; all for all of them.")] = "",
    names: Annotated[bool, typer.Option("--list", help="Only list the names.")] = False,
    data: Annotated[str, typer.Option(help="catalogue, flickr30k, mscoco or fashioniq.")] = "catalogue",
    root: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the data set.")] = None,
    model: Annotated[
        list[str], typer.Option(metavar="NAME...", help="Hub names or folders; all but the first only for `models`.")
    ] = DEFAULT_MODELS,
    first_stage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME...",
            help="What finds the candidates: presets or sentence-transformers models; all but the first only for "
            "`retrievers`. Default: the data set's own candidates.",
        ),
    ] = None,
    trust_remote_code: TrustRemoteCode = False,
    queries: Annotated[
        int | None,
        typer.Option(
            min=1, help="Queries that each seed draws; of the catalogue, of each category. Default: as many as suffice."
        ),
    ] = None,
    candidates: Annotated[int, typer.Option(min=1, max=52, help="Candidates per query.")] = 20,
    keep_ratio: Annotated[
        list[float],
        typer.Option(metavar="R...", help="Shares of the visual tokens to keep, in (0, 1]; the first counts most."),
    ] = DEFAULT_KEEP_RATIOS,
    seeds: Annotated[list[str], typer.Option(metavar="SEED...", help="Seeds of what is drawn.")] = DEFAULT_SEEDS,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For `single-image`: JSONL with image, question, answer; or the folder of records.jsonl.",
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local, or ray for one replica of the model per GPU of a Ray cluster.")
    ] = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Replicas for ray. Default: one per GPU.")] = None,
    device: Annotated[str | None, typer.Option(help="Where models run, such as cpu or cuda:1.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for tables (CSV, LaTeX, Markdown), figures and rankings; run again, it goes on from there.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all of it as one Markdown document, pictures beside it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure what a table or figure of the paper shows, beside what the paper says."""
    if names:
        return _list(as_json)
    if not name:
        raise ValueError("Say what to reproduce, or all; radical-haystack reproduce --list lists the names.")
    with work() as progress:
        progress("Loading the libraries", 0, 0)
        from radical_haystack import viz
        from radical_haystack.evaluation import reproductions
        from radical_haystack.evaluation.metrics import ir_measures_import

        ir_measures_import.check()  # now, and not when everything is ranked
        if out is not None or markdown is not None:
            viz.require_matplotlib()
        settings = reproductions.Settings(
            data=data,
            root=None if root is None else str(root.resolve()),
            models=tuple(model),
            first_stages=tuple(first_stage or ()),
            trust_remote_code=trust_remote_code,
            queries=queries,
            candidates=candidates,
            keep_ratios=tuple(keep_ratio),
            seeds=parse_seeds(seeds),
            records=records,
            engine=cast("EngineName", engine),
            workers=workers,
            device=device,
            out=out,
        )
        with resumable(out):
            report = reproductions.reproduce(name, settings, progress=progress)
        if out is not None:
            reproductions.write_results(report, out)
        if markdown is not None:
            reproductions.write_document(report, markdown)
    if as_json:
        return print_json(report.to_dict())
    _print(report)
    for what, place in (("tables and figures", out), ("document", markdown)):
        if place is not None:
            print(f"{what}: {place}")


def _list(as_json: bool) -> None:
    from radical_haystack.evaluation.reproductions import REPRODUCTIONS

    known = [{"name": one.name, "number": one.number, "shows": one.shows} for one in REPRODUCTIONS.values()]
    if as_json:
        return print_json(known)
    table = Table("name", "in the paper", "shows")
    for row in known:
        table.add_row(*map(escape, row.values()))
    Console().print(table)


def _print(report: "Report") -> None:
    console = Console()
    for one in report.finished:
        console.rule(escape(f"{one.reproduction.name} ({one.reproduction.number})"))
        for sheet in one.outcome.sheets:
            console.print(sheet)
        for note in one.outcome.notes:
            console.print(escape(note), highlight=False)
    for reason in report.refused.values():
        console.print(escape(reason), style="yellow", highlight=False)
