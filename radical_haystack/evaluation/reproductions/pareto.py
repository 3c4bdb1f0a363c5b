# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Figure 4: ranking quality against the cost of the prefill."""

from functools import partial
from typing import TYPE_CHECKING

from radical_haystack.evaluation.outputs import plot_pareto
from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.base import METHODS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import (
    MEASURED,
    main_estimate,
    orientation,
    paper_text,
    ratio_text,
)
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import Sheet, interval, number
from radical_haystack.evaluation.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Pareto(Reproduction):
    """Quality against cost."""

    name = "pareto"
    number = "figure 4"
    shows = "What quality each method gives for the computation it saves; nothing lies above and right of the front."
    comparison = METHODS
    methods = ("dense", "all")

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(METHODS)
        data = session.settings.data
        rows = []
        for method, ratio in results.variants:
            row = results.row(method, ratio)
            paper_flops = published.FLOPS_SAVED.get(method) if ratio == published.KEEP_RATIO else None
            rows.append((
                method,
                ratio_text(ratio),
                number(row.flops_saved_pct),
                number(row.flops_saved_pct_executed),
                interval(main_estimate(results, row)),
                number(paper_flops),
                paper_text(data, method, ratio),
            ))  # fmt: skip
        columns = (
            "method", "R", "FLOPs saved %", "as executed %", MEASURED, f"FLOPs saved %, paper ({published.MODEL})",
            f"MRR@10, {published.column(data)}",
        )  # fmt: skip
        notes = (
            orientation(data),
            "FLOPs are those of the prefill on paper, counted as the paper does (a pruning layer as pruned already), "
            "and as executed (it runs on all tokens).",
        )
        figures = {} if results.model.shape is None else {"pareto": partial(_figure, results)}
        sheet = Sheet("Quality against the cost of the prefill", columns, tuple(rows))
        return Outcome((sheet,), notes, figures, results.to_dict())


def _figure(results: Results) -> "Figure":
    figure = plot_pareto(results)
    assert figure is not None  # the decoder's shape is known
    return figure
