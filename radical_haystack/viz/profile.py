# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Entropy and trust by layer, with the pruning layers marked."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from radical_haystack.pruning import PruningSchedule, trust_coefficients
from radical_haystack.viz.figures import ACCENT, SOFT, TRUTH, new_figure, plain_axes, write
from radical_haystack.vlm import EntropyProfile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKED = "pruning layers"
"""The label of what marks the pruning layers."""

_CURVE: dict[str, Any] = {"color": ACCENT, "marker": "o", "markersize": 3.5, "linewidth": 1.4}


def entropy_profile(
    profile: PruningSchedule | EntropyProfile | Sequence[float],
    layers: Sequence[int] | None = None,
    *,
    title: str = "How sharp attention is, by layer",
) -> "Figure":
    """
    Draw `H_norm` of every decoder layer, with the pruning layers marked.

    :param profile: A schedule that knows its entropies, a measured profile, or one value in [0, 1] per layer.
    :param layers: The pruning layers, 0-based; default: the schedule's.
    :param title: What is shown.
    :raises ValueError: If the schedule does not know its entropies or a pruning layer does not exist.
    """
    values = _entropies(profile)
    marked = _marked(profile, layers, len(values))
    figure, axes = _by_layer(len(values), title, "$H_{norm}$ (1 = uniform attention)")
    axes.plot(range(len(values)), values, label="$H_{norm}$", **_CURVE)
    axes.margins(y=0.14)
    _mark(axes, marked, dict(enumerate(values)), {layer: f"layer {layer}" for layer in marked})
    return figure


def alpha_curve(
    profile: PruningSchedule | EntropyProfile | Sequence[float],
    layers: Sequence[int] | None = None,
    *,
    title: str = "How far attention is trusted, by layer",
) -> "Figure":
    """
    Draw the trust coefficient alpha of every decoder layer (eq. 5), with the pruning layers marked.

    :param profile: See `entropy_profile`. Of a schedule without entropies only the pruning layers are drawn.
    :param layers: The pruning layers, 0-based; default: the schedule's.
    :param title: What is shown.
    :raises ValueError: If a pruning layer does not exist.
    """
    if isinstance(profile, PruningSchedule) and profile.entropies is None:
        alphas = dict(zip(profile.layers, profile.alphas, strict=True))
        count = profile.layers[-1] + 1
    else:
        alphas = dict(enumerate(trust_coefficients(_entropies(profile))))
        count = len(alphas)
    marked = _marked(profile, layers, count)
    unknown = [layer for layer in marked if layer not in alphas]
    if unknown:
        raise ValueError(f"The trust coefficients of layers {unknown} are not known.")
    figure, axes = _by_layer(count, title, "trust coefficient α")
    axes.set_ylim(-0.15, 1.15)
    if len(alphas) == count:
        axes.plot(
            range(count), list(alphas.values()), color=ACCENT, marker="o", markersize=3.5, linewidth=1.4, label="α"
        )
    for height, meaning in ((0.0, "attention alone"), (1.0, "DTI alone")):
        axes.axhline(height, color=SOFT, linewidth=0.8, linestyle=":")
        write(axes, 1.01, height, meaning, "small", va="center", color=SOFT, transform=axes.get_yaxis_transform())
    _mark(axes, marked, alphas, {layer: f"{alphas[layer]:.2f}" for layer in marked})
    return figure


def _entropies(profile: PruningSchedule | EntropyProfile | Sequence[float]) -> list[float]:
    values = profile.entropies if isinstance(profile, PruningSchedule | EntropyProfile) else profile
    if values is None:
        raise ValueError("This schedule does not hold the entropies it was made from; calibrate the model to see them.")
    return list(values)


def _marked(profile: object, layers: Sequence[int] | None, count: int) -> list[int]:
    if layers is None:
        layers = profile.layers if isinstance(profile, PruningSchedule) else ()
    outside = [layer for layer in layers if not 0 <= layer < count]
    if outside:
        raise ValueError(f"Pruning layers {outside} do not exist: the profile has layers 0 to {count - 1}.")
    return list(layers)


def _by_layer(count: int, title: str, y_label: str) -> tuple["Figure", "Axes"]:
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(7.0, 3.0, layout="constrained")
    axes = plain_axes(figure, title, "decoder layer (counted from 0)", y_label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=18, integer=True))
    axes.set_xlim(-0.6, 1.03 * count - 0.4)
    axes.grid(visible=False, axis="x")
    return figure, axes


def _mark(axes: "Axes", layers: Sequence[int], heights: Mapping[int, float], notes: Mapping[int, str]) -> None:
    """Mark the pruning layers with a ring, a line and a note, so that colour alone says nothing."""
    for layer in layers:
        axes.axvline(layer, color=TRUTH, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        # Where the curve rises, its right side is taken above.
        rises = heights.get(layer + 1, heights[layer]) > heights[layer]
        axes.annotate(
            notes[layer],
            (layer, heights[layer]),
            xytext=(6, -7 if rises else 7),
            textcoords="offset points",
            va="top" if rises else "bottom",
            fontsize=7.5,
            color=TRUTH,
            weight="bold",
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        )
    axes.plot(
        layers,
        [heights[layer] for layer in layers],
        linestyle="none",
        marker="o",
        markersize=9,
        markerfacecolor="none",
        markeredgecolor=TRUTH,
        markeredgewidth=1.8,
        label=MARKED,
    )
    if layers:
        axes.legend(fontsize=7.5, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
