# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Making any image one that the vision encoder's processor takes."""

import math

from PIL import Image

_MAX_ASPECT = 200
"""Qwen's image processor refuses longer strips."""


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
