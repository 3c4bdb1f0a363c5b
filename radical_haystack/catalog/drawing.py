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
    "yellow": ((250, 212, 40), (172, 136, 12)),
    "green": ((44, 150, 72), (176, 230, 176)),
    "blue": ((40, 96, 208), (170, 204, 252)),
    "purple": ((130, 62, 172), (218, 184, 242)),
    "black": ((42, 42, 48), (132, 132, 140)),
    "white": ((246, 246, 246), (176, 180, 188)),
}
SUPERSAMPLING = 2
NOISE_TILE = 64


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

    def pixels(self, points: Points) -> Points:
        return points @ self.matrix.T + self.shift

    def grid(self, rows: slice, cols: slice) -> tuple[FloatArray, FloatArray]:
        """Garment coordinates of the pixel centres of a window."""
        inverse = np.linalg.inv(self.matrix)
        x = np.arange(cols.start, cols.stop)[None, :] + 0.5 - self.shift[0]
        y = np.arange(rows.start, rows.stop)[:, None] + 0.5 - self.shift[1]
        u = (inverse[0, 0] * x + inverse[0, 1] * y).astype(np.float32)
        v = (inverse[1, 0] * x + inverse[1, 1] * y).astype(np.float32)
        return u, v


@dataclass(frozen=True)
class _Layer:
    """A garment ready to be composed: window, opacity, colour and label of its pixels."""

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
    scale = rng.uniform(0.85, 1.1)
    angle = rng.uniform(-8, 8)
    room = 0.05 * (1.15 - scale) / 0.3
    centre = (0.5 + rng.uniform(-room, room), 0.5 + rng.uniform(-room, room))
    if len(outfit.garments) == 1:
        offset, zoom = _SINGLE_PLACE[outfit.garments[0].slot, outfit.garments[0].length]
        return [_pose(scale * zoom, angle, centre, (0.0, offset), size)]
    # A flat lay leaves the two garments a little apart and askew, a mannequin does not.
    loose = rng.random() < 0.5
    tilts = [rng.uniform(-4, 4) * loose for _ in range(2)]
    gap = rng.uniform(0.0, 0.025) * loose
    offsets = ((0.0, -0.4 - gap / 2), (rng.uniform(-0.02, 0.02) * loose, -0.035 + gap / 2))
    return [_pose(scale, angle + tilt, centre, offset, size) for tilt, offset in zip(tilts, offsets, strict=True)]


# Where a garment that is alone hangs (its neck or waist, from the centre) and how much larger it is drawn.
_SINGLE_PLACE = {
    ("top", "short"): (-0.19, 1.4),
    ("top", "long"): (-0.19, 1.4),
    ("bottom", "short"): (-0.13, 1.45),
    ("bottom", "long"): (-0.21, 1.4),
    ("dress", "short"): (-0.32, 1.1),
    ("dress", "long"): (-0.39, 1.05),
}


def _pose(
    scale: float, angle: float, centre: tuple[float, float], offset: tuple[float, float], size: int
) -> _Pose:
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    matrix = scale * size * np.array([[cos, -sin], [sin, cos]])
    return _Pose(matrix, size * np.array(centre) + matrix @ np.array(offset))


def _layer(garment: Garment, pose: _Pose, rng: random.Random, size: int) -> _Layer:
    shape = shape_of(garment.kind, garment.length)
    rows, cols = _window(shape, pose, size)
    alpha = _coverage([pose.pixels(part.outline) for part in shape.parts], rows, cols)
    pattern = _pattern(garment.pattern, *pose.grid(rows, cols), size, rng)
    main, second = (np.array(tone, dtype=np.float32) for tone in TONES[garment.colour])
    colour = main + pattern[..., None] * (second - main)
    pocket = np.zeros_like(alpha)
    if garment.accent is not None:
        pocket = _coverage([pose.pixels(shape.pocket)], rows, cols)
        colour += pocket[..., None] * (np.array(TONES[garment.accent][0], dtype=np.float32) - colour)
    ink, soft = _lines(shape, pose, rows, cols, garment.accent is not None)
    colour = _shade(colour, alpha, ink, soft, main)
    return _Layer(rows, cols, alpha, colour, pocket * alpha)


