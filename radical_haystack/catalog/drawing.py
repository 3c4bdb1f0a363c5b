# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Draw an outfit as a product photograph, together with the mask that says which pixels show what."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from radical_haystack.catalog.attributes import Garment, Outfit
from radical_haystack.catalog.shapes import GarmentShape, Points, shape_of
from radical_haystack.catalog.shop import shop_canvas

FloatArray = NDArray[np.float32]

TONES: dict[str, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    # colour: (main tone, second tone of its patterns)
    "red": ((212, 40, 48), (255, 176, 176)),
    "orange": ((245, 132, 24), (255, 214, 164)),
    "yellow": ((250, 212, 40), (184, 146, 14)),
    "green": ((44, 150, 72), (176, 230, 176)),
    "blue": ((40, 96, 208), (170, 204, 252)),
    "purple": ((130, 62, 172), (218, 184, 242)),
    "black": ((42, 42, 48), (132, 132, 140)),
    "white": ((246, 246, 246), (176, 180, 188)),
}
SUPERSAMPLING = 2
NOISE_TILE = 128
MAX_ZOOM = 1.4
# How far a top hangs over the waistband, in garment units.
OVERLAP = 0.025


@dataclass(frozen=True)
class Scene:
    """
    Everything about an image but the outfit.

    :param shop_seed: Decides the background and the distractors' kind and colour: one look per shop.
    :param shot_seed: Decides position, scale, rotation, light, noise, blur and where exactly the distractors are.
    """

    shop_seed: int
    shot_seed: int


@dataclass(frozen=True)
class Drawing:
    """
    A drawn outfit.

    :param image: RGB image, `size` x `size`.
    :param masks: Shape `(size, size)`, uint8: 0 background, `1 + 2g` garment `g`, `2 + 2g` its pocket.
    """

    image: Image.Image
    masks: NDArray[np.uint8]


@dataclass(frozen=True)
class _Pose:
    """Maps garment coordinates (unit: image side) to pixels: `pixel = matrix @ point + shift`."""

    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]

    @property
    def scale(self) -> float:
        """Pixels per unit of garment coordinates."""
        return math.hypot(self.matrix[0, 0], self.matrix[1, 0])

    def pixels(self, points: Points) -> Points:
        return points @ self.matrix.T + self.shift

    def grid(self, rows: slice, cols: slice) -> tuple[FloatArray, FloatArray]:
        """Garment coordinates of the pixel centres of a window."""
        # The matrix is a rotation times a scale: its inverse is its transpose over the scale squared.
        (a, b), (c, d) = self.matrix.T.astype(np.float32) / np.float32(self.scale**2)
        x = np.arange(cols.start, cols.stop, dtype=np.float32)[None, :] + np.float32(0.5 - self.shift[0])
        y = np.arange(rows.start, rows.stop, dtype=np.float32)[:, None] + np.float32(0.5 - self.shift[1])
        return a * x + b * y, c * x + d * y


@dataclass(frozen=True)
class _Layer:
    """A garment ready to be composed: its window, and there the opacity, colour `(3, h, w)` and pocket share."""

    rows: slice
    cols: slice
    alpha: FloatArray
    colour: FloatArray
    pocket: FloatArray


def draw(outfit: Outfit, scene: Scene, size: int = 256) -> Drawing:
    """
    Draw an outfit in a scene. The result depends on nothing but the arguments.

    :param outfit: What to show.
    :param scene: Where and how to show it.
    :param size: Side of the image in pixels.
    :returns: The image and its masks.
    """
    rng = random.Random(f"shot/{scene.shot_seed}")
    poses = _poses(outfit, rng, size)
    layers = [_layer(g, pose, rng, size) for g, pose in zip(outfit.garments, poses, strict=True)]
    canvas = shop_canvas(scene.shop_seed, rng, size)
    masks = np.zeros((size, size), dtype=np.uint8)
    _cast_shadow(canvas, layers, size)
    # The top comes last: it hangs over the waistband.
    for index, layer in reversed(list(enumerate(layers))):
        _compose(canvas, masks, layer, index)
    return Drawing(_photograph(canvas, rng, size), masks)


