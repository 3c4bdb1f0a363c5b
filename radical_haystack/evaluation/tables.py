# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Results as tables: for people, as CSV, and as LaTeX."""

import csv
import io
import math
import re
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from radical_haystack.evaluation.bootstrap import LEVEL, Estimate
from radical_haystack.evaluation.metrics import METRICS, OVERALL
from radical_haystack.evaluation.results import MAIN_METRIC, Results, SummaryRow

_SHOWN_QUERIES = 5
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip


def summary_tables(results: Results) -> Group:
    """
    Tables for people: all methods, those on each category, and those on the queries with a relevant candidate.

    :param results: The results.
    :raises ImportError: If `ir-measures` is not installed.
    """
    overall = [row for row in results.rows if row.group == OVERALL]
    shown: list[Table | str] = [_main_table(results, overall)]
    if len(results.groups) > 1:
        shown.append(_group_table(results))
    if any(row.conditional_queries < row.queries for row in overall):
        shown.append(_conditional_table(overall))
    if results.skipped:
        names = [escape(name) for name in dict.fromkeys(entry.query for entry in results.skipped)]
        more = f" and {len(names) - _SHOWN_QUERIES} more" if len(names) > _SHOWN_QUERIES else ""
        first = escape(results.skipped[0].skipped)
        listed = ", ".join(names[:_SHOWN_QUERIES])
        shown.append(f"[yellow]{len(names)} queries skipped: {listed}{more}. The first because: {first}[/yellow]")
    unreadable = {name: why for record in results.records for name, why in record.unreadable.items()}
    if unreadable:
        reason = escape(next(iter(unreadable.values())))
        shown.append(f"[yellow]{len(unreadable)} images unreadable and ranked last. The first: {reason}[/yellow]")
    return Group(*shown)


def summary_csv(results: Results) -> str:
    """
    All rows with all figures, one line each; empty where there is none.

    :param results: The results.
    :raises ImportError: If `ir-measures` is not installed.
    """
    rows = [_flat(row) for row in results.rows]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def summary_latex(results: Results) -> str:
    """
    A table for a paper, in percent, with the interval of MRR@10; it needs the package `booktabs`.

    One block for all queries, one for each category, and the same for the queries with a relevant candidate where
    others have none.

    :param results: The results.
    :raises ImportError: If `ir-measures` is not installed.
    """
    columns = ["Method", "$R$", *METRICS, f"{LEVEL:.0%} interval of {MAIN_METRIC}", "Kept", "Prefill", "FLOPs saved"]
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{lr{'r' * len(METRICS)}crrr}}",
        r"\toprule",
        " & ".join(_escaped(name) if name != "$R$" else name for name in columns) + r" \\",
    ]
    for group in results.groups:
        rows = [row for row in results.rows if row.group == group]
        of = "All " if group == OVERALL else f"{_escaped(group)}, "
        lines += _latex_block(f"{of}{rows[0].queries} queries", rows, len(columns), conditional=False)
        if any(row.conditional_queries < row.queries for row in rows):
            title = f"{of}{rows[0].conditional_queries} queries with a relevant candidate"
            lines += _latex_block(title, rows, len(columns), conditional=True)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _main_table(results: Results, rows: Sequence[SummaryRow]) -> Table:
    experiment = results.experiment
    seeds = f", {len(experiment.seeds)} seeds" if len(experiment.seeds) > 1 else ""
    title = (
        f"{rows[0].queries} queries of {experiment.dataset}, {experiment.candidates} candidates each{seeds}, "
        f"ranked by {experiment.model}"
    )
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, title=escape(title))
    table.add_column("method", overflow="fold")
    for name in ("R", MAIN_METRIC, f"{LEVEL:.0%}", *METRICS[1:], "Δ", "kept", "speed", "FLOPs\nsaved"):  # 80 columns
        table.add_column(name, justify="right")
    for row in rows:
        main = row.unconditional.get(MAIN_METRIC)
        table.add_row(
            escape(row.method),
            "" if row.keep_ratio == 1 else f"{row.keep_ratio:g}",
            _mean(main),
            "" if main is None else f"{main.low:.3f}–{main.high:.3f}".replace("0.", "."),
            *(_mean(row.unconditional.get(metric)) for metric in METRICS[1:]),
            "" if row.difference is None else f"{row.difference.mean:+.3f}",
            f"{row.kept_share:.0%}",
            _prefill(row),
            "" if row.flops_saved_pct is None else f"{row.flops_saved_pct:.0f}%",
        )
    dense = next((row for row in rows if row.difference is None and row.prefill_speedup is not None), None)
    if dense is not None:
        milliseconds = f"{1000 * dense.prefill_seconds:.0f} ms"
        table.caption = f"Δ: {MAIN_METRIC} minus dense. Speed of the prefill: dense takes {milliseconds}."
    return table


