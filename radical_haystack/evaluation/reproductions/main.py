# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Table 1: all pruning methods on the same queries."""

from radical_haystack.evaluation.metrics import OVERALL
from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.base import METHODS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import (
    MEASURED,
    main_estimate,
    orientation,
    paper_text,
    ratio_text,
    verdicts,
)
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import Sheet, interval, percent, signed
from radical_haystack.evaluation.results import MAIN_METRIC


class Main(Reproduction):
    """The main comparison."""

    name = "main"
    number = "table 1"
    shows = "How well each pruning method ranks, against ranking without pruning."
    comparison = METHODS
    methods = ("dense", "all")

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(METHODS)
        data = session.settings.data
        categories = [group for group in results.groups if group != OVERALL]
        rows = []
        for method, ratio in results.variants:
            row = results.row(method, ratio)
            of_categories = (results.row(method, ratio, group) for group in categories)
            rows.append((
                method,
                ratio_text(ratio),
                interval(main_estimate(results, row)),
                *(percent(one.unconditional[MAIN_METRIC].mean) for one in of_categories),
                signed(row.difference),
                percent(row.kept_share),
                paper_text(data, method, ratio),
            ))  # fmt: skip
        columns = ("method", "R", MEASURED, *categories, "Δ to dense", "tokens kept %", published.column(data))
        experiment = results.experiment
        queries = results.row(*results.variants[0]).queries
        title = f"MRR@10 in percent, {queries} queries of {data}, {experiment.candidates} candidates"
        return Outcome(
            (Sheet(title, columns, tuple(rows)),), (orientation(data), *verdicts(results)), values=results.to_dict()
        )
