# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
The outlines, seams and folds of the garments.

Coordinates are `(x, y)` in units of the image side; the origin is the middle of the neck or waist, y points down.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

LIGHT, NEUTRAL, DARK, INK = 150, 128, 108, 62


@dataclass(frozen=True)
class Part:
    """A closed outline, filled; `tone` is 128 for the cloth as it is, lower for darker."""

    outline: Points
    tone: int = NEUTRAL


@dataclass(frozen=True)
class Stroke:
    """A seam or detail: an open line of `width`, or a filled polygon."""

    points: Points
    tone: int = 84
    width: float = 0.005
    filled: bool = False


@dataclass(frozen=True)
class GarmentShape:
    """Everything needed to draw a garment but its colours: parts from back to front, details, folds, pocket outline."""

    parts: tuple[Part, ...]
    strokes: tuple[Stroke, ...]
    folds: tuple[Stroke, ...]
    pocket: Points

    @property
    def top(self) -> float:
        """Highest point, at most 0."""
        return min(float(part.outline[:, 1].min()) for part in self.parts)

    @property
    def bottom(self) -> float:
        """Lowest point of the body (the front part; sleeves do not count)."""
        return float(self.parts[-1].outline[:, 1].max())

    @property
    def width(self) -> float:
        """Overall width."""
        return 2 * max(float(part.outline[:, 0].max()) for part in self.parts)


@cache
def shape_of(kind: str, length: str) -> GarmentShape:
    """
    Look up the shape of a garment.

    :param kind: Garment kind.
    :param length: `short` or `long`.
    :returns: Its shape.
    """
    return _BUILDERS[kind](length == "long")


def _pts(*points: tuple[float, float]) -> Points:
    return np.array(points, dtype=np.float64)


def _mirror(points: Points) -> Points:
    """Reflect a line at the vertical axis."""
    return points * (-1.0, 1.0)


def _closed(right: Points) -> Points:
    """Complete the right half of an outline (top to bottom) by its reflection."""
    return np.concatenate([right, _mirror(right)[::-1]])


def _round(points: Points, passes: int = 2, cut: float = 0.18) -> Points:
    """Round the corners of a closed outline by corner cutting (Chaikin)."""
    for _ in range(passes):
        following = np.roll(points, -1, axis=0)
        points = np.stack([points + cut * (following - points), following - cut * (following - points)], axis=1)
        points = points.reshape(-1, 2)
    return points


def _arc(x0: float, y0: float, x1: float, y1: float, sag: float, steps: int = 9) -> Points:
    """A line from one point to another that sags by `sag` downwards."""
    t = np.linspace(0, 1, steps)
    return np.stack([x0 + t * (x1 - x0), y0 + t * (y1 - y0) + 4 * sag * t * (1 - t)], axis=1)


def _ellipse(x: float, y: float, rx: float, ry: float, steps: int = 28) -> Points:
    angle = np.linspace(0, 2 * np.pi, steps, endpoint=False)
    return np.stack([x + rx * np.cos(angle), y + ry * np.sin(angle)], axis=1)


def _patch(x: float, y: float, width: float = 0.092, height: float = 0.098) -> Points:
    """A patch pocket with a pointed lower edge, its middle at `(x, y)`."""
    w, h = width / 2, height / 2
    return _pts((x - w, y - h), (x + w, y - h), (x + w, y + 0.55 * h), (x, y + h), (x - w, y + 0.55 * h))


def _both(stroke: Stroke) -> tuple[Stroke, Stroke]:
    return stroke, Stroke(_mirror(stroke.points), stroke.tone, stroke.width, stroke.filled)


def _sleeves(long: bool) -> tuple[tuple[Part, ...], tuple[Stroke, ...]]:
    if long:
        right = _pts((0.12, 0.02), (0.2, 0.05), (0.262, 0.15), (0.335, 0.37), (0.262, 0.4), (0.17, 0.2), (0.12, 0.16))
        cuff = _pts((0.323, 0.335), (0.25, 0.366))
    else:
        right = _pts((0.12, 0.02), (0.2, 0.045), (0.255, 0.1), (0.3, 0.165), (0.225, 0.222), (0.17, 0.17), (0.12, 0.16))
        cuff = _pts((0.288, 0.145), (0.213, 0.202))
    outline = _round(right)
    parts = (Part(outline, 121), Part(_mirror(outline), 121))
    return parts, _both(Stroke(cuff, 92))


def _body(width: float = 0.19, hem: float = 0.4, shoulder: float = 0.175) -> Part:
    right = _pts((0.0, 0.02), (0.07, 0.0), (shoulder, 0.03), (width - 0.01, 0.14), (width, hem - 0.01), (0.06, hem))
    return Part(_round(_closed(right), cut=0.12))


