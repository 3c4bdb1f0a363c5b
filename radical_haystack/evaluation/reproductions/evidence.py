# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How much of what a query asks for is left after pruning: the drawings know which tokens show it."""

from typing import TYPE_CHECKING

from radical_haystack.evaluation.bootstrap import Estimate
from radical_haystack.evaluation.reproductions.base import METHODS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import MEASURED, main_estimate, ratio_text
from radical_haystack.evaluation.reproductions.session import Session, Settings
from radical_haystack.evaluation.reproductions.sheets import Sheet, interval, percent
from radical_haystack.evaluation.results import Results, SummaryRow
from radical_haystack.pruning.pruners import BEFORE_DECODER
from radical_haystack.viz import curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LAYERS = "evidence.layers."


class Evidence(Reproduction):
    """Evidence retention."""

    name = "evidence"
    number = "not in the paper"
    shows = "How much evidence, tokens that show what the query asks about, each method keeps, beside MRR@10."
    comparison = METHODS
    methods = ("dense", "all")

    def refusal(self, settings: Settings) -> str | None:
        """Only of the drawn catalogue it is known which tokens are evidence."""
        if settings.is_catalogue:
            return None
        return f"'{self.name}' needs the drawn catalogue: which tokens of '{settings.data}' are evidence is not known."

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(METHODS)
        rows = [(variant, results.row(*variant)) for variant in results.variants if variant[1] < 1]
        end = Sheet(
            "Share of the evidence left at the end, in percent",
            ("method", "R", "evidence in the target", "in all candidates", "all tokens", MEASURED),
            tuple(
                (
                    method,
                    ratio_text(ratio),
                    interval(row.measured.get("evidence.end.target")),
                    interval(row.measured.get("evidence.end.candidates")),
                    percent(row.kept_share),
                    interval(main_estimate(results, row)),
                )
                for (method, ratio), row in rows
            ),
        )
        layers = Sheet(
            "Share of the target's evidence left after each pruning layer, in percent",
            ("method", "R", "after layer: evidence (all tokens)"),
            tuple((method, ratio_text(ratio), _by_layer(row)) for (method, ratio), row in rows if _layers(row)),
            name="layers",
        )
        notes = (
            "A method that picked at random would keep as much of the evidence as of all tokens. Methods that resize "
            "images lose no part of them and have no figure here. Evidence in the target above that in all candidates "
            "means that a method gives more of its budget to the image that is looked for.",
        )
        return Outcome(
            (end, layers),
            notes,
            {"evidence": lambda: _figure(results)},
            [{"method": row.method, "keep_ratio": row.keep_ratio, **row.to_dict()["measured"]} for _, row in rows],
        )


def _layers(row: SummaryRow) -> list[tuple[int, Estimate, Estimate]]:
    """Layer, share of the target's evidence, share of all tokens; ascending."""
    found = []
    for place, estimate in row.measured.items():
        if place.startswith(_LAYERS) and place.endswith(".target"):
            layer = place.removeprefix(_LAYERS).removesuffix(".target")
            found.append((int(layer), estimate, row.measured[f"{_LAYERS}{layer}.chance"]))
    return sorted(found, key=lambda entry: entry[0])


def _by_layer(row: SummaryRow) -> str:
    return "; ".join(
        f"{'input' if layer == BEFORE_DECODER else layer}: {percent(left.mean, 0)} ({percent(chance.mean, 0)})"
        for layer, left, chance in _layers(row)
    )


def _figure(results: Results) -> "Figure":
    ratio = results.experiment.keep_ratios[0]

    series = {
        method: [
            (float(layer), left.mean, left.low, left.high) for layer, left, _ in _layers(results.row(method, other))
        ]
        for method, other in results.variants
        if other == ratio
    }
    return curves(
        {method: line for method, line in series.items() if line},
        title=f"Evidence of the target that is left, R = {ratio:g}",
        x_label="after decoder layer (-1: its input)",
        y_label="share of the target's evidence",
    )
