# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that compares pruning methods on a data set."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console

from radical_haystack.cli.shared import (
    DEFAULT_MODEL,
    AsJson,
    Model,
    TrustRemoteCode,
    parse_seeds,
    print_json,
    resumable,
    work,
)

if TYPE_CHECKING:
    from radical_haystack.evaluation.engine import EngineName
    from radical_haystack.vlm.listwise import Scoring

DEFAULT_METHODS = ["dense", "radical", "random"]
DEFAULT_KEEP_RATIOS = [0.2]
DEFAULT_SEEDS = ["42"]


def evaluate(
    data: Annotated[str, typer.Option(help="catalogue, flickr30k, mscoco or fashioniq.")] = "catalogue",
    root: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the data set.")] = None,
    methods: Annotated[
        list[str],
        typer.Option(
            metavar="NAME...",
            help="Pruning methods, such as radical fastv; all for every pruner, ablations for RaDiCal's ablations; "
            "radical:k=2:gap=1, radical:strategy=even or radical:layers=3+5 for RaDiCal with other layers.",
        ),
    ] = DEFAULT_METHODS,
    keep_ratio: Annotated[
        list[float], typer.Option(metavar="R...", help="Shares of the visual tokens to keep, each in (0, 1].")
    ] = DEFAULT_KEEP_RATIOS,
    model: Model = DEFAULT_MODEL,
    queries: Annotated[int, typer.Option(min=0, help="Queries that each seed draws; 0 for all.")] = 100,
    candidates: Annotated[int, typer.Option(min=1, help="Candidates per query.")] = 20,
    seeds: Annotated[
        list[str], typer.Option(metavar="SEED...", help="Seeds of the queries, candidates and random methods.")
    ] = DEFAULT_SEEDS,
    category: Annotated[str | None, typer.Option(help="Only this part of the data set.")] = None,
    first_stage: Annotated[
        str | None,
        typer.Option(
            help="What finds the candidates: a preset or any sentence-transformers model for text and images. "
            "Default: the data set's own candidates, the target among them."
        ),
    ] = None,
    trust_remote_code: TrustRemoteCode = False,
    pool: Annotated[
        int | None, typer.Option(min=1, help="Of how many the candidates are drawn. Default: the data set's pool.")
    ] = None,
    scoring: Annotated[str, typer.Option(help="logits: one pass; generate: a written permutation.")] = "logits",
    window_size: Annotated[int, typer.Option(min=1, max=52, help="Candidates in one prompt.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for results, tables and plots; run again, it goes on where it stopped."
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local, or ray for one replica of the model per GPU of a Ray cluster.")
    ] = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Replicas for ray. Default: one per GPU.")] = None,
    device: Annotated[str | None, typer.Option(help="Where the model runs, such as cpu or cuda:1.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare pruning methods on a data set: quality with confidence intervals, tokens kept, speed, cost on paper."""
    with work() as progress:
        progress("Loading the libraries", 0, 0)
        from radical_haystack.evaluation import Experiment, measure_evidence, parse_methods, run_experiment
        from radical_haystack.evaluation.metrics import ir_measures_import
        from radical_haystack.evaluation.outputs import write_outputs
        from radical_haystack.evaluation.tables import summary_tables

        ir_measures_import.check()  # now, and not when everything is ranked
        experiment = Experiment(
            methods=parse_methods(methods),
            dataset=data,
            root=None if root is None else str(root.resolve()),
            category=category,
            queries=queries or None,
            candidates=candidates,
            pool=pool,
            first_stage=first_stage,
            trust_remote_code=trust_remote_code,
            keep_ratios=tuple(keep_ratio),
            seeds=parse_seeds(seeds),
            model=model,
            scoring=cast("Scoring", scoring),
            window_size=window_size,
            window_step=max(1, window_size // 2),
        )
        with resumable(out):
            results = run_experiment(
                experiment,
                out,
                measure=measure_evidence if data == "catalogue" else None,
                engine=cast("EngineName", engine),
                workers=workers,
                device=device,
                progress=progress,
            )
        files = [] if out is None else write_outputs(results, out)
        shown = summary_tables(results)
    if as_json:
        return print_json({**results.to_dict(), "files": [str(file) for file in files]})
    Console().print(shown)
    if out is not None:
        print(f"results, tables and plots: {out}")
