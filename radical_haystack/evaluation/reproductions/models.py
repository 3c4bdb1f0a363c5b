# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Table 4: dense ranking and RaDiCal with several models."""

from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.base import METHODS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import MEASURED, layers_of, main_estimate, ratio_text
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, interval, number, signed
from radical_haystack.evaluation.results import Results


class Models(Reproduction):
    """Model generalisation."""

    name = "models"
    number = "table 4"
    shows = "How dense ranking and RaDiCal compare with one model and another; name models by repeating --model."
    comparison = METHODS
    methods = ("dense", "radical")

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        measured = {model: self._results(session, model) for model in session.settings.models}
        rows = [
            (
                model,
                method,
                ratio_text(ratio),
                layers_of(results.of_variant(method, ratio)),
                interval(main_estimate(results, results.row(method, ratio))),
                signed(results.row(method, ratio).difference),
                number(results.row(method, ratio).prefill_speedup, 2, "x"),
            )
            for model, results in measured.items()
            for method, ratio in results.variants
            if method in self.methods
        ]
        columns = ("model", "method", "R", "layers", MEASURED, "Δ to dense", "prefill speed-up")
        values = {
            model: [row.to_dict() for row in results.rows if row.method in self.methods]
            for model, results in measured.items()
        }
        return Outcome((Sheet("MRR@10 in percent by model", columns, tuple(rows)), _published_sheet()), values=values)

    def _results(self, session: Session, model: str) -> Results:
        if model == session.settings.models[0]:
            return session.compare(METHODS)
        ratios = session.settings.keep_ratios
        experiment = session.experiment(self.methods, session.count(self), keep_ratios=ratios, model=model)
        return session.run("models", experiment)


def _published_sheet() -> Sheet:
    layers = {published.MODEL: published.SCHEDULES[4, 2], **published.SCHEDULES_OF_OTHERS}
    rows = []
    for model, chosen in layers.items():
        known = model == published.MODEL
        mrr = (published.main_mrr("flickr30k", method, published.KEEP_RATIO) for method in ("dense", "radical"))
        rows.append((
            model,
            ", ".join(map(str, chosen)),
            *(f"{value:.2f}" if known and value is not None else MISSING for value in mrr),
            number(published.SPEEDUP.get(model), 2, "x"),
        ))  # fmt: skip
    columns = ("model", "layers", "dense", "RaDiCal", "speed-up")
    return Sheet("In the paper: Flickr30K, R = 0.2, on GPUs", columns, tuple(rows), name="published")