def evidence_tokens(
    masks: NDArray[np.uint8], garments: Sequence[int], rows: int, cols: int, min_cover: float = 0.3
) -> NDArray[np.bool_]:
    """
    Tell which visual tokens show the given garments (their pockets included).

    :param masks: Shape `(height, width)`, from `Drawing.masks`.
    :param garments: Indices of the garments.
    :param rows: Rows of the token grid.
    :param cols: Columns of the token grid.
    :param min_cover: Share of its cell that must be covered for a token to count as evidence.
    :returns: Shape `(rows, cols)`, bool.
    """
    labels = [label for g in garments for label in (1 + 2 * g, 2 + 2 * g)]
    return _cell_share(np.isin(masks, labels), rows, cols) >= min_cover


def token_labels(masks: NDArray[np.uint8], rows: int, cols: int, pocket_cover: float = 0.25) -> NDArray[np.int64]:
    """
    Give each cell of a token grid the label that fills most of it; a pocket wins early, it is small.

    :param masks: Shape `(height, width)`, from `Drawing.masks`.
    :param rows: Rows of the token grid.
    :param cols: Columns of the token grid.
    :param pocket_cover: Share of the cell from which a pocket wins.
    :returns: Shape `(rows, cols)`, int64, the labels of `Drawing.masks`.
    """
    shares = np.stack([_cell_share(masks == label, rows, cols) for label in range(5)])
    shares[2::2] = np.where(shares[2::2] >= pocket_cover, 1.0 + shares[2::2], shares[2::2])
    return shares.argmax(axis=0)


def _cell_share(flags: NDArray[np.bool_], rows: int, cols: int) -> NDArray[np.float64]:
    height, width = flags.shape
    row_edges = np.linspace(0, height, rows + 1).round().astype(int)
    col_edges = np.linspace(0, width, cols + 1).round().astype(int)
    sums = np.add.reduceat(np.add.reduceat(flags.astype(np.float64), row_edges[:-1], axis=0), col_edges[:-1], axis=1)
    return sums / np.outer(np.diff(row_edges), np.diff(col_edges))


def _poses(outfit: Outfit, rng: random.Random, size: int) -> list[_Pose]:
    """Hang the garments one below the other, filling the image up to the shot's scale."""
    shapes = [shape_of(garment.kind, garment.length) for garment in outfit.garments]
    # A flat lay leaves the two garments a little apart and askew, a mannequin does not.
    loose = float(rng.random() < 0.5)
    drops = [0.0, shapes[0].bottom - OVERLAP + loose * rng.uniform(0.0, 0.03)][: len(shapes)]
    top = shapes[0].top
    height = drops[-1] + shapes[-1].bottom - top
    zoom = min(MAX_ZOOM, 0.89 / height, 0.84 / max(shape.width for shape in shapes))
    scale = zoom * rng.uniform(0.85, 1.1)
    room = max(0.02, (1.0 - scale * height) / 4)
    centre = size * np.array([0.5 + rng.uniform(-0.04, 0.04), 0.5 + rng.uniform(-room, room)])
    angle = rng.uniform(-8, 8)
    poses = []
    for drop in drops:
        offset = np.array([loose * rng.uniform(-0.02, 0.02), drop - top - height / 2])
        shift = centre + _rotation(angle) @ offset * scale * size
        poses.append(_Pose(scale * size * _rotation(angle + loose * rng.uniform(-4, 4)), shift))
    return poses


def _rotation(degrees: float) -> NDArray[np.float64]:
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[cos, -sin], [sin, cos]])


def _layer(garment: Garment, pose: _Pose, rng: random.Random, size: int) -> _Layer:
    shape = shape_of(garment.kind, garment.length)
    rows, cols = _window(shape, pose, size)
    alpha = _coverage([part.outline for part in shape.parts], pose, rows, cols)
    main, second = (_planar(tone) for tone in TONES[garment.colour])
    colour = main + _pattern(garment.pattern, *pose.grid(rows, cols), pose.scale, rng) * (second - main)
    pocket = np.zeros_like(alpha)
    if garment.accent is not None:
        pocket = _coverage([shape.pocket], pose, rows, cols)
        colour += pocket * (_planar(TONES[garment.accent][0]) - colour)
    ink = _ink(shape, pose, rows, cols, garment.accent is not None)
    colour = _shade(colour, alpha, ink, _folds(shape, pose, rows, cols), dark_cloth=garment.colour == "black")
    return _Layer(rows, cols, alpha, colour, pocket * alpha)


