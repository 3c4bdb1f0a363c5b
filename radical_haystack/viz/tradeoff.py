# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Quality against cost."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from radical_haystack.viz.figures import COLOURS, INK, MARKERS, new_figure, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cost = Literal["flops_saved_pct", "keep_ratio"]
Point = tuple[float, float]

_COST_LABELS: dict[Cost, str] = {
    "flops_saved_pct": "FLOPs of the prefill saved (%)",
    "keep_ratio": "visual tokens kept (%)",
}


def pareto(
    methods: Mapping[str, Sequence[Point]],
    *,
    cost: Cost = "flops_saved_pct",
    quality: str = "MRR@10",
    title: str = "Quality against cost",
) -> "Figure":
    """
    Draw quality against cost, one line per method. Points that are not on the Pareto front are hollow: another one is
    at least as good in both respects and better in one.

    :param methods: For each method its points: cost and quality.
    :param cost: What the points' first number is: `"flops_saved_pct"`, in percent, higher is better, or
        `"keep_ratio"`, in (0, 1], lower is better.
    :param quality: What the second number is; higher is better.
    :param title: What is shown.
    :raises ValueError: If there are no points.
    """
    points = [point for series in methods.values() for point in series]
    if not points:
        raise ValueError("A plot of quality against cost needs at least one point.")
    sign, scale = (1, 1.0) if cost == "flops_saved_pct" else (-1, 100.0)
    figure = new_figure(7.0, 3.8, layout="constrained")
    axes = plain_axes(figure, title, _COST_LABELS[cost], quality)
    for number, (name, series) in enumerate(methods.items()):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        line = sorted(series)
        x, y = [scale * point[0] for point in line], [point[1] for point in line]
        # A method beyond the colours differs in its dashes too.
        style = "-" if number < len(COLOURS) else "--"
        look: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "markersize": 6.5,
            "zorder": 3 + len(methods) - number,
        }
        axes.plot(x, y, linestyle=style, linewidth=1.5, label=name, **look)
        beaten = [point for point in line if _beaten(point, points, sign)]
        axes.plot(
            [scale * point[0] for point in beaten],
            [point[1] for point in beaten],
            linestyle="none",
            markerfacecolor="white",
            **look,
        )
    axes.plot([], [], linestyle="none", marker="o", color=INK, markerfacecolor="white", label="not on the Pareto front")
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3)
    return figure


def _beaten(point: Point, points: Sequence[Point], sign: int) -> bool:
    """Whether another point is at least as good in both respects and better in one."""
    mine = (sign * point[0], point[1])
    others = [(sign * other[0], other[1]) for other in points]
    return any(other != mine and other[0] >= mine[0] and other[1] >= mine[1] for other in others)
