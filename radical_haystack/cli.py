# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command line. Each command calls one function of the package and prints what it returns."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

if TYPE_CHECKING:
    from radical_haystack.demo.run import DemoResult, ShownImage

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Rerank images with a listwise vision-language model that prunes its visual tokens (RaDiCal).",
)
messages = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")]
Store = Annotated[Path, typer.Option("--store", help="Folder of the index.")]
KeepRatio = Annotated[float, typer.Option("--keep-ratio", help="Share of the visual tokens to keep, in (0, 1].")]
Model = Annotated[str, typer.Option("--model", help="Hub name or folder of the reranking model.")]

DEFAULT_MODEL = "catalog-vlm-tiny"


def main() -> None:
    """Run the command line: a mistake of the user gives one line on stderr and exit code 2, never a traceback."""
    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except Exception as error:
        usage = getattr(error, "format_message", None)  # what the command line itself refuses
        if usage is None and not isinstance(error, OSError | ValueError):
            raise
        text = (usage() if usage else str(error)) or type(error).__name__
        print("error:", " ".join(text.split()), file=sys.stderr)
        sys.exit(2)
    sys.exit(code or 0)


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for pictures, index and report.")] = Path("demo-output"),
    pictures: Annotated[int, typer.Option(help="Pictures in the gallery.")] = 600,
    shown: Annotated[int, typer.Option(help="Gallery searches shown in the report.")] = 6,
    queries: Annotated[int, typer.Option(help="Held-out queries the figures are measured on.")] = 40,
    as_json: AsJson = False,
) -> None:
    """Index the drawn catalogue, search it, measure the reranker, and write a page that shows it all."""
    with _work() as progress:
        from radical_haystack.demo import run_demo

        result = run_demo(output, pictures=pictures, shown_queries=shown, benchmark_queries=queries, progress=progress)
    if as_json:
        return _print_json(result.to_dict())
    _print_demo(result)


@app.command()
def index(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of images; its subfolders are searched too.")],
    store: Store,
    first_stage: Annotated[
        str, typer.Option(help="A preset, or any sentence-transformers model for text and images.")
    ] = "bundled",
    batch_size: Annotated[int, typer.Option(min=1, help="Images per batch; a killed run loses one batch.")] = 32,
    as_json: AsJson = False,
) -> None:
    """Index a folder of images. Run again, it embeds only what is new or was changed."""
    with _work() as progress:
        from radical_haystack.pipelines import index_folder

        report = index_folder(
            folder,
            store,
            first_stage=first_stage,
            batch_size=batch_size,
            progress=lambda *at: progress("Indexing", *at),
        )
    if as_json:
        return _print_json({**asdict(report), "store": str(store)})
    for file, reason in report.unreadable.items():
        messages.print(f"Skipped {file}: {reason}", style="yellow", markup=False, highlight=False)
    print(
        f"{report.indexed} images indexed, {report.unchanged} unchanged, {report.removed} removed, "
        f"{len(report.unreadable)} unreadable; {report.total} in '{store}'."
    )


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    store: Store,
    top_k: Annotated[int, typer.Option(min=1, help="How many images to show.")] = 10,
    keep_ratio: KeepRatio = 0.2,
    model: Model = DEFAULT_MODEL,
    as_json: AsJson = False,
) -> None:
    """Search an index: retrieve, then rerank."""
    with _work() as progress:
        from radical_haystack.pipelines import search_folder

        progress("Loading the models", 0, 0)
        documents = search_folder(store, query, model=model, top_k=top_k, keep_ratio=keep_ratio)
    results = [
        {"score": document.score, "file": document.meta["file_path"], **document.meta["radical"]}
        for document in documents
    ]
    if as_json:
        return _print_json({"query": query, "results": results})
    table = Table("rank", "file", "score", "first stage", "tokens kept", title=query)
    for result in results:
        score = "unreadable" if result["score"] is None else f"{result['score']:.3f}"
        tokens = f"{result['kept_tokens']} of {result['total_tokens']}"
        table.add_row(str(result["rank"]), escape(result["file"]), score, str(result["first_stage_rank"]), tokens)
    Console().print(table)


