# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Tables, pictures and files that results become; the results are written by hand."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from radical_haystack.evaluation import (
    Experiment,
    Method,
    ModelInfo,
    Pass,
    Record,
    Results,
    Skipped,
    Stage,
    evaluate_run,
    read_trec_qrels,
    read_trec_run,
)
from radical_haystack.evaluation.outputs import plot_over_kept, write_outputs
from radical_haystack.evaluation.tables import summary_csv, summary_latex, summary_tables
from radical_haystack.pruning import DecoderShape

SHAPE = DecoderShape(layers=6, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=96)
RANKS = {"dense": [1, 1, 2, 1], "a_b&c%#{}~^\\": [1, 2, 3, 12]}


def record(seed: int, number: int, method: str, ratio: float, rank: int) -> Record:
    order = [f"d{place}" for place in range(20) if place != number]
    order.insert(rank - 1, f"d{number}")
    kept = 10 if ratio == 1 else 2
    stages = () if ratio == 1 else (Stage(2, 200, 40, {"entropy": 0.5}),)
    return Record(
        seed=seed,
        query=f"q{number}",
        category=("dress", "shirt")[number % 2],
        method=method,
        keep_ratio=ratio,
        candidates=tuple(sorted(order)),
        order=tuple(order),
        scores=(0.0,) * 20,
        score_kind="log_probability",
        relevant=(f"d{number}",) if number < 3 else ("elsewhere",),
        target_rank=rank if number < 3 else None,
        kept_tokens=(kept,) * 20,
        total_tokens=(10,) * 20,
        passes=(Pass(200, 200, 50, stages),),
        seconds={"prefill": 0.4 if ratio == 1 else 0.1, "encode": 0.01},
        measured={"evidence": {"end": 1.0 if ratio == 1 else 0.6}},
    )


@pytest.fixture
def results() -> Results:
    methods = (Method("dense", "dense"), Method("a_b&c%#{}~^\\"))
    experiment = Experiment(methods, dataset="fashioniq", queries=4, keep_ratios=(0.2,), seeds=(1, 2))
    model = ModelInfo("m", "qwen3_vl", None, "float32", SHAPE, None)
    records = [
        record(seed, number, method, 1.0 if method == "dense" else 0.2, rank)
        for seed in (1, 2)
        for method, ranks in RANKS.items()
        for number, rank in enumerate(ranks)
    ]
    skipped = [Skipped(1, f"gone[{number}]", "dress", "No [file].") for number in range(7)]
    return Results.of(experiment, model, [records, skipped])


def test_figures_by_hand(results: Results) -> None:
    row = results.row("a_b&c%#{}~^\\")
    assert (row.queries, row.rankings, row.conditional_queries) == (4, 8, 3)
    # The fourth query's answer is not among its candidates.
    assert row.unconditional["MRR@10"].mean == pytest.approx((1 + 1 / 2 + 1 / 3 + 0) / 4)
    assert row.conditional["MRR@10"].mean == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert row.unconditional["R@1"].mean == 0.25
    assert row.difference is not None
    assert row.difference.mean == pytest.approx((1 + 1 / 2 + 1 / 3) / 4 - (1 + 1 + 1 / 2) / 4)
    assert row.difference.low <= row.difference.mean <= row.difference.high <= 0
    assert row.kept_share == pytest.approx(0.2)
    assert row.prefill_speedup == pytest.approx(4)
    assert row.measured["evidence.end"].mean == pytest.approx(0.6)
    dress = results.row("a_b&c%#{}~^\\", group="dress")
    assert dress.unconditional["MRR@10"].mean == pytest.approx((1 + 1 / 3) / 2)


def test_differences_are_those_of_the_same_queries(results: Results) -> None:
    """Two methods that do the same differ by nothing, however much queries differ."""
    dense = [record for record in results.records if record.method == "dense"]
    twin = [replace(record, method="twin", keep_ratio=0.2) for record in dense]
    experiment = replace(results.experiment, methods=(Method("dense", "dense"), Method("twin")))
    row = Results.of(experiment, results.model, [dense, twin]).row("twin")
    own = row.unconditional["MRR@10"]
    assert own.high > own.low
    assert row.difference is not None
    assert (row.difference.low, row.difference.high) == (0, 0)
    assert row.conditional_difference == row.difference


def test_table_for_people(results: Results) -> None:
    output = io.StringIO()
    Console(file=output, width=200).print(summary_tables(results))
    text = output.getvalue()
    for part in (
        "4 queries of fashioniq, 20 candidates each, 2 seeds",
        "a_b&c%#{}~^\\",
        "4.00x",
        "dense takes 400 ms",
        "20%",
        "MRR@10 by category",
        "The 3 queries with a relevant candidate",
        "7 queries skipped: gone[0], gone[1], gone[2], gone[3], gone[4] and 2 more. The first because: No [file].",
    ):
        assert part in text, part


