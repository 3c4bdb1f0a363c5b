# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Table 7: RaDiCal with other ways of choosing pruning layers."""

from radical_haystack.evaluation.reproductions.base import VARIANTS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import MEASURED, layers_of, main_estimate, mean_difference
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, interval, signed
from radical_haystack.pruning import STRATEGIES

DEFAULT = "alpha-maximin"
METHOD_OF = {
    strategy: {DEFAULT: "radical", "even": "without-alpha-maximin"}.get(strategy, f"radical:strategy={strategy}")
    for strategy in STRATEGIES
}
"""The method of each strategy; two of them have names of their own."""


class Strategies(Reproduction):
    """Layer strategies."""

    name = "strategies"
    number = "table 7"
    shows = "Whether it matters how the pruning layers are chosen."
    comparison = VARIANTS
    methods = ("dense", *METHOD_OF.values())

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(VARIANTS)
        ratio = session.keep_ratio
        rows, values = [], []
        for strategy, method in METHOD_OF.items():
            row = results.row(method)
            layers = layers_of(results.of_variant(method, ratio))
            difference = mean_difference(results, (method, ratio), ("radical", ratio))
            shown = MISSING if strategy == DEFAULT else signed(difference)
            rows.append((strategy, layers, interval(main_estimate(results, row)), shown, MISSING))
            values.append({**row.to_dict(), "strategy": strategy, "layers": layers})
        queries = results.row("radical").queries
        sheet = Sheet(
            f"MRR@10 in percent, R = {ratio:g}, {queries} queries of {session.settings.data}",
            ("strategy", "layers", MEASURED, "Δ to alpha-Maximin", "paper"),
            tuple(rows),
        )
        notes = (
            "Strategies that choose the same layers have the same results. The random strategy chooses anew for every "
            "seed. The paper's values of this table are not known here.",
        )
        return Outcome((sheet,), notes, values=values)
