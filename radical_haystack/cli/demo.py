# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that shows everything at once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from radical_haystack.cli.shared import AsJson, print_json, work

if TYPE_CHECKING:
    from radical_haystack.demo.benchmark import Benchmark
    from radical_haystack.demo.run import DemoResult, ShownImage


def demo(
    output: Annotated[Path, typer.Option(help="Folder for pictures, index and report.")] = Path("demo-output"),
    pictures: Annotated[int, typer.Option(help="Pictures in the gallery.")] = 600,
    shown: Annotated[int, typer.Option(help="Gallery searches shown in the report.")] = 6,
    queries: Annotated[
        int, typer.Option(help="Held-out queries the figures are measured on, and half as many composed.")
    ] = 40,
    as_json: AsJson = False,
) -> None:
    """Index the drawn catalogue, search it, measure the reranker, and write a page that shows it all."""
    with work() as progress:
        from radical_haystack.demo import run_demo

        result = run_demo(output, pictures=pictures, shown_queries=shown, benchmark_queries=queries, progress=progress)
    if as_json:
        return print_json(result.to_dict())
    _print_demo(result)


def _print_demo(result: "DemoResult") -> None:
    console = Console()
    for query in result.queries:
        start = "" if query.reference is None else f"{escape(query.reference.stem)}: "
        table = Table("", "first stage", "reranked", "tokens kept", title=f"{start}“{escape(query.text)}”")
        for place, (before, after) in enumerate(zip(query.first_stage, query.reranked, strict=True), start=1):
            tokens = f"{after.kept_tokens} of {after.total_tokens}"
            table.add_row(str(place), _name(before), _name(after), tokens)
        console.print(table)
        dense, pruned = 1000 * query.seconds_dense, 1000 * query.seconds_pruned
        console.print(f"prefill: {dense:.0f} ms dense, {pruned:.0f} ms pruned\n", highlight=False)
    _print_figures(console, result.benchmark, f"{result.benchmark_queries} held-out queries, hard candidates")
    _print_figures(console, result.composed_benchmark, f"{result.composed_queries} composed queries, hard candidates")
    console.print(f"prefill {result.benchmark.prefill_speedup:.2f}x as fast as dense at a keep ratio of 0.2")
    print(f"report: {result.report}")


def _print_figures(console: Console, benchmark: "Benchmark", title: str) -> None:
    table = Table("", "MRR@10", "prefill", title=title)
    for name, value in benchmark.mrr_at_10.items():
        seconds = benchmark.prefill_seconds.get(name)
        table.add_row(name, f"{value:.3f}", "" if seconds is None else f"{1000 * seconds:.0f} ms")
    console.print(table)


def _name(image: "ShownImage") -> str:
    return f"[green]✔ {image.path.stem}[/green]" if image.hit else f"  {image.path.stem}"
