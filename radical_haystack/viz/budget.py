# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How many tokens each candidate was left with."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from radical_haystack.viz.figures import (
    ACCENT,
    INK,
    SOFT,
    TRUTH,
    bare,
    check_candidates,
    labels_of,
    new_figure,
    shortened,
    write,
)
from radical_haystack.vlm import Ranking

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def token_budget(
    methods: Mapping[str, Ranking],
    *,
    order: Sequence[int] | None = None,
    truth: Collection[int] = (),
    labels: Sequence[str] | None = None,
    title: str = "Visual tokens kept of each candidate",
) -> "Figure":
    """
    Draw how many tokens each candidate was left with, as bars in front of how many it had; one row per method.

    :param methods: Rankings of the same candidates, by method.
    :param order: The candidates to show, in order; default: all, as the first ranking orders them.
    :param truth: Candidates that match; they are hatched and ticked.
    :param labels: What the candidates are called; default: their numbers.
    :param title: What is shown.
    :raises ValueError: If there is no method, the rankings are not of the same candidates, or a number does not fit.
    """
    if not methods:
        raise ValueError("Bars of tokens need at least one method.")
    first = next(iter(methods.values()))
    count = len(first.order)
    for name, ranking in methods.items():
        if len(ranking.order) != count:
            raise ValueError(f"{name!r} ranks {len(ranking.order)} candidates, the first method {count}.")
    shown = list(first.order if order is None else order)
    check_candidates(count, shown, truth)
    names = labels_of(count, labels)
    figure = new_figure(max(4.5, 1.2 + 0.36 * len(shown)), 1.1 + 1.25 * len(methods), layout="constrained")
    figure.suptitle(title, fontsize=10.5, color=INK, x=0.01, ha="left", parse_math=False)
    grid = figure.subplots(len(methods), 1, sharex=True, sharey=True, squeeze=False)
    places = range(len(shown))
    for axes, (name, ranking) in zip(grid[:, 0], methods.items(), strict=True):
        total = [ranking.total_tokens[candidate] for candidate in shown]
        kept = [ranking.kept_tokens[candidate] for candidate in shown]
        axes.bar(places, total, width=0.78, color="#ececec", edgecolor=SOFT, linewidth=0.6, label="before pruning")
        bars = axes.bar(places, kept, width=0.78, color=ACCENT, edgecolor=INK, linewidth=0.6, label="kept")
        for bar, candidate, tokens in zip(bars, shown, kept, strict=True):
            matches = candidate in truth
            if matches:
                bar.set(facecolor=TRUTH, hatch="////")
            note = f"✓ {tokens}" if matches else str(tokens)
            write(axes, bar.get_x() + bar.get_width() / 2, tokens, note, "small", ha="center", va="bottom")
        bare(axes)
        axes.set_ylabel("tokens", fontsize=8, color=INK)
        axes.set_title(name, fontsize=9, color=INK, weight="bold", loc="left", parse_math=False)
    ticks = [shortened(names[candidate], 18) for candidate in shown]
    grid[-1, 0].set_xticks(places, ticks, rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
    for tick, candidate in zip(grid[-1, 0].get_xticklabels(), shown, strict=True):
        if candidate in truth:
            tick.set(color=TRUTH, weight="bold")
    grid[0, 0].legend(fontsize=7.5, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return figure
