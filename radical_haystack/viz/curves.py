# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Lines with confidence intervals, for whatever is measured at several settings."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from radical_haystack.viz.figures import COLOURS, MARKERS, new_figure, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Interval = tuple[float, float, float, float]
"""A place on the x axis, a mean, and the lower and upper end of its interval."""


def curves(
    series: Mapping[str, Sequence[Interval]], *, title: str, x_label: str, y_label: str, whole_x: bool = False
) -> "Figure":
    """
    Draw one line per series, with the interval of each point.

    :param series: For each line its points.
    :param title: What is shown.
    :param x_label: What the places are, with their unit.
    :param y_label: What is measured.
    :param whole_x: Whether only the places of points are marked on the x axis.
    :raises ValueError: If there are no points.
    """
    places = sorted({point[0] for points in series.values() for point in points})
    if not places:
        raise ValueError(f"The figure '{title}' needs at least one point.")
    figure = new_figure(7.0, 3.4, layout="constrained")
    axes = plain_axes(figure, title, x_label, y_label)
    if whole_x:
        axes.set_xticks(places)
    for number, (name, points) in enumerate(series.items()):
        x, means, lows, highs = zip(*sorted(points), strict=True) if points else ((), (), (), ())
        axes.errorbar(
            x,
            means,
            yerr=[
                [mean - low for mean, low in zip(means, lows, strict=True)],
                [high - mean for mean, high in zip(means, highs, strict=True)],
            ],
            label=name,
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            # A line beyond the colours differs in its dashes too.
            linestyle="-" if number < len(COLOURS) else "--",
            linewidth=1.4,
            markersize=4.5,
            elinewidth=0.8,
            capsize=2,
        )
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3)
    return figure
