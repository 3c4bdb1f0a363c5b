# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How reliable each layer's attention is, beside how sharp it is."""

from typing import TYPE_CHECKING, Any

from radical_haystack.viz.figures import ACCENT, COLOURS, INK, SOFT, TRUTH, new_figure, plain_axes, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radical_haystack.evaluation.diagnostics import Reliability

_DASHES = ("--", "-.", ":")


def reliability_curve(reliability: "Reliability", *, title: str = "How reliable attention is, by layer") -> "Figure":
    """
    Draw the z-score of every decoder layer with its standard error, `1 - H_norm` beside it on an axis of its own, and
    the attention-free baselines as horizontal lines.

    :param reliability: What `measure_reliability` found.
    :param title: What is shown.
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(7.0, 3.7, layout="constrained")
    axes = plain_axes(figure, title, "decoder layer (counted from 0)", "z against permuted candidates")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=18, integer=True))
    axes.grid(visible=False, axis="x")
    axes.axhline(0.0, color=SOFT, linewidth=0.8)
    attention = axes.errorbar(
        reliability.layers,
        reliability.z,
        yerr=reliability.errors,
        color=ACCENT,
        marker="o",
        markersize=3.5,
        linewidth=1.4,
        elinewidth=0.8,
        capsize=2,
        label="attention (z)",
    )
    baselines = [
        axes.axhline(z, color=colour, linewidth=1.2, linestyle=dashes, label=f"{name} (z, no attention)")
        for (name, z), colour, dashes in zip(reliability.baselines.items(), COLOURS[2:], _DASHES, strict=False)
    ]
    sharpness = axes.twinx()
    (sharp,) = sharpness.plot(
        reliability.layers,
        [1 - entropy for entropy in reliability.entropies],
        color=TRUTH,
        marker="s",
        markersize=3.5,
        linewidth=1.2,
        linestyle=(0, (4, 2)),
        label="$1 - H_{norm}$",
    )
    sharpness.set_ylabel("$1 - H_{norm}$ (0 = uniform)", fontsize=9.0, color=INK)
    sharpness.tick_params(labelsize=7.5, colors=SOFT, labelcolor=INK)
    sharpness.spines["top"].set_visible(False)
    entries: list[Any] = [attention, sharp, *baselines]
    figure.legend(handles=entries, fontsize=7.5, frameon=False, loc="outside lower center", ncols=3)
    if reliability.pearson is not None:
        write(axes, 1.0, 1.02, f"Pearson r = {reliability.pearson:.2f}", ha="right", transform=axes.transAxes)
    return figure