def _planar(tone: tuple[int, int, int]) -> FloatArray:
    return np.array(tone, dtype=np.float32)[:, None, None]


def _window(shape: GarmentShape, pose: _Pose, size: int) -> tuple[slice, slice]:
    points = np.concatenate([pose.pixels(part.outline) for part in shape.parts])
    low = np.clip(np.floor(points.min(axis=0)).astype(int) - 2, 0, size)
    high = np.clip(np.ceil(points.max(axis=0)).astype(int) + 2, 0, size)
    return slice(int(low[1]), int(high[1])), slice(int(low[0]), int(high[0]))


def _sheet(rows: slice, cols: slice, value: int) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    extent = ((cols.stop - cols.start) * SUPERSAMPLING, (rows.stop - rows.start) * SUPERSAMPLING)
    image = Image.new("L", extent, value)
    return image, ImageDraw.Draw(image)


def _on_sheet(pose: _Pose, rows: slice, cols: slice, factor: float) -> _Pose:
    """The same pose in the pixels of a sheet that covers the window at `factor` times the resolution."""
    return _Pose(pose.matrix * factor, (pose.shift - (cols.start, rows.start)) * factor)


def _flat(points: Points, pose: _Pose) -> list[float]:
    flat: list[float] = pose.pixels(points).ravel().tolist()
    return flat


def _to_array(sheet: Image.Image) -> FloatArray:
    return np.asarray(sheet.reduce(SUPERSAMPLING), dtype=np.float32) / 255.0


def _coverage(outlines: Sequence[Points], pose: _Pose, rows: slice, cols: slice) -> FloatArray:
    sheet, pen = _sheet(rows, cols, 0)
    placed = _on_sheet(pose, rows, cols, SUPERSAMPLING)
    for outline in outlines:
        pen.polygon(_flat(outline, placed), fill=255)
    return _to_array(sheet)


def _pattern(kind: str, u: FloatArray, v: FloatArray, scale: float, rng: random.Random) -> FloatArray:
    """Share of the second tone, by garment coordinates; `scale` is in pixels per unit."""
    u = u + np.float32(rng.uniform(0, 0.1))
    v = v + np.float32(rng.uniform(0, 0.1))
    if kind == "striped":
        return _bands(v, 0.078, 0.42, scale)
    if kind == "checked":
        return 0.5 * (_bands(u, 0.096, 0.5, scale) + _bands(v, 0.096, 0.5, scale))
    if kind == "dotted":
        return _dots(u, v, 0.082, 0.0215, scale)
    return np.zeros_like(u)


def _bands(x: FloatArray, period: float, share: float, scale: float) -> FloatArray:
    distance = np.abs((x / period) % 1.0 - 0.5) * period
    return np.clip((share * period / 2 - distance) * scale + 0.5, 0, 1)


def _dots(u: FloatArray, v: FloatArray, period: float, radius: float, scale: float) -> FloatArray:
    height = period * 0.5
    row = np.floor(v / height)
    du = ((u / period + 0.5 * (row % 2)) % 1.0 - 0.5) * period
    dv = (v / height - row - 0.5) * height
    return np.clip((radius - np.hypot(du, dv)) * scale + 0.5, 0, 1)


def _ink(shape: GarmentShape, pose: _Pose, rows: slice, cols: slice, has_pocket: bool) -> FloatArray:
    """Seams and other sharp details: 0 where nothing is, negative for dark ink, positive for light."""
    sheet, pen = _sheet(rows, cols, 128)
    placed = _on_sheet(pose, rows, cols, SUPERSAMPLING)

    def line(points: list[float], tone: int, width: float) -> None:
        pen.line(points, fill=tone, width=max(1, round(width * placed.scale)), joint="curve")

    for part in shape.parts:
        outline = _flat(part.outline, placed)
        pen.polygon(outline, fill=part.tone)
        line([*outline, *outline[:2]], 92, 0.006)
    for stroke in shape.strokes:
        points = _flat(stroke.points, placed)
        if stroke.filled:
            pen.polygon(points, fill=stroke.tone)
        else:
            line(points, stroke.tone, stroke.width)
    if has_pocket:
        pocket = _flat(shape.pocket, placed)
        pen.polygon(pocket, fill=128)
        line([*pocket, *pocket[:2]], 70, 0.007)
    return 2.0 * _to_array(sheet) - np.float32(256 / 255)


