# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Table 3: RaDiCal with one part taken away or replaced."""

from radical_haystack.evaluation.reproductions.base import VARIANTS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import MEASURED, main_estimate, mean_difference
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, interval, percent, signed

LABELS = {
    "dense": "dense (no pruning)",
    "radical": "RaDiCal",
    "without-dti": "w/o DTI (alpha = 0)",
    "dti-only": "DTI only (alpha = 1)",
    "fixed-alpha": "fixed alpha = 0.5",
    "arithmetic-fusion": "arithmetic fusion",
    "qrel-only": "QRel only (no CCU)",
    "ccu-only": "CCU only (no QRel)",
    "random": "w/o token scoring (random, same layers)",
    "without-alpha-maximin": "w/o alpha-Maximin (evenly spaced layers)",
}
"""The rows by the name of the method. Random pruning is RaDiCal without token scoring."""


class Ablations(Reproduction):
    """Ablations."""

    name = "ablations"
    number = "table 3"
    shows = "What each part of RaDiCal adds."
    comparison = VARIANTS
    methods = tuple(LABELS)

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(VARIANTS)
        ratio = session.keep_ratio
        rows, values = [], []
        for method, label in LABELS.items():
            row = results.row(method)
            difference = mean_difference(results, (method, row.keep_ratio), ("radical", ratio))
            rows.append((
                label,
                interval(main_estimate(results, row)),
                MISSING if method == "radical" else signed(difference),
                percent(row.kept_share),
                interval(row.measured.get("evidence.end.target")),
                MISSING,
            ))  # fmt: skip
            values.append({**row.to_dict(), "label": label})
        queries = results.row("radical").queries
        sheet = Sheet(
            f"MRR@10 in percent, R = {ratio:g}, {queries} queries of {session.settings.data}",
            ("variant", MEASURED, "Δ to RaDiCal", "tokens kept %", "evidence kept %", "paper"),
            tuple(rows),
        )
        return Outcome((sheet,), ("The paper's values of this table are not known here.",), values=values)
