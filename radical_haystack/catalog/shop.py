# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Backgrounds and loud, order-neutral distractors: one look per shop, so that candidates share them."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

FloatArray = NDArray[np.float32]
Colour = tuple[int, int, int]

LOUD: tuple[Colour, ...] = (
    (232, 30, 60), (255, 120, 20), (255, 214, 20), (30, 170, 90), (20, 120, 230), (140, 50, 200), (240, 60, 150),
    (20, 190, 200), (30, 30, 36),
)  # fmt: skip
WORDS = ("SALE", "NEW", "HOT", "TOP", "SALE %", "NEW IN", "DEAL", "BEST", "-50%", "WOW")
# Middles of the sticker places, in units of the image side: corners and edges, where garments seldom reach.
PLACES = ((0.1, 0.11), (0.9, 0.11), (0.1, 0.88), (0.9, 0.88), (0.08, 0.62), (0.92, 0.62), (0.09, 0.36), (0.91, 0.36))


@dataclass(frozen=True)
class _Shop:
    background: Image.Image
    banner: Image.Image
    banner_at_top: bool
    stickers: tuple[Image.Image, ...]
    places: tuple[tuple[float, float], ...]
    frame: Colour | None


def shop_canvas(shop_seed: int, rng: random.Random, size: int) -> FloatArray:
    """
    Draw what one shot shows of a shop, before any garment.

    :param shop_seed: The shop.
    :param rng: Randomness of the shot: jitter of the distractors.
    :param size: Side in pixels.
    :returns: Shape `(3, size, size)`, float32, 0 to 255, a fresh array.
    """
    shop = _shop(shop_seed, size)
    left, upper = (rng.randint(0, shop.background.width - size) for _ in range(2))
    image = shop.background.crop((left, upper, left + size, upper + size))
    for sticker, place in zip(shop.stickers, shop.places, strict=True):
        _paste(image, sticker.rotate(rng.uniform(-15, 15), Image.Resampling.BILINEAR, expand=True), place, rng)
    _paste(image, shop.banner, (0.5, 0.045 if shop.banner_at_top else 0.955), rng)
    if shop.frame is not None:
        edge = size - 1
        ImageDraw.Draw(image).rectangle((0, 0, edge, edge), outline=shop.frame, width=max(2, size // 64))
    return np.asarray(image).transpose(2, 0, 1).astype(np.float32)


def _paste(image: Image.Image, sprite: Image.Image, place: tuple[float, float], rng: random.Random) -> None:
    jitter = 0.025
    x = (place[0] + rng.uniform(-jitter, jitter)) * image.width - sprite.width / 2
    y = (place[1] + rng.uniform(-jitter / 2, jitter / 2)) * image.height - sprite.height / 2
    image.paste(sprite, (round(x), round(y)), sprite)


@lru_cache(maxsize=64)
def _shop(seed: int, size: int) -> _Shop:
    rng = random.Random(f"shop/{seed}")
    background = _background(rng, size)
    colours = rng.sample(LOUD, 3)
    word = rng.choice(WORDS)
    banner = _banner(word, colours[0], rng.choice((0.5, 0.7, 1.06)), size)
    kind = rng.choice(list(_STICKERS))
    count = rng.randint(2, 5)
    stickers = tuple(_sticker(kind, colours[1 + i % 2], rng, size) for i in range(count))
    at_top = rng.random() < 0.5
    frame = rng.choice(LOUD) if rng.random() < 0.3 else None
    return _Shop(background, banner, at_top, stickers, tuple(rng.sample(PLACES, count)), frame)


def _background(rng: random.Random, size: int) -> Image.Image:
    """A little larger than a shot, which shows a part of it. Computed at half the resolution: it is out of focus."""
    half = round(size * 0.56)
    noise = np.random.default_rng(rng.getrandbits(32))
    grey = rng.uniform(185, 230)
    base = np.array([grey + rng.uniform(-28, 22) for _ in range(3)], dtype=np.float32)
    other = base + np.array([rng.uniform(-45, 12) for _ in range(3)], dtype=np.float32)
    steps = np.linspace(0, 1, half, dtype=np.float32)
    x, y = np.meshgrid(steps, steps)
    weight = np.clip(rng.choice(_WEIGHTS)(x, y, rng, noise), 0, 1)
    canvas = np.clip(base + weight[..., None] * (other - base), 0, 255).astype(np.uint8)
    return Image.fromarray(canvas).resize((2 * half, 2 * half), Image.Resampling.BILINEAR)


def _linear(x: FloatArray, y: FloatArray, rng: random.Random, noise: np.random.Generator) -> FloatArray:
    angle = rng.uniform(0, math.tau)
    return 0.5 + (x - 0.5) * math.cos(angle) + (y - 0.5) * math.sin(angle)


def _radial(x: FloatArray, y: FloatArray, rng: random.Random, noise: np.random.Generator) -> FloatArray:
    return np.hypot(x - rng.uniform(0.3, 0.7), y - rng.uniform(0.3, 0.7)) * 1.4


def _planks(x: FloatArray, y: FloatArray, rng: random.Random, noise: np.random.Generator) -> FloatArray:
    count = rng.randint(4, 7)
    along, across = (x, y) if rng.random() < 0.5 else (y, x)
    tones = noise.random(count + 1, dtype=np.float32)[np.minimum((across * count).astype(int), count)]
    waves = 0.12 * np.sin(along * 40 + 9 * tones + 3 * np.sin(across * 60))
    gap = np.abs((across * count) % 1.0 - 0.5) > 0.475
    return np.where(gap, 1.0, 0.55 * tones + waves + 0.1).astype(np.float32)


def _floor(x: FloatArray, y: FloatArray, rng: random.Random, noise: np.random.Generator) -> FloatArray:
    edge = rng.uniform(0.6, 0.8)
    return np.where(y > edge, 0.75 + (y - edge), 0.15 * y).astype(np.float32)


def _tiles(x: FloatArray, y: FloatArray, rng: random.Random, noise: np.random.Generator) -> FloatArray:
    count = rng.randint(4, 7)
    u, v = np.abs((x * count) % 1.0 - 0.5), np.abs((y * count) % 1.0 - 0.5)
    return np.where(np.maximum(u, v) > 0.46, 1.0, 0.25 * x + 0.2 * y).astype(np.float32)


def _cloth(x: FloatArray, y: FloatArray, rng: random.Random, noise: np.random.Generator) -> FloatArray:
    tilt = rng.uniform(-2, 2)
    return 0.5 + 0.3 * np.sin(9 * x + tilt * 3 * y + 1.5 * np.sin(5 * y)) + 0.12 * np.sin(110 * x) * np.sin(110 * y)


def _speckle(x: FloatArray, y: FloatArray, rng: random.Random, noise: np.random.Generator) -> FloatArray:
    coarse = noise.random((24, 24), dtype=np.float32)
    image = Image.fromarray((coarse * 255).astype(np.uint8)).resize((x.shape[1], x.shape[0]), Image.Resampling.BICUBIC)
    return np.asarray(image, dtype=np.float32) / 255.0


_WEIGHTS = (_linear, _radial, _planks, _floor, _tiles, _cloth, _speckle)


@lru_cache(maxsize=16)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _ink_on(colour: Colour) -> Colour:
    return (255, 255, 255) if 0.3 * colour[0] + 0.6 * colour[1] + 0.1 * colour[2] < 150 else (30, 30, 36)


def _banner(word: str, colour: Colour, width: float, size: int) -> Image.Image:
    scale = 2
    extent = (round(width * size * scale), round(0.085 * size * scale))
    sprite = Image.new("RGBA", extent, (*colour, 255))
    pen = ImageDraw.Draw(sprite)
    font = _font(round(0.062 * size * scale))
    text = "   ".join([word] * max(1, round(width / 0.3)))
    pen.text((extent[0] / 2, extent[1] / 2), text, font=font, fill=_ink_on(colour), anchor="mm")
    return sprite.reduce(scale)


def _sticker(kind: str, colour: Colour, rng: random.Random, size: int) -> Image.Image:
    scale = 2
    side = round(rng.uniform(0.13, 0.18) * size * scale)
    sprite = Image.new("RGBA", (side, side), (*colour, 0))
    _STICKERS[kind](ImageDraw.Draw(sprite), side, colour, rng)
    return sprite.reduce(scale)


def _star(pen: ImageDraw.ImageDraw, side: int, colour: Colour, rng: random.Random) -> None:
    pen.polygon(_spikes(side, 5, 0.45), fill=colour)


def _burst(pen: ImageDraw.ImageDraw, side: int, colour: Colour, rng: random.Random) -> None:
    pen.polygon(_spikes(side, 14, 0.82), fill=colour)
    pen.text((side / 2, side / 2), "%", font=_font(round(side * 0.5)), fill=_ink_on(colour), anchor="mm")


def _spikes(side: int, count: int, inner: float) -> list[tuple[float, float]]:
    radii = [side * 0.48 * (1.0 if i % 2 == 0 else inner) for i in range(2 * count)]
    angles = [math.pi * i / count - math.pi / 2 for i in range(2 * count)]
    return [(side / 2 + r * math.cos(a), side / 2 + r * math.sin(a)) for r, a in zip(radii, angles, strict=True)]


def _disc(pen: ImageDraw.ImageDraw, side: int, colour: Colour, rng: random.Random) -> None:
    edge = side - 1
    pen.ellipse((1, 1, edge - 1, edge - 1), fill=colour)
    inset = side * 0.09
    pen.ellipse((inset, inset, edge - inset, edge - inset), outline=_ink_on(colour), width=max(1, side // 32))
    pen.text((side / 2, side / 2), "SALE", font=_font(round(side * 0.27)), fill=_ink_on(colour), anchor="mm")


def _tag(pen: ImageDraw.ImageDraw, side: int, colour: Colour, rng: random.Random) -> None:
    low, high = side * 0.2, side * 0.8
    outline = [(0, side / 2), (side * 0.28, low), (side - 1, low), (side - 1, high), (side * 0.28, high)]
    pen.polygon(outline, fill=colour)
    hole = side * 0.05
    pen.ellipse((side * 0.2 - hole, side / 2 - hole, side * 0.2 + hole, side / 2 + hole), fill=(255, 255, 255))
    text = f"{rng.randint(9, 99)}.-"
    pen.text((side * 0.62, side / 2), text, font=_font(round(side * 0.3)), fill=_ink_on(colour), anchor="mm")


def _confetti(pen: ImageDraw.ImageDraw, side: int, colour: Colour, rng: random.Random) -> None:
    for _ in range(14):
        x, y, r = rng.uniform(0.08, 0.92) * side, rng.uniform(0.08, 0.92) * side, side * rng.uniform(0.03, 0.07)
        pen.ellipse((x - r, y - r, x + r, y + r), fill=rng.choice(LOUD) if rng.random() < 0.4 else colour)


def _heart(pen: ImageDraw.ImageDraw, side: int, colour: Colour, rng: random.Random) -> None:
    t = np.linspace(0, math.tau, 40, endpoint=False)
    x = 16 * np.sin(t) ** 3
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    points = np.stack([side / 2 + x * side / 36, side * 0.47 - y * side / 36], axis=1)
    pen.polygon([(a, b) for a, b in points.tolist()], fill=colour)


_STICKERS: dict[str, Callable[[ImageDraw.ImageDraw, int, Colour, random.Random], None]] = {
    "star": _star,
    "burst": _burst,
    "disc": _disc,
    "tag": _tag,
    "confetti": _confetti,
    "heart": _heart,
}
