# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Figure 2: at which layers attention agrees with what decides the ranking."""

from functools import partial
from statistics import fmean

from radical_haystack.evaluation.diagnostics import (
    CandidateSignals,
    Reliability,
    calibration_sets,
    measure_signals,
    profile_correlations,
    reliability_of,
)
from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.base import Outcome, Reproduction
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, number
from radical_haystack.viz import reliability_curve


class LayerReliability(Reproduction):
    """The reliability curve."""

    name = "reliability"
    number = "figure 2"
    shows = "At which layers attention agrees with what candidates contribute to the ranking, beyond chance."
    queries = 3

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        dataset = session.ranked(session.experiment(("radical",), session.count(self)))
        sets = calibration_sets(dataset, seed=session.settings.seeds[0])
        vlm = session.vlm()
        signals: list[CandidateSignals] = []
        total = sum(len(images) + 1 for _, images, *_ in sets)
        done = 0
        for query, images, *rest in sets:
            signals.append(measure_signals(vlm, query, images, rest[0] if rest else None))
            done += len(images) + 1
            session.progress("reliability: passes", done, total)
        found = reliability_of(signals, model=session.settings.models[0])
        by_category: dict[str, list[CandidateSignals]] = {}
        for asked, measured in zip(dataset.queries, signals, strict=True):
            by_category.setdefault(asked.category, []).append(measured)
        notes = [*_notes(found)]
        values = found.to_dict()
        if len(by_category) > 1:
            profiles = {name: _profile(several) for name, several in by_category.items()}
            correlations = profile_correlations(profiles)
            values["profile_correlations"] = correlations.to_dict()
            notes.append(
                f"Entropy profiles measured on {', '.join(profiles)} queries correlate at {correlations.lowest:.3f} or "
                "more: where that is high, a schedule made on one serves the other."
            )
        schedule = vlm.schedule()
        pruned = frozenset[int]() if schedule is None else frozenset(schedule.layers)
        sheets = (_summary(found), _layers(found, pruned))
        return Outcome(sheets, tuple(notes), {"reliability": partial(reliability_curve, found)}, values)


def _summary(found: Reliability) -> Sheet:
    strongest = max(range(len(found.z)), key=found.z.__getitem__)
    rows = [
        ("Pearson correlation of z with 1 - H_norm", number(found.pearson, 2), f"{published.RELIABILITY_PEARSON:.2f}"),
        (f"highest z (layer {found.layers[strongest]})", number(found.z[strongest], 2), MISSING),
        *((f"z of {name}, which looks at no attention", number(z, 2), MISSING) for name, z in found.baselines.items()),
    ]
    title = f"Reliability over {found.sets} query-candidate sets, {found.permutations} permutations each"
    return Sheet(title, ("figure", "measured", f"paper ({published.MODEL})"), tuple(rows), name="summary")


def _layers(found: Reliability, pruned: frozenset[int]) -> Sheet:
    errors = found.errors or (None,) * len(found.z)
    rows = tuple(
        (
            f"{layer}{' (pruned here)' if layer in pruned else ''}",
            number(found.z[layer], 2),
            number(errors[layer], 2),
            number(found.rho[layer], 2),
            number(1 - found.entropies[layer], 3),
        )
        for layer in found.layers
    )
    columns = ("layer", "z", "standard error", "Spearman's rho", "1 - H_norm")
    return Sheet("By layer", columns, rows, name="layers")


def _notes(found: Reliability) -> list[str]:
    return [
        "z is how many deviations the correlation of attention mass with contribution lies above that of permuted "
        "candidates: 0 is chance. U, Q and UxQ are a candidate's mean CCU, QRel and DTI.",
        "The paper's correlation is over 36 layers; over the few layers of a small model it varies much more from one "
        "set of queries to another."
        if len(found.layers) < published.SHAPE.layers
        else f"The paper's correlation is that of {published.MODEL}.",
    ]


def _profile(signals: list[CandidateSignals]) -> tuple[float, ...]:
    return tuple(map(fmean, zip(*(measured.entropies for measured in signals), strict=True)))