def _window(shape: GarmentShape, pose: _Pose, size: int) -> tuple[slice, slice]:
    points = np.concatenate([pose.pixels(part.outline) for part in shape.parts])
    low = np.clip(np.floor(points.min(axis=0)).astype(int) - 2, 0, size)
    high = np.clip(np.ceil(points.max(axis=0)).astype(int) + 2, 0, size)
    return slice(int(low[1]), int(high[1])), slice(int(low[0]), int(high[0]))


def _sheet(rows: slice, cols: slice, value: int) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    extent = ((cols.stop - cols.start) * SUPERSAMPLING, (rows.stop - rows.start) * SUPERSAMPLING)
    image = Image.new("L", extent, value)
    return image, ImageDraw.Draw(image)


def _on_sheet(points: Points, rows: slice, cols: slice) -> list[tuple[float, float]]:
    moved = (points - (cols.start, rows.start)) * SUPERSAMPLING
    return [(x, y) for x, y in moved.tolist()]


def _to_array(sheet: Image.Image) -> FloatArray:
    return np.asarray(sheet.reduce(SUPERSAMPLING), dtype=np.float32) / 255.0


def _coverage(outlines: Sequence[Points], rows: slice, cols: slice) -> FloatArray:
    sheet, pen = _sheet(rows, cols, 0)
    for outline in outlines:
        pen.polygon(_on_sheet(outline, rows, cols), fill=255)
    return _to_array(sheet)


def _pattern(kind: str, u: FloatArray, v: FloatArray, size: int, rng: random.Random) -> FloatArray:
    """Share of the second tone, by garment coordinates."""
    u = u + np.float32(rng.uniform(0, 0.1))
    v = v + np.float32(rng.uniform(0, 0.1))
    if kind == "striped":
        return _bands(v, 0.078, 0.42, size)
    if kind == "checked":
        return 0.5 * (_bands(u, 0.096, 0.5, size) + _bands(v, 0.096, 0.5, size))
    if kind == "dotted":
        return _dots(u, v, 0.082, 0.0215, size)
    return np.zeros_like(u)


def _bands(x: FloatArray, period: float, share: float, size: int) -> FloatArray:
    distance = np.abs((x / period) % 1.0 - 0.5) * period
    return np.clip((share * period / 2 - distance) * size + 0.5, 0, 1)


def _dots(u: FloatArray, v: FloatArray, period: float, radius: float, size: int) -> FloatArray:
    height = period * 0.5
    row = np.floor(v / height)
    du = ((u / period + 0.5 * (row % 2)) % 1.0 - 0.5) * period
    dv = (v / height - row - 0.5) * height
    return np.clip((radius - np.hypot(du, dv)) * size + 0.5, 0, 1)


def _lines(
    shape: GarmentShape, pose: _Pose, rows: slice, cols: slice, has_pocket: bool
) -> tuple[FloatArray, FloatArray]:
    """Seams and other sharp ink, and soft folds: both 0.5 where nothing is, lower is darker."""
    sheet, pen = _sheet(rows, cols, 128)
    scale = math.sqrt(abs(np.linalg.det(pose.matrix))) * SUPERSAMPLING
    for part in shape.parts:
        outline = _on_sheet(pose.pixels(part.outline), rows, cols)
        pen.polygon(outline, fill=part.tone)
        pen.line([*outline, outline[0]], fill=92, width=max(1, round(0.006 * scale)), joint="curve")
    for stroke in shape.strokes:
        points = _on_sheet(pose.pixels(stroke.points), rows, cols)
        if stroke.filled:
            pen.polygon(points, fill=stroke.tone)
        else:
            pen.line(points, fill=stroke.tone, width=max(1, round(stroke.width * scale)), joint="curve")
    if has_pocket:
        pocket = _on_sheet(pose.pixels(shape.pocket), rows, cols)
        pen.polygon(pocket, fill=128)
        pen.line([*pocket, pocket[0]], fill=70, width=max(1, round(0.007 * scale)), joint="curve")
    return _to_array(sheet), _folds(shape, pose, rows, cols)


