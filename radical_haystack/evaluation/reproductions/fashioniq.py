# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Table 13: composed queries whose target may or may not be among the candidates."""

from radical_haystack.evaluation.experiment import Experiment
from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.base import Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import ratio_text
from radical_haystack.evaluation.reproductions.session import BUNDLED, CATALOGUE, Session, Settings
from radical_haystack.evaluation.reproductions.sheets import Sheet, interval, number
from radical_haystack.evaluation.results import MAIN_METRIC, Results

POOL = 50


class FashionIQ(Reproduction):
    """Conditional and unconditional metrics."""

    name = "fashioniq"
    number = "table 13"
    shows = "How methods rank for composed queries, whose target may or may not be among the candidates."
    methods = ("dense", "radical", "fastv", "pyramiddrop", "sparsevlm", "dart", "visionzip", "lowres")
    queries = 24

    def refusal(self, settings: Settings) -> str | None:
        """It needs composed queries and a first stage."""
        if settings.data not in (CATALOGUE, self.name):
            return f"'{self.name}' needs composed queries; '{settings.data}' has none."
        if not settings.is_catalogue and not settings.first_stages:
            return f"'{self.name}' draws candidates from what a first stage finds: name it with --first-stage."
        return None

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.run(self.name, self._experiment(session))
        rows = []
        for method, ratio in results.variants:
            row = results.row(method, ratio)
            rows.append((
                method,
                ratio_text(ratio),
                interval(row.conditional.get(MAIN_METRIC)),
                interval(row.conditional.get("R@1")),
                interval(row.unconditional.get(MAIN_METRIC)),
                number(published.main_mrr("fashioniq", method, ratio), 2),
            ))  # fmt: skip
        columns = (
            "method", "R", "MRR@10, conditional [95% CI]", "R@1, conditional", "MRR@10, all queries",
            f"MRR@10, {published.column('fashioniq')}",
        )  # fmt: skip
        return Outcome(
            (Sheet(self._title(session, results), columns, tuple(rows)),),
            (
                "The unconditional figures are bounded by the first stage: where it has not found the target, or the "
                "drawing left it out, no ranking can. The paper has 1,599 conditional queries among 6,016. Its "
                "unconditional values are not known here.",
            ),
            values=results.to_dict(),
        )

    def _experiment(self, session: Session) -> Experiment:
        settings = session.settings
        return session.experiment(
            self.methods,
            session.count(self),
            category="composed" if settings.is_catalogue else None,
            first_stage=session.first_stage or BUNDLED,
            pool=max(POOL, settings.candidates),
        )

    def _title(self, session: Session, results: Results) -> str:
        row = results.row("dense")
        return (
            f"Composed queries of {session.settings.data}, in percent: {row.queries} in all, {row.conditional_queries} "
            f"with the target among the {results.experiment.candidates} candidates"
        )