_TOP_FOLDS = (
    *_both(Stroke(_pts((0.165, 0.17), (0.12, 0.22), (0.09, 0.3)), 108)),
    *_both(Stroke(_pts((0.17, 0.26), (0.14, 0.36)), 112)),
    *_both(Stroke(_pts((0.21, 0.09), (0.19, 0.14)), 112)),
    *_both(Stroke(_pts((0.06, 0.1), (0.045, 0.34)), 140)),
)


def _shirt(long: bool) -> GarmentShape:
    sleeves, cuffs = _sleeves(long)
    collar = _pts((0.0, 0.05), (0.035, 0.085), (0.082, 0.045), (0.068, -0.012), (0.045, -0.02))
    buttons = tuple(Stroke(_ellipse(0.0, y, 0.0085, 0.0085, 12), 40, filled=True) for y in (0.12, 0.19, 0.26, 0.33))
    strokes = (
        *cuffs,
        Stroke(_ellipse(0.0, 0.008, 0.055, 0.026), 66, filled=True),
        Stroke(_pts((0.017, 0.06), (0.017, 0.4)), 96),
        Stroke(_pts((-0.017, 0.06), (-0.017, 0.4)), 96),
        *buttons,
        *_both(Stroke(collar, 142, filled=True)),
        *_both(Stroke(np.concatenate([collar, collar[:1]]), 66, 0.006)),
        Stroke(_arc(-0.18, 0.377, 0.18, 0.377, 0.01), 104, 0.004),
    )
    return GarmentShape((*sleeves, _body()), strokes, _TOP_FOLDS, _patch(0.09, 0.165))


def _jacket(long: bool) -> GarmentShape:
    sleeves, cuffs = _sleeves(long)
    lapel = _pts((0.0, 0.15), (0.055, 0.12), (0.115, 0.075), (0.075, 0.045), (0.082, -0.015), (0.05, -0.03))
    teeth = tuple(Stroke(_pts((-0.009, y), (0.009, y)), 200, 0.005) for y in np.arange(0.15, 0.4, 0.018))
    strokes = (
        *cuffs,
        Stroke(_pts((-0.055, -0.02), (0.055, -0.02), (0.0, 0.155)), 34, filled=True),
        Stroke(_pts((0.0, 0.15), (0.0, 0.4)), 36, 0.026),
        *teeth,
        *_both(Stroke(lapel, 140, filled=True)),
        *_both(Stroke(np.concatenate([lapel, lapel[:1]]), 60, 0.007)),
        Stroke(_arc(-0.195, 0.355, 0.195, 0.355, 0.01), 78, 0.007),
        *_both(Stroke(_pts((0.155, 0.25), (0.105, 0.3)), 66, 0.008)),
    )
    return GarmentShape((*sleeves, _body(0.2, 0.4, 0.185)), strokes, _TOP_FOLDS, _patch(0.105, 0.18))


def _hoodie(long: bool) -> GarmentShape:
    sleeves, cuffs = _sleeves(long)
    hood = _round(_closed(_pts((0.04, -0.085), (0.1, -0.06), (0.125, 0.03), (0.06, 0.085))))
    pouch = _pts((-0.075, 0.25), (0.075, 0.25), (0.115, 0.32), (0.115, 0.365), (-0.115, 0.365), (-0.115, 0.32))
    strokes = (
        *cuffs,
        Stroke(hood, NEUTRAL, filled=True),
        Stroke(np.concatenate([hood, hood[:1]]), 76, 0.007),
        Stroke(_ellipse(0.0, 0.005, 0.068, 0.062), 48, filled=True),
        *_both(Stroke(_pts((0.035, 0.075), (0.04, 0.17)), 236, 0.011)),
        *_both(Stroke(_ellipse(0.04, 0.175, 0.009, 0.012, 12), 236, filled=True)),
        Stroke(np.concatenate([pouch, pouch[:1]]), 66, 0.008),
        Stroke(_arc(-0.19, 0.367, 0.19, 0.367, 0.01), 84, 0.006),
        *(Stroke(_pts((x, 0.375), (x, 0.4)), 104, 0.004) for x in np.arange(-0.17, 0.18, 0.02)),
    )
    parts = (Part(hood), *sleeves, _body(0.195, 0.4))
    return GarmentShape(parts, strokes, _TOP_FOLDS, _patch(0.112, 0.165))


def _waistband(half: float) -> tuple[Stroke, ...]:
    return (
        Stroke(_arc(-half, 0.035, half, 0.035, 0.006), 76, 0.007),
        *(Stroke(_pts((x, 0.004), (x, 0.04)), 84, 0.012) for x in (-0.6 * half, 0.6 * half)),
        Stroke(_ellipse(0.0, 0.02, 0.009, 0.009, 12), 40, filled=True),
    )