def _group_table(results: Results) -> Table:
    groups = [group for group in results.groups if group != OVERALL]
    table = Table("method", "R", *map(escape, groups), title=f"{MAIN_METRIC} by category (95%)")
    for method, ratio in results.variants:
        rows = [results.row(method, ratio, group) for group in groups]
        shares = "" if ratio == 1 else f"{ratio:g}"
        table.add_row(escape(method), shares, *(_shown(row.unconditional.get(MAIN_METRIC)) for row in rows))
    return table


def _conditional_table(rows: Sequence[SummaryRow]) -> Table:
    title = f"The {rows[0].conditional_queries} queries with a relevant candidate"
    table = Table("method", "R", f"{MAIN_METRIC} (95%)", *METRICS[1:], title=title)
    for row in rows:
        table.add_row(
            escape(row.method),
            "" if row.keep_ratio == 1 else f"{row.keep_ratio:g}",
            _shown(row.conditional.get(MAIN_METRIC)),
            *(_mean(row.conditional.get(metric)) for metric in METRICS[1:]),
        )
    return table


def _shown(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.mean:.3f} ({estimate.low:.3f}–{estimate.high:.3f})"


def _mean(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.mean:.3f}"


def _prefill(row: SummaryRow) -> str:
    if row.prefill_speedup is not None:
        return f"{row.prefill_speedup:.2f}x"
    return "" if math.isnan(row.prefill_seconds) else f"{1000 * row.prefill_seconds:.0f} ms"


def _flat(row: SummaryRow) -> dict[str, Any]:
    """A row's figures by the names of their columns."""
    flat: dict[str, Any] = {}
    for name, value in vars(row).items():
        if isinstance(value, Estimate):
            flat |= _three(name, value)
        elif isinstance(value, dict):
            for inner, estimate in value.items():
                flat |= _three(inner if name == "measured" else f"{name}.{inner}", estimate)
        else:
            flat[name] = value
    return {name: "" if value is None or value != value else value for name, value in flat.items()}


def _three(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.mean, f"{name}.low": estimate.low, f"{name}.high": estimate.high}


def _latex_block(title: str, rows: Sequence[SummaryRow], columns: int, *, conditional: bool) -> list[str]:
    lines = [r"\midrule", rf"\multicolumn{{{columns}}}{{l}}{{\textit{{{title}}}}} \\"]
    for row in rows:
        means = row.conditional if conditional else row.unconditional
        main = means.get(MAIN_METRIC)
        cells = [
            _escaped(row.method),
            "--" if row.keep_ratio == 1 else f"{row.keep_ratio:g}",
            *("--" if metric not in means else f"{100 * means[metric].mean:.2f}" for metric in METRICS),
            "--" if main is None else f"{100 * main.low:.2f}--{100 * main.high:.2f}",
            rf"{100 * row.kept_share:.1f}\%",
            "--" if row.prefill_speedup is None else rf"{row.prefill_speedup:.2f}$\times$",
            "--" if row.flops_saved_pct is None else rf"{row.flops_saved_pct:.1f}\%",
        ]
        lines.append(" & ".join(cells) + r" \\")
    return lines


def _escaped(text: str) -> str:
    return re.sub(r"[\\{}$&#%_~^<>|\"]", lambda match: _LATEX[match[0]], text)