def _folds(shape: GarmentShape, pose: _Pose, rows: slice, cols: slice) -> FloatArray:
    """Soft folds, on the scale of `_ink`."""
    extent = (cols.stop - cols.start, rows.stop - rows.start)
    sheet = Image.new("L", (extent[0] // 4 + 1, extent[1] // 4 + 1), 128)
    pen = ImageDraw.Draw(sheet)
    placed = _on_sheet(pose, rows, cols, 0.25)
    for fold in shape.folds:
        pen.line(_flat(fold.points, placed), fill=fold.tone, width=max(1, round(0.03 * placed.scale)))
    return _soft(sheet, 0.02 * placed.scale, extent) * 2.0 - np.float32(256 / 255)


def _soft(sheet: Image.Image, radius: float, extent: tuple[int, int]) -> FloatArray:
    """Blur a small sheet and enlarge it to `extent`, values 0 to 1."""
    blurred = sheet.filter(ImageFilter.GaussianBlur(radius)).resize(extent, Image.Resampling.BILINEAR)
    return np.asarray(blurred, dtype=np.float32) / 255.0


def _shade(colour: FloatArray, alpha: FloatArray, ink: FloatArray, soft: FloatArray, *, dark_cloth: bool) -> FloatArray:
    """Apply ink and folds, and darken towards the edges as round bodies do."""
    small = Image.fromarray((alpha * 255).astype(np.uint8)).reduce(4)
    body = _soft(small, 2.5, (alpha.shape[1], alpha.shape[0]))
    shaded: FloatArray = colour * ((0.80 + 0.22 * body) * (1.0 + 0.7 * soft))
    if dark_cloth:
        # Dark ink would not show on black: it is drawn light.
        lifted = np.abs(ink) * np.float32(0.55)
        return shaded + lifted * (150.0 - shaded)
    return shaded * (1.0 - 0.85 * np.maximum(-ink, 0)) + np.maximum(ink, 0) * (255.0 - shaded)


def _cast_shadow(canvas: FloatArray, layers: Sequence[_Layer], size: int) -> None:
    union = np.zeros((size, size), dtype=np.uint8)
    for layer in layers:
        window = union[layer.rows, layer.cols]
        np.maximum(window, (layer.alpha * 255).astype(np.uint8), out=window)
    shadow = _soft(Image.fromarray(union).reduce(4), size / 90, (size, size))
    shift = round(size * 0.022)
    canvas[:, shift:, shift:] *= 1.0 - 0.45 * shadow[:-shift, :-shift]


def _compose(canvas: FloatArray, masks: NDArray[np.uint8], layer: _Layer, index: int) -> None:
    window = canvas[:, layer.rows, layer.cols]
    window += layer.alpha * (layer.colour - window)
    labels = masks[layer.rows, layer.cols]
    labels[layer.alpha >= 0.5] = 1 + 2 * index
    labels[layer.pocket >= 0.5] = 2 + 2 * index


def _photograph(canvas: FloatArray, rng: random.Random, size: int) -> Image.Image:
    """Light, sensor noise and a little blur."""
    ramp = np.linspace(-1, 1, size, dtype=np.float32)
    across, down = (np.float32(rng.uniform(-0.06, 0.06)) * ramp for _ in range(2))
    canvas *= np.float32(rng.uniform(0.92, 1.06)) + across + down[:, None]
    warmth = rng.uniform(-0.03, 0.03)
    canvas[0] *= 1 + warmth
    canvas[2] *= 1 - warmth
    canvas += _noise(rng.uniform(1.0, 4.0), rng, size)
    pixels = np.clip(canvas, 0, 255, out=canvas).astype(np.uint8)
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    blur = rng.uniform(-0.6, 0.7)
    return image.filter(ImageFilter.GaussianBlur(blur * size / 256)) if blur > 0.2 else image


_NOISE = np.random.default_rng(0).standard_normal((NOISE_TILE, NOISE_TILE), dtype=np.float32)


def _noise(strength: float, rng: random.Random, size: int) -> FloatArray:
    tile = np.roll(_NOISE, (rng.randrange(NOISE_TILE), rng.randrange(NOISE_TILE)), axis=(0, 1)) * np.float32(strength)
    repeats = -(-size // NOISE_TILE)
    return np.tile(tile, (repeats, repeats))[:size, :size]
