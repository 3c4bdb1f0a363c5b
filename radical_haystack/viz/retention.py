# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Retention overlays: the candidates' images with the pruned tokens dimmed."""

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radical_haystack.pruning.pruners import BEFORE_DECODER
from radical_haystack.viz.figures import INK, SOFT, TRUTH, check_candidates, labels_of, new_figure, shortened, write
from radical_haystack.viz.masks import TokenMask, dimmed, pruning_layers, token_masks
from radical_haystack.vlm import Ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All in inches.
_CELL = 1.05
_GAP = 0.07
_CAPTION = 0.21
_LABELS = 1.25
_HEADER = 0.24
_MARGIN = 0.08
_LINE = 0.19
_ASPECTS = (0.8, 1.9)
"""Least and greatest width of a column, relative to its height; thinner and longer images stand inside it."""
_LONGEST = 8.0
"""Strips are drawn at most this many times as long as wide."""


@dataclass(frozen=True)
class _Row:
    """One row of the picture: its name, a second line below it, and a mask and caption for each candidate."""

    name: str
    note: str
    masks: Sequence[TokenMask]
    captions: Sequence[str]


def retention_overlay(
    methods: Mapping[str, Ranking | Sequence[TokenMask]],
    images: Sequence[Image.Image] | None = None,
    *,
    order: Sequence[int] | None = None,
    truth: Collection[int] = (),
    labels: Sequence[str] | None = None,
    title: str = "",
) -> "Figure":
    """
    Draw which tokens each method kept: candidates in columns, one row per method below a row of the images themselves.

    Below each image stand its rank, if a ranking was given, and how many of its tokens were kept.

    :param methods: Rankings of the same candidates, or masks of kept tokens (see `masks_from_indices`), by method.
    :param images: The candidates' images; default: the first ranking's own.
    :param order: The candidates to show, in order; default: all, as the first ranking orders them.
    :param truth: Candidates that match; they are framed, and ticked in the header.
    :param labels: What the candidates are called; default: their numbers.
    :param title: What is shown, such as the query.
    :returns: The figure; it grows with the number of candidates.
    :raises ValueError: If there are no candidates or methods, a number does not fit, or a ranking's traces do not tell
        their token grids.
    """
    rows = [_row(name, kept) for name, kept in methods.items()]
    rankings = [kept for kept in methods.values() if isinstance(kept, Ranking)]
    if images is None:
        images = rankings[0].images if rankings else ()
    if order is None:
        order = rankings[0].order if rankings else range(len(images))
    return _picture(images, rows, order, truth, labels, title)


def layer_retention(
    ranking: Ranking,
    images: Sequence[Image.Image] | None = None,
    *,
    order: Sequence[int] | None = None,
    truth: Collection[int] = (),
    labels: Sequence[str] | None = None,
    title: str = "",
) -> "Figure":
    """
    Draw which tokens were left after each pruning layer: candidates in columns, one row per layer, the first on top.

    :param ranking: The ranking. With sliding windows each candidate is shown as in the last pass it was in.
    :param images: The candidates' images; default: the ranking's own.
    :param order: The candidates to show, in order; default: all, as the ranking orders them.
    :param truth: Candidates that match; they are framed, and ticked in the header.
    :param labels: What the candidates are called; default: their numbers.
    :param title: What is shown, such as the query.
    :returns: The figure; it grows with the number of candidates.
    :raises ValueError: If nothing was pruned in the model, a number does not fit, or the ranking's traces do not tell
        their token grids.
    """
    layers = pruning_layers(ranking)
    if not layers:
        raise ValueError("No tokens left the model on the way in this ranking, so there are no pruning layers to show.")
    rows = []
    for layer in layers:
        masks = token_masks(ranking, layer)
        name = "decoder's input" if layer == BEFORE_DECODER else f"after layer {layer}"
        rows.append(_Row(name, _share(masks, sum(ranking.total_tokens)), masks, _counts(masks, ranking.total_tokens)))
    return _picture(
        ranking.images if images is None else images,
        rows,
        ranking.order if order is None else order,
        truth,
        labels,
        title,
    )


def _row(name: str, kept: Ranking | Sequence[TokenMask]) -> _Row:
    if not isinstance(kept, Ranking):
        totals = [mask.size for mask in kept]
        return _Row(name, _share(kept, sum(totals)), kept, _counts(kept, totals))
    masks = token_masks(kept)
    ranks = {candidate: rank for rank, candidate in enumerate(kept.order, start=1)}
    counts = _counts(masks, kept.total_tokens)
    captions = [f"#{ranks[candidate]}  {count}" for candidate, count in enumerate(counts)]
    return _Row(name, _share(masks, sum(kept.total_tokens)), masks, captions)


def _counts(masks: Sequence[TokenMask], totals: Sequence[int]) -> list[str]:
    return [f"{mask.sum()}/{total}" for mask, total in zip(masks, totals, strict=True)]


def _share(masks: Sequence[TokenMask], total: int) -> str:
    kept = sum(int(mask.sum()) for mask in masks)
    images = "image" if len(masks) == 1 else f"{len(masks)} images"
    return f"{kept} of {total}\ntokens kept in\nall {images}"


