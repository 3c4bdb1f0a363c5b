# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What tables made from rankings of the same queries have in common."""

from collections.abc import Sequence

from radical_haystack.evaluation.bootstrap import Estimate, bootstrap_mean
from radical_haystack.evaluation.records import Record
from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.sheets import MISSING, percent, signed
from radical_haystack.evaluation.results import MAIN_METRIC, Results, SummaryRow, Variant
from radical_haystack.pruning.pruners import BEFORE_DECODER

CONDITIONAL_DATA = ("fashioniq",)
"""Data sets of which the paper's main table has the conditional metrics."""
MEASURED = "MRR@10 [95% CI]"
"""The heading of a measured mean, in percent."""


def main_estimate(results: Results, row: SummaryRow) -> Estimate | None:
    """
    MRR@10 as the paper's main table has it for this data.

    :param results: The results.
    :param row: One of their rows.
    """
    means = row.conditional if results.experiment.dataset in CONDITIONAL_DATA else row.unconditional
    return means.get(MAIN_METRIC)


def ratio_text(keep_ratio: float) -> str:
    """
    A keep ratio as it stands in tables.

    :param keep_ratio: The ratio; 1 for a method that has none.
    """
    return MISSING if keep_ratio == 1 else f"{keep_ratio:g}"


def paper_text(data: str, method: str, keep_ratio: float) -> str:
    """
    The published MRR@10 as it stands in tables.

    :param data: The data set that is measured.
    :param method: The method's name.
    :param keep_ratio: The keep ratio.
    """
    value = published.main_mrr(data, method, keep_ratio)
    return MISSING if value is None else f"{value:.2f}"


def mean_difference(results: Results, variant: Variant, base: Variant, metric: str = MAIN_METRIC) -> Estimate | None:
    """
    How much one method is better than another on the same queries, with a paired bootstrap interval.

    :param results: The results.
    :param variant: The one.
    :param base: The other.
    :param metric: Which metric.
    """
    own, other = results.per_query(*variant), results.per_query(*base)
    differences: dict[str, list[float]] = {}
    for seed, query in sorted(own.keys() & other.keys(), key=lambda key: (key[1], key[0])):
        differences.setdefault(query, []).append(own[seed, query][metric] - other[seed, query][metric])
    return bootstrap_mean(differences)


def layers_of(records: Sequence[Record]) -> str:
    """
    The pruning layers of a method as it was run.

    :param records: Its results; where they differ, the layers of the first are followed by how many others there are.
    """
    passes = (one for record in records for one in record.passes)
    chosen = (tuple(stage.layer for stage in one.stages if stage.layer != BEFORE_DECODER) for one in passes)
    first, *others = dict.fromkeys(chosen) or [()]
    more = f" and {len(others)} others" if others else ""
    return ", ".join(map(str, first)) + more or MISSING


def orientation(data: str) -> str:
    """
    What must be said of the published values that stand beside measured ones.

    :param data: The data set that is measured.
    """
    if data in published.MAIN_MRR:
        return f"The paper's values ({published.SOURCE}) are of {published.setting(data)} with R = 0.2."
    return (
        f"The paper's values ({published.SOURCE}) are of another model and other data ({published.setting(data)}, "
        "R = 0.2): they are there for orientation, not to be reached."
    )


def verdicts(results: Results) -> tuple[str, ...]:
    """
    How RaDiCal compares with dense ranking and with all other methods, in sentences that follow the figures.

    :param results: The results.
    """
    return tuple(text for ratio in results.experiment.keep_ratios for text in _verdict(results, ratio) if text)


def _verdict(results: Results, ratio: float) -> tuple[str, str]:
    own = results.row("radical", ratio)
    against_dense = ""
    if own.difference is not None:
        against_dense = (
            f"At R = {ratio:g} RaDiCal's MRR@10 is {percent(own.unconditional[MAIN_METRIC].mean)}, "
            f"{signed(own.difference)} points against dense ranking: {_meaning(own.difference, own.queries)}."
        )
    better: list[str] = []
    for method, other in results.variants:
        if other != ratio or method == "radical":
            continue
        difference = mean_difference(results, (method, other), ("radical", ratio))
        if difference is not None and difference.mean > 0:
            certain = "" if difference.low > 0 else ", within the noise"
            better.append(f"{method} ({signed(difference)}{certain})")
    if better:
        return against_dense, f"Ahead of RaDiCal at R = {ratio:g}, in points: {', '.join(better)}."
    return against_dense, f"No other pruning method is ahead of RaDiCal at R = {ratio:g}."


def _meaning(difference: Estimate, queries: int) -> str:
    if difference.low > 0:
        return "a gain"
    if difference.high < 0:
        return "a loss"
    return f"no difference that {queries} queries can tell"