@app.command()
def calibrate(
    model: Model,
    images: Annotated[Path, typer.Option(help="Folder of images like those to be ranked.")],
    query: Annotated[list[str] | None, typer.Option(help="A typical query; may be given several times.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure where a model may be pruned, and remember it; without this, rankers do so on their first queries."""
    with _work() as progress:
        from radical_haystack.pipelines.calibrating import QUERIES, calibrate_on_folder
        from radical_haystack.pruning import trust_coefficients

        schedule = calibrate_on_folder(
            images, model=model, queries=query or QUERIES, progress=lambda *at: progress("Measuring", *at)
        )
    if as_json:
        return _print_json(json.loads(schedule.to_json()))
    entropies = schedule.entropies or ()
    table = Table("layer", "H_norm", "alpha", "", title=f"Attention of {model}")
    for layer, (entropy, alpha) in enumerate(zip(entropies, trust_coefficients(entropies), strict=True)):
        table.add_row(str(layer), f"{entropy:.3f}", f"{alpha:.2f}", "prune here" if layer in schedule.layers else "")
    Console().print(table)


@app.command()
def cost(
    layers: Annotated[int, typer.Option(help="Number of decoder layers.")],
    hidden: Annotated[int, typer.Option(help="Hidden size.")],
    heads: Annotated[int, typer.Option(help="Query heads.")],
    kv_heads: Annotated[int, typer.Option(help="Key and value heads.")],
    head_dim: Annotated[int, typer.Option(help="Size of a head.")],
    intermediate: Annotated[int, typer.Option(help="Inner size of the MLP.")],
    visual: Annotated[int, typer.Option(help="Visual tokens of all candidates together.")],
    text: Annotated[int, typer.Option(help="All other tokens of the prompt.")],
    schedule: Annotated[str, typer.Option(help="Pruning layers, counted from 0, such as 7,22,24,29.")],
    keep_ratio: KeepRatio = 0.2,
    as_json: AsJson = False,
) -> None:
    """What a pruning schedule saves on a decoder of any shape, on paper."""
    from radical_haystack.pruning.cost import DecoderShape, equal_keep, prefill_cost

    shape = DecoderShape(layers, hidden, heads, kv_heads, head_dim, intermediate)
    keep = equal_keep(_layers(schedule), keep_ratio)
    dense = prefill_cost(shape, visual, text)
    paper = prefill_cost(shape, visual, text, keep, pruned_from="input")
    executed = prefill_cost(shape, visual, text, keep, pruned_from="output")
    result = {
        "flops_saved_pct": paper.flops_saved_pct(dense),
        "kv_saved_pct": paper.kv_saved_pct(dense),
        "tflops_dense": dense.flops / 1e12,
        "tflops_pruned": paper.flops / 1e12,
        "flops_saved_pct_executed": executed.flops_saved_pct(dense),
        "tflops_pruned_executed": executed.flops / 1e12,
    }
    if as_json:
        return _print_json(result)
    table = Table("", "dense", "pruned", "saved", title=f"Prefill of {visual} visual and {text} other tokens")
    table.add_row(
        "TFLOPs, counted as in the paper (a pruning layer as pruned already)",
        f"{dense.flops / 1e12:.2f}", f"{paper.flops / 1e12:.2f}", f"{paper.flops_saved_pct(dense):.1f}%",
    )  # fmt: skip
    table.add_row(
        "TFLOPs, as executed here (a pruning layer runs on all tokens)",
        f"{dense.flops / 1e12:.2f}", f"{executed.flops / 1e12:.2f}", f"{executed.flops_saved_pct(dense):.1f}%",
    )  # fmt: skip
    table.add_row(
        "KV cache, MB at 2 bytes per value",
        f"{dense.kv_bytes / 1e6:.1f}", f"{paper.kv_bytes / 1e6:.1f}", f"{paper.kv_saved_pct(dense):.1f}%",
    )  # fmt: skip
    Console().print(table)


def _layers(text: str) -> list[int]:
    try:
        return [int(layer) for layer in text.split(",")]
    except ValueError as error:
        raise ValueError(f"--schedule takes layers separated by commas, such as 7,22,24,29, not {text!r}.") from error


def _print_demo(result: "DemoResult") -> None:
    console = Console()
    for query in result.queries:
        table = Table("", "first stage", "reranked", "tokens kept", title=f"“{escape(query.text)}”")
        for place, (before, after) in enumerate(zip(query.first_stage, query.reranked, strict=True), start=1):
            tokens = f"{after.kept_tokens} of {after.total_tokens}"
            table.add_row(str(place), _name(before), _name(after), tokens)
        console.print(table)
        dense, pruned = 1000 * query.seconds_dense, 1000 * query.seconds_pruned
        console.print(f"prefill: {dense:.0f} ms dense, {pruned:.0f} ms pruned\n", highlight=False)
    table = Table("", "MRR@10", "prefill", title=f"{result.benchmark_queries} held-out queries, hard candidates")
    for name, value in result.benchmark.mrr_at_10.items():
        seconds = result.benchmark.prefill_seconds.get(name)
        table.add_row(name, f"{value:.3f}", "" if seconds is None else f"{1000 * seconds:.0f} ms")
    console.print(table)
    console.print(f"prefill {result.benchmark.prefill_speedup:.2f}x as fast as dense at a keep ratio of 0.2")
    print(f"report: {result.report}")


def _name(image: "ShownImage") -> str:
    return f"[green]✔ {image.path.stem}[/green]" if image.hit else f"  {image.path.stem}"


def _print_json(result: object) -> None:
    print(json.dumps(result, indent=2))


@contextmanager
def _work() -> Iterator[Callable[[str, int, int], None]]:
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
