# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Table 8 and figure 8: the number of pruning layers K and their least distance."""

from functools import partial

from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.base import VARIANTS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import MEASURED, layers_of, main_estimate, mean_difference
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, interval, number, signed
from radical_haystack.evaluation.results import MAIN_METRIC, Results
from radical_haystack.pruning.strategies import alpha_maximin
from radical_haystack.viz import curves

K, GAP = 4, 2
"""The paper's setting."""
LAYER_COUNTS = (1, 2, 3, 4, 5, 6)
GAPS = (1, 2, 3)


def _method(k: int, gap: int) -> str:
    return "radical" if (k, gap) == (K, GAP) else f"radical:k={k}:gap={gap}"


class Sensitivity(Reproduction):
    """K and gap."""

    name = "sensitivity"
    number = "table 8 and figure 8"
    shows = "How much the number of pruning layers K and their least distance matter."
    comparison = VARIANTS
    methods = ("dense", *(_method(k, GAP) for k in LAYER_COUNTS), *(_method(K, gap) for gap in GAPS))

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(VARIANTS)
        settings = list(dict.fromkeys([*((k, GAP) for k in LAYER_COUNTS), *((K, gap) for gap in GAPS)]))
        measured = Sheet(
            f"MRR@10 in percent, R = {session.keep_ratio:g}, {results.row('radical').queries} queries of "
            f"{session.settings.data}",
            ("K", "gap", "layers", MEASURED, "Δ to K = 4, gap = 2", "FLOPs saved %", "paper"),
            tuple(_row(results, session.keep_ratio, k, gap) for k, gap in settings),
        )
        schedules = published_schedules()
        paper = Sheet(
            f"Pruning layers of {published.MODEL} from its published trust coefficients",
            ("K", "gap", "alpha-Maximin here", "paper"),
            tuple(
                (str(k), str(gap), _listed(layers), _listed(published.SCHEDULES[k, gap]))
                for (k, gap), layers in schedules.items()
            ),
            name="published",
        )
        agree = all(schedules[key] == layers for key, layers in published.SCHEDULES.items())
        notes = (
            f"The layers chosen from the published coefficients {'are' if agree else 'are NOT'} those of the paper. Of "
            f"{published.MODEL} the coefficients of {len(published.KNOWN_ALPHAS)} of its 36 layers are published. The "
            "paper's MRR@10 by K and gap is not known here.",
        )
        figures = {
            "sensitivity": partial(
                curves,
                {
                    f"K at gap {GAP}": _points(results, [(k, _method(k, GAP)) for k in LAYER_COUNTS]),
                    f"gap at K = {K}": _points(results, [(gap, _method(K, gap)) for gap in GAPS]),
                },
                title=f"Quality by number and distance of pruning layers, R = {session.keep_ratio:g}",
                x_label="K, or gap in layers",
                y_label=MAIN_METRIC,
                whole_x=True,
            )
        }
        values = [{"k": k, "gap": gap, **results.row(_method(k, gap)).to_dict()} for k, gap in settings]
        return Outcome((measured, paper), notes, figures, values)


def published_schedules() -> dict[tuple[int, int], tuple[int, ...]]:
    """By K and gap, the layers that alpha-Maximin chooses from the published trust coefficients."""
    return {(k, gap): tuple(alpha_maximin(published.KNOWN_ALPHAS, k, gap)) for k, gap in published.SCHEDULES}


def _row(results: Results, ratio: float, k: int, gap: int) -> tuple[str, ...]:
    method = _method(k, gap)
    row = results.row(method)
    difference = mean_difference(results, (method, ratio), ("radical", ratio))
    return (
        str(k),
        str(gap),
        layers_of(results.of_variant(method, ratio)),
        interval(main_estimate(results, row)),
        MISSING if method == "radical" else signed(difference),
        number(row.flops_saved_pct),
        MISSING,
    )


def _points(results: Results, methods: list[tuple[int, str]]) -> list[tuple[float, float, float, float]]:
    found = [(place, results.row(method).unconditional[MAIN_METRIC]) for place, method in methods]
    return [(float(place), mean.mean, mean.low, mean.high) for place, mean in found]


def _listed(layers: tuple[int, ...]) -> str:
    return ", ".join(map(str, layers))
