# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Writing all that results come to into files: tables, pictures, and runs for other tools."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from radical_haystack.evaluation.metrics import OVERALL
from radical_haystack.evaluation.results import MAIN_METRIC, Results, SummaryRow
from radical_haystack.evaluation.tables import summary_csv, summary_latex
from radical_haystack.evaluation.trec import write_trec_qrels, write_trec_run
from radical_haystack.viz import pareto, require_matplotlib, save_figure
from radical_haystack.viz.figures import COLOURS, MARKERS, new_figure, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
"""The formats of the pictures."""


def write_outputs(results: Results, folder: str | Path) -> list[Path]:
    """
    Write `summary.csv`, `summary.tex`, the pictures `mrr_over_kept` and `pareto` in each of `FORMATS` if Matplotlib is
    installed, and `trec/` with the relevance judgements and a run for every method, keep ratio and seed. Files of an
    earlier time are replaced.

    Ids with white space cannot stand in files of TREC; where there are such, there is no `trec/`.

    :param results: The results.
    :param folder: The folder; made if it is not there.
    :returns: The files.
    :raises ImportError: If `ir-measures` is not installed.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in (("summary.csv", summary_csv(results)), ("summary.tex", summary_latex(results))):
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    return [*written, *_write_pictures(results, folder), *_write_trec(results, folder / "trec")]


def plot_over_kept(results: Results, group: str = OVERALL) -> "Figure":
    """
    MRR@10 over the share of visual tokens that is kept, with confidence intervals, one line per method.

    :param results: The results.
    :param group: `OVERALL` or a category.
    :raises ImportError: If Matplotlib or `ir-measures` is not installed.
    """
    figure = new_figure(7.0, 3.8, layout="constrained")
    title = f"{results.experiment.dataset}, {results.experiment.candidates} candidates"
    axes = plain_axes(figure, title, "visual tokens kept (%)", f"{MAIN_METRIC} and its 95% interval")
    for number, (method, rows) in enumerate(_by_method(results, group).items()):
        values = [row.unconditional[MAIN_METRIC] for row in rows]
        means = [value.mean for value in values]
        axes.errorbar(
            [100 * row.kept_share for row in rows],
            means,
            yerr=[
                [value.mean - value.low for value in values],
                [value.high - value.mean for value in values],
            ],
            label=method,
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            linestyle="-" if number < len(COLOURS) else "--",
            linewidth=1.3,
            capsize=2.5,
        )
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3)
    return figure


def plot_pareto(results: Results, group: str = OVERALL) -> "Figure | None":
    """
    MRR@10 against the FLOPs saved on paper; `None` if the decoder's shape is not known.

    :param results: The results.
    :param group: `OVERALL` or a category.
    :raises ImportError: If Matplotlib or `ir-measures` is not installed.
    """
    points = {
        method: [(row.flops_saved_pct, row.unconditional[MAIN_METRIC].mean) for row in rows]
        for method, rows in _by_method(results, group).items()
    }
    known = {
        method: [(saved, quality) for saved, quality in of_method if saved is not None]
        for method, of_method in points.items()
    }
    return pareto(known, quality=MAIN_METRIC) if any(known.values()) else None


def _by_method(results: Results, group: str) -> dict[str, list[SummaryRow]]:
    """The rows that have results, each method's from the fewest kept tokens on."""
    found: dict[str, list[SummaryRow]] = {}
    for row in results.rows:
        if row.group == group and row.unconditional:
            found.setdefault(row.method, []).append(row)
    return {method: sorted(rows, key=lambda row: row.kept_share) for method, rows in found.items()}


def _write_pictures(results: Results, folder: Path) -> list[Path]:
    try:
        require_matplotlib()
    except ImportError:
        return []
    if not results.records:
        return []
    figures = {"mrr_over_kept": plot_over_kept(results), "pareto": plot_pareto(results)}
    return [
        save_figure(figure, folder / f"{name}.{suffix}")
        for name, figure in figures.items()
        if figure is not None
        for suffix in FORMATS
    ]


def _write_trec(results: Results, folder: Path) -> list[Path]:
    ids = {name for record in results.records for name in (record.query, *record.candidates, *record.relevant)}
    if not ids or any(re.search(r"\s", name) for name in ids):
        return []
    folder.mkdir(exist_ok=True)
    qrels = folder / "qrels.txt"
    write_trec_qrels(qrels, results.qrels())
    written = [qrels]
    for method, ratio in results.variants:
        for seed in results.experiment.seeds:
            tag = re.sub(r"[^A-Za-z0-9._=+-]+", "-", f"{method}_R{ratio:g}_seed{seed}")
            write_trec_run(folder / f"{tag}.run", results.run(method, ratio, seed), tag=tag)
            written.append(folder / f"{tag}.run")
    return written
