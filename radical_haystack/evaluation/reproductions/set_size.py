# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Figure 5b: how methods do with few and with many candidates in one prompt."""

from functools import partial

from radical_haystack.evaluation.reproductions.base import Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import MEASURED, main_estimate
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, interval, number
from radical_haystack.evaluation.results import MAIN_METRIC, Results
from radical_haystack.viz import curves
from radical_haystack.vlm.prompt import IDENTIFIERS

SIZES = (5, 10, 20, 30, 50)


class SetSize(Reproduction):
    """Quality by the number of candidates."""

    name = "set-size"
    number = "figure 5b"
    shows = "Whether pruning suffers with more candidates in one prompt."
    methods = ("dense", "radical", "fastv")
    queries = 6

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        measured = {size: self._results(session, size) for size in SIZES}
        rows = tuple(
            (
                str(size),
                *(interval(main_estimate(results, results.row(method))) for method in self.methods),
                number(results.row("radical").prefill_speedup, 2, "x"),
                MISSING,
            )
            for size, results in measured.items()
        )
        queries = next(iter(measured.values())).row("radical").queries
        sheet = Sheet(
            f"MRR@10 in percent by the number of candidates, R = {session.keep_ratio:g}, {queries} queries of "
            f"{session.settings.data}",
            ("candidates", *(f"{method}, {MEASURED}" for method in self.methods), "RaDiCal speed-up", "paper"),
            rows,
        )
        series = {
            method: [
                (float(size), found.mean, found.low, found.high)
                for size, results in measured.items()
                if (found := main_estimate(results, results.row(method))) is not None
            ]
            for method in self.methods
        }
        figure = partial(
            curves,
            series,
            title=f"Quality by the number of candidates in one prompt, R = {session.keep_ratio:g}",
            x_label="candidates",
            y_label=MAIN_METRIC,
            whole_x=True,
        )
        notes = (
            f"All candidates are in one prompt, which has identifiers for {len(IDENTIFIERS)}. The bundled model was "
            "trained with up to 26: beyond, it meets identifiers it never learned to answer with, pruned or not. The "
            "paper's values of this figure are not known here.",
        )
        values = {str(size): [row.to_dict() for row in results.rows] for size, results in measured.items()}
        return Outcome((sheet,), notes, {"set-size": figure}, values)

    def _results(self, session: Session, size: int) -> Results:
        experiment = session.experiment(
            self.methods, session.count(self), candidates=size, window_size=size, window_step=size
        )
        return session.run(f"{self.name}-{size}", experiment)
