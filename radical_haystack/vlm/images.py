# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Making any image one that the vision encoder's processor takes, and one of fewer visual tokens."""

import math
from collections.abc import Sequence

from PIL import Image

_MAX_ASPECT = 200
"""Qwen's image processor refuses longer strips."""

_ASPECT_WEIGHT = 0.25
"""What a relative change of an image's aspect ratio counts, beside the same relative miss of the wanted tokens."""


def fit_for_encoder(image: Image.Image, factor: int) -> Image.Image:
    """
    Enlarge an image that is too thin or too small for the encoder; all others pass unchanged.

    A strip longer than 200:1 is made thicker, then an image with a side below `factor` is enlarged as a whole: some
    processors fail on such images or make nothing of them.

    :param image: Any mode; the result is RGB.
    :param factor: Pixels per visual token along one side (patch size times merge size).
    :raises ValueError: If the image has no pixels.
    """
    width, height = image.size
    if not width or not height:
        raise ValueError(f"The image has no pixels ({width} x {height}).")
    thinnest = math.ceil(max(width, height) / _MAX_ASPECT)
    width, height = max(width, thinnest), max(height, thinnest)
    scale = max(1.0, factor / min(width, height))
    size = (math.ceil(width * scale), math.ceil(height * scale))
    rgb = image if image.mode == "RGB" else image.convert("RGB")
    return rgb if size == image.size else rgb.resize(size, Image.Resampling.BICUBIC)


def smaller_grids(grids: Sequence[tuple[int, int]], tokens: Sequence[float]) -> list[tuple[int, int]]:
    """
    Grids of visual tokens for smaller images, each close to the wanted number of tokens and to the image's own shape.

    Processors round both sides down and so miss the number by up to a third. Here a grid may be above it as well as
    below, and what an image misses is made up for by the next one, so that the total is met however small the images
    are [choice]. An image has at least one token, and stays as it is if it shall not have fewer.

    :param grids: Rows and columns of each image's own grid.
    :param tokens: Wanted tokens of each image, positive.
    :returns: Rows and columns of each image, at most its own.
    """
    chosen, carried = [], 0.0
    for (rows, columns), wanted in zip(grids, tokens, strict=True):
        grid = (rows, columns)
        if wanted < rows * columns:
            grid = _closest_grid(rows, columns, max(wanted + carried, 0.5))
            carried += wanted - grid[0] * grid[1]
        chosen.append(grid)
    return chosen


def _closest_grid(rows: int, columns: int, tokens: float) -> tuple[int, int]:
    """The grid within `rows` x `columns` that trades a miss of the wanted tokens best against a change of shape."""
    costs = []
    for height in range(1, rows + 1):
        for width in {math.floor(tokens / height), math.ceil(tokens / height)}:
            width = min(max(width, 1), columns)
            miss = abs(math.log(height * width / tokens))
            stretch = abs(math.log(height * columns / (width * rows)))
            costs.append((miss + _ASPECT_WEIGHT * stretch, height, width))
    _, height, width = min(costs)
    return height, width