def _trousers(long: bool) -> GarmentShape:
    hem = 0.44 if long else 0.235
    inner, outer = (0.05, 0.196) if long else (0.03, 0.225)
    right = _pts((0.0, 0.0), (0.145, 0.0), (0.192, 0.1), (outer, hem - 0.005), (inner, hem), (0.012, 0.15))
    outline = _round(_closed(right), cut=0.08)
    strokes = (
        *_waistband(0.152),
        Stroke(_pts((0.0, 0.04), (0.0, 0.145)), 72, 0.007),
        Stroke(_pts((0.0, 0.11), (0.02, 0.1), (0.026, 0.04)), 96, 0.004),
        *_both(Stroke(_arc(0.095, 0.04, 0.165, 0.085, 0.012), 78, 0.006)),
        *_both(Stroke(_pts((inner, hem - 0.024), (outer, hem - 0.029)), 92)),
    )
    folds = (
        *_both(Stroke(_pts((0.03, 0.16), (0.07, 0.2)), 106)),
        *_both(Stroke(_pts((0.02, 0.13), (0.09, 0.14)), 112)),
        *(_both(Stroke(_pts((0.115, 0.24), (0.115, 0.42)), 142)) if long else ()),
        *(_both(Stroke(_pts((0.07, 0.3), (0.15, 0.32)), 112)) if long else ()),
    )
    return GarmentShape((Part(outline),), strokes, folds, _patch(0.112, 0.15))


def _skirt(long: bool) -> GarmentShape:
    hem, half = (0.43, 0.25) if long else (0.23, 0.24)
    right = _pts((0.0, 0.0), (0.125, 0.0), (0.168, 0.07), (half, hem - 0.02), (0.1, hem + 0.004), (0.0, hem + 0.008))
    outline = _round(_closed(right), cut=0.1)
    pleats = tuple(Stroke(_pts((0.4 * x * half, 0.05), (x * half, hem)), 100) for x in (-0.75, -0.4, 0.4, 0.75))
    shine = tuple(Stroke(_pts((0.4 * x * half, 0.07), (x * half, hem)), 144) for x in (-0.55, 0.15, 0.58))
    strokes = (
        *_waistband(0.135),
        *(Stroke(_pts((0.45 * x * half, 0.045), (x * half, hem)), 98, 0.005) for x in (-0.7, -0.25, 0.25, 0.7)),
        Stroke(_arc(-0.97 * half, hem - 0.035, 0.97 * half, hem - 0.035, 0.018), 104, 0.004),
    )
    return GarmentShape((Part(outline),), strokes, (*pleats, *shine), _patch(0.085, 0.135))


def _dress(long: bool) -> GarmentShape:
    hem, half = (0.8, 0.3) if long else (0.54, 0.27)
    right = _pts(
        (0.0, 0.085), (0.075, 0.06), (0.09, 0.0), (0.135, 0.0), (0.155, 0.08), (0.165, 0.15), (0.125, 0.27),
        (0.17, 0.38), (half, hem - 0.02), (0.12, hem + 0.006), (0.0, hem + 0.01),
    )  # fmt: skip
    outline = _round(_closed(right), cut=0.1)
    lines = (-0.7, -0.25, 0.25, 0.7)
    strokes = (
        Stroke(_pts((-0.128, 0.255), (0.128, 0.255), (0.13, 0.29), (-0.13, 0.29)), 96, filled=True),
        *(Stroke(_pts((0.4 * x * half, 0.3), (x * half, hem)), 98, 0.005) for x in lines),
        Stroke(_arc(-0.07, 0.068, 0.07, 0.068, 0.03), 84, 0.005),
        *_both(Stroke(_pts((0.145, 0.15), (0.09, 0.17)), 96, 0.005)),
        Stroke(_arc(-0.96 * half, hem - 0.04, 0.96 * half, hem - 0.04, 0.018), 100, 0.004),
    )
    folds = (
        *(Stroke(_pts((0.4 * x * half, 0.32), (x * half, hem)), 102) for x in (-0.8, -0.4, 0.35, 0.78)),
        *(Stroke(_pts((0.4 * x * half, 0.32), (x * half, hem)), 144) for x in (-0.55, 0.1, 0.55)),
        *_both(Stroke(_pts((0.06, 0.12), (0.05, 0.23)), 140)),
    )
    return GarmentShape((Part(outline),), strokes, folds, _patch(0.1, 0.375))


_BUILDERS = {
    "shirt": _shirt,
    "jacket": _jacket,
    "hoodie": _hoodie,
    "trousers": _trousers,
    "skirt": _skirt,
    "dress": _dress,
}