def test_the_main_table_fits_a_terminal(results: Results) -> None:
    records = [replace(r, method="pyramiddrop") for r in results.records if r.method != "dense"]
    experiment = replace(results.experiment, methods=(Method("dense", "dense"), Method("pyramiddrop", "pyramiddrop")))
    dense = [record for record in results.records if record.method == "dense"]
    renamed = Results.of(experiment, results.model, [dense, records])
    output = io.StringIO()
    Console(file=output, width=80).print(summary_tables(renamed))
    (line,) = [line for line in output.getvalue().splitlines() if "pyramiddrop" in line and "4.00x" in line]
    row = renamed.row("pyramiddrop")
    low, high = row.unconditional["MRR@10"].low, row.unconditional["MRR@10"].high
    figures = ["0.458", f"{low:.3f}–{high:.3f}".replace("0.", "."), "0.250", "0.750", "0.750", "-0.167", "20%", "4.00x"]
    assert line.split() == ["pyramiddrop", "0.2", *figures, f"{row.flops_saved_pct:.0f}%"]


def test_csv_has_every_figure(results: Results) -> None:
    rows = list(csv.DictReader(io.StringIO(summary_csv(results))))
    assert [(row["method"], row["group"]) for row in rows] == [
        (method, group) for group in ("overall", "dress", "shirt") for method in RANKS
    ]
    for line, row in zip(rows, results.rows, strict=True):
        assert float(line["unconditional.MRR@10"]) == row.unconditional["MRR@10"].mean
        assert float(line["unconditional.MRR@10.low"]) == row.unconditional["MRR@10"].low
        assert float(line["conditional.R@5.high"]) == row.conditional["R@5"].high
        assert float(line["kept_share"]) == row.kept_share
        assert float(line["evidence.end"]) == row.measured["evidence.end"].mean
        assert float(line["kv_saved_pct"]) == row.kv_saved_pct
        assert (line["difference"] == "") == (row.method == "dense")


def test_latex_is_one_table(results: Results) -> None:
    text = summary_latex(results)
    body = text.split("\\toprule")[1].split("\\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r"\\") and not line.startswith(r"\multicolumn")]
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", text)
    assert columns is not None
    for line in rows:
        assert len(re.findall(r"(?<!\\)&", line)) == len(columns[1]) - 1, line
    assert r"a\_b\&c\%\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert not re.search(r"(?<!\\)%", body)
    assert r"\textit{All queries, 4 queries}" not in text
    for title in ("All 4 queries", "All 3 queries with a relevant candidate", "dress, 2 queries", "shirt, 2 queries"):
        assert title in text, title
    assert body.count(r"\midrule") == 5  # three groups, two of them with queries that no candidate answers
    assert "45.83" in body  # MRR@10 in percent


def test_files(results: Results, tmp_path: Path) -> None:
    files = write_outputs(results, tmp_path / "out")
    names = sorted(str(file.relative_to(tmp_path / "out")) for file in files)
    runs = [f"{tag}_seed{seed}.run" for tag in ("a_b-c-_R0.2", "dense_R1") for seed in (1, 2)]
    pictures = [f"{name}.{suffix}" for name in ("mrr_over_kept", "pareto") for suffix in ("png", "svg")]
    trec = [f"trec/{name}" for name in ("qrels.txt", *runs)]
    assert names == sorted([*pictures, "summary.csv", "summary.tex", *trec])
    assert all(file.stat().st_size for file in files)
    with Image.open(tmp_path / "out" / "mrr_over_kept.png") as picture:
        assert picture.width > picture.height > 300
    run = read_trec_run(tmp_path / "out/trec/dense_R1_seed1.run")
    assert run == results.run("dense", 1.0, 1)
    measured = evaluate_run(run, read_trec_qrels(tmp_path / "out/trec/qrels.txt")).unconditional["overall"].means
    assert measured["MRR@10"] == pytest.approx(results.row("dense").unconditional["MRR@10"].mean)
    assert write_outputs(results, tmp_path / "out") == files


def test_plot_has_a_line_per_method_with_intervals(results: Results) -> None:
    (axes,) = plot_over_kept(results).axes
    drawn = {container.get_label(): container for container in axes.containers}
    assert list(drawn) == list(RANKS)
    line, _, bars = drawn["dense"]
    row = results.row("dense")
    estimate = row.unconditional["MRR@10"]
    assert list(line.get_xdata()) == [100]
    (segment,) = bars[0].get_segments()
    assert segment[:, 1].tolist() == pytest.approx([estimate.low, estimate.high])


def test_ids_with_white_space_leave_no_trec_files(results: Results, tmp_path: Path) -> None:
    spaced = replace(results, records=tuple(replace(r, query=f"my {r.query}") for r in results.records))
    assert not [file for file in write_outputs(spaced, tmp_path) if "trec" in file.parts]


def test_nothing_ranked(results: Results, tmp_path: Path) -> None:
    empty = Results(results.experiment, results.model, ())
    row = empty.row("dense")
    assert (row.queries, row.unconditional, row.conditional, row.flops_saved_pct) == (0, {}, {}, None)
    assert json.loads(json.dumps(empty.to_dict(), allow_nan=False))["summary"][0]["kept_share"] is None
    assert [file.name for file in write_outputs(empty, tmp_path)] == ["summary.csv", "summary.tex"]
    Console(file=io.StringIO()).print(summary_tables(empty))


def test_json_is_plain(results: Results) -> None:
    data = json.loads(json.dumps(results.to_dict(), allow_nan=False))
    assert data["summary"][0]["unconditional"]["MRR@10"]["mean"] == results.rows[0].unconditional["MRR@10"].mean
    assert len(data["skipped"]) == 7