class _Sheet:
    """
    A figure on which places are in inches from the upper left corner.

    :param width: Its width.
    :param height: Its height.
    """

    def __init__(self, width: float, height: float) -> None:
        self.figure = new_figure(width, height)
        self._width, self._height = width, height

    def axes(self, column: tuple[float, float], top: float) -> "Axes":
        """Axes one cell high, from the left to the right edge of a column."""
        left, right = column
        size = ((right - left) / self._width, _CELL / self._height)
        return self.figure.add_axes((left / self._width, 1 - (top + _CELL) / self._height, *size))

    def write(self, x: float, y: float, text: str, size: str = "label", **style: Any) -> None:
        """Text at a place; see `figures.write`."""
        write(self.figure, x / self._width, 1 - y / self._height, text, size, **style)

    def name_row(self, middle: float, name: str, note: str = "") -> None:
        """A row's name and the note below it, left of its cells."""
        x = _LABELS - 0.1
        self.write(x, middle, shortened(name, 16), ha="right", va="bottom" if note else "center", weight="bold")
        self.write(x, middle, note, "small", ha="right", va="top", color=SOFT)

    def name_column(self, column: tuple[float, float], bottom: float, name: str, *, matches: bool) -> None:
        """A candidate's name above its cells."""
        left, right = column
        text = ("✓ " if matches else "") + shortened(name, int(15.5 * (right - left)) - 2 * matches)
        style = {"color": TRUTH, "weight": "bold"} if matches else {}
        self.write((left + right) / 2, bottom, text, "small", ha="center", va="bottom", **style)


def _picture(
    images: Sequence[Image.Image],
    rows: Sequence[_Row],
    order: Sequence[int],
    truth: Collection[int],
    labels: Sequence[str] | None,
    title: str,
) -> "Figure":
    _check(images, rows, order, truth)
    names = labels_of(len(images), labels)
    columns = _columns(images, order)
    width = columns[-1][1] + _MARGIN
    lines = textwrap.wrap(title, max(24, int(11 * width)))
    top = _MARGIN + _LINE * len(lines) + (_GAP if lines else 0) + _HEADER
    sheet = _Sheet(width, top + _CELL + _GAP + len(rows) * (_CELL + _CAPTION) + _MARGIN)
    for number, line in enumerate(lines):
        sheet.write(_MARGIN, _MARGIN + _LINE * (number + 0.5), line, "title", va="center")
    sheet.name_row(top + _CELL / 2, "images")
    for candidate, column in zip(order, columns, strict=True):
        sheet.name_column(column, top - 0.06, names[candidate], matches=candidate in truth)
        finest = max((row.masks[candidate] for row in rows), key=np.size)
        _draw(sheet.axes(column, top), images[candidate], np.ones_like(finest), framed=candidate in truth)
    for number, row in enumerate(rows):
        y = top + _CELL + _GAP + number * (_CELL + _CAPTION)
        sheet.name_row(y + _CELL / 2, row.name, row.note)
        for candidate, column in zip(order, columns, strict=True):
            _draw(sheet.axes(column, y), images[candidate], row.masks[candidate], framed=candidate in truth)
            caption = row.captions[candidate]
            sheet.write(sum(column) / 2, y + _CELL + 0.035, caption, "small", ha="center", va="top")
    return sheet.figure


def _check(images: Sequence[Image.Image], rows: Sequence[_Row], order: Sequence[int], truth: Collection[int]) -> None:
    if not rows:
        raise ValueError("A retention overlay needs at least one method.")
    if not order:
        raise ValueError("A retention overlay needs at least one candidate.")
    for row in rows:
        if len(row.masks) != len(images):
            raise ValueError(f"There are {len(images)} images, but {row.name!r} is of {len(row.masks)} candidates.")
    check_candidates(len(images), order, truth)


def _columns(images: Sequence[Image.Image], order: Sequence[int]) -> list[tuple[float, float]]:
    """Left and right edge of each column: all images are of one height, as far as their shapes allow."""
    columns = []
    left = _LABELS
    for candidate in order:
        image = images[candidate]
        aspect = min(max(image.width / image.height, _ASPECTS[0]), _ASPECTS[1])
        columns.append((left, left + aspect * _CELL))
        left += aspect * _CELL + _GAP
    return columns


def _draw(axes: "Axes", image: Image.Image, mask: TokenMask, *, framed: bool) -> None:
    """One image in the coordinates of its tokens, but of its own shape: grids only come near it."""
    rows, columns = mask.shape
    height = min(max(image.height / image.width, 1 / _LONGEST), _LONGEST)
    axes.imshow(
        dimmed(image, mask),
        extent=(0, columns, rows, 0),
        aspect=height * columns / rows,
        interpolation="antialiased",
    )
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=TRUTH if framed else INK, linewidth=2.6 if framed else 0.4)
    x, y = _outline(mask)
    axes.plot(x, y, color="white", linewidth=0.7, scalex=False, scaley=False)


def _outline(mask: TokenMask) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The edges between kept and dropped tokens, from the upper left corner, each followed by a gap in the line."""
    down, along = np.nonzero(mask[:, 1:] != mask[:, :-1])
    upright = np.stack([along + 1, along + 1, along, down, down + 1, down]).astype(np.float64)
    row, left = np.nonzero(mask[1:] != mask[:-1])
    level = np.stack([left, left + 1, left, row + 1, row + 1, row]).astype(np.float64)
    edges = np.concatenate([upright, level], axis=1)
    edges[[2, 5]] = np.nan
    return edges[:3].T.ravel(), edges[3:].T.ravel()