def _folds(shape: GarmentShape, pose: _Pose, rows: slice, cols: slice) -> FloatArray:
    extent = (cols.stop - cols.start, rows.stop - rows.start)
    sheet = Image.new("L", (extent[0] // 4 + 1, extent[1] // 4 + 1), 128)
    pen = ImageDraw.Draw(sheet)
    for fold in shape.folds:
        moved = (pose.pixels(fold.points) - (cols.start, rows.start)) / 4
        pen.line([(x, y) for x, y in moved.tolist()], fill=fold.tone, width=2)
    sheet = sheet.filter(ImageFilter.GaussianBlur(1.2))
    return np.asarray(sheet.resize(extent, Image.Resampling.BILINEAR), dtype=np.float32) / 255.0


def _shade(
    colour: FloatArray, alpha: FloatArray, ink: FloatArray, soft: FloatArray, main: FloatArray
) -> FloatArray:
    """Apply ink and folds, and darken towards the edges as round bodies do."""
    small = Image.fromarray((alpha * 255).astype(np.uint8)).reduce(4).filter(ImageFilter.GaussianBlur(2.5))
    body = np.asarray(small.resize(alpha.shape[::-1], Image.Resampling.BILINEAR), dtype=np.float32) / 255.0
    # Ink is lighter than black cloth and darker than any other.
    dark = float(main.mean()) < 70
    tone = 2.0 * ink - 1.0
    factor = (0.80 + 0.22 * np.clip(body, 0, 1)) * (1.0 + 0.7 * (2.0 * soft - 1.0))
    shaded = colour * factor[..., None]
    strength = np.clip(tone, -1, 1)[..., None]
    if dark:
        lifted = np.abs(strength) * 0.55
        return shaded + lifted * (np.float32(150.0) - shaded)
    down = np.clip(-strength, 0, 1)
    up = np.clip(strength, 0, 1)
    return shaded * (1 - 0.85 * down) + up * (255.0 - shaded)


def _cast_shadow(canvas: FloatArray, layers: Sequence[_Layer], size: int) -> None:
    union = np.zeros((size, size), dtype=np.float32)
    for layer in layers:
        window = union[layer.rows, layer.cols]
        np.maximum(window, layer.alpha, out=window)
    small = Image.fromarray((union * 255).astype(np.uint8)).reduce(4).filter(ImageFilter.GaussianBlur(size / 90))
    shadow = np.asarray(small.resize((size, size), Image.Resampling.BILINEAR), dtype=np.float32) / 255.0
    shift = round(size * 0.022)
    canvas *= 1.0 - 0.45 * np.roll(shadow, (shift, shift), axis=(0, 1))[..., None]


def _compose(canvas: FloatArray, masks: NDArray[np.uint8], layer: _Layer, index: int) -> None:
    window = canvas[layer.rows, layer.cols]
    window += layer.alpha[..., None] * (layer.colour - window)
    labels = masks[layer.rows, layer.cols]
    labels[layer.alpha >= 0.5] = 1 + 2 * index
    labels[layer.pocket >= 0.5] = 2 + 2 * index


def _photograph(canvas: FloatArray, rng: random.Random, size: int) -> Image.Image:
    """Light, sensor noise and a little blur."""
    ramp = np.linspace(-1, 1, size, dtype=np.float32)
    light = rng.uniform(0.92, 1.06) + rng.uniform(-0.06, 0.06) * ramp[None, :] + rng.uniform(-0.06, 0.06) * ramp[:, None]
    warmth = rng.uniform(-0.03, 0.03)
    canvas *= light[..., None] * np.array([1 + warmth, 1.0, 1 - warmth], dtype=np.float32)
    canvas += rng.uniform(1.0, 4.0) * _noise(rng, size)[..., None]
    image = Image.fromarray(np.clip(canvas + 0.5, 0, 255).astype(np.uint8))
    blur = rng.uniform(-0.6, 0.7)
    return image.filter(ImageFilter.GaussianBlur(blur * size / 256)) if blur > 0.2 else image


_NOISE = np.random.default_rng(0).standard_normal((2 * NOISE_TILE, 4 * NOISE_TILE), dtype=np.float32)


def _noise(rng: random.Random, size: int) -> FloatArray:
    tile = np.roll(_NOISE, (rng.randrange(2 * NOISE_TILE), rng.randrange(4 * NOISE_TILE)), axis=(0, 1))
    repeats = (-(-size // tile.shape[0]), -(-size // tile.shape[1]))
    return np.tile(tile, repeats)[:size, :size]
