# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Which tokens of which image were kept, as arrays of the image's shape."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radical_haystack.vlm import PruningTrace, Ranking

TokenMask: TypeAlias = NDArray[np.bool_]
"""One candidate's token grid, shape `(rows, columns)`; true where the token was kept."""

Pixels: TypeAlias = NDArray[np.uint8]

_LONG_SIDE = 448
_MAX_PIXELS_PER_TOKEN = 28
_VEIL = (46.0, 0.30)
"""What dropped tokens fade to: a grey level, and the share of the image's own brightness that is left [choice]."""


def masks_from_indices(kept: Iterable[int], grids: Sequence[tuple[int, int]]) -> list[TokenMask]:
    """
    Masks from kept token indices alone, wherever they come from.

    :param kept: Indices into the tokens of all candidates, which follow each other row by row, candidate by candidate.
    :param grids: Rows and columns of each candidate's tokens.
    :returns: One mask per candidate.
    :raises ValueError: If an index lies outside.
    """
    sizes = [rows * columns for rows, columns in grids]
    flat = np.zeros(sum(sizes), dtype=np.bool_)
    indices = np.fromiter((int(index) for index in kept), dtype=np.int64)
    if indices.size and not 0 <= indices.min() <= indices.max() < flat.size:
        raise ValueError(f"Kept token indices must be in 0..{flat.size - 1}, got {indices.min()}..{indices.max()}.")
    flat[indices] = True
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return [part.reshape(grid) for part, grid in zip(parts, grids, strict=True)]


def token_masks(ranking: Ranking, after_layer: int | None = None) -> list[TokenMask]:
    """
    Which tokens of each candidate were kept, in the last pass it was in.

    :param ranking: The ranking; with sliding windows a candidate may have been in several passes.
    :param after_layer: The state after this decoder layer (0-based, -1: the decoder's input); default: at the end.
    :returns: One mask per candidate, as the candidates were given. Of a method that resizes images the grids are those
        of the smaller images.
    :raises ValueError: If the ranking's traces do not tell their token grids.
    """
    masks: dict[int, TokenMask] = {}
    for trace in ranking.traces:
        kept = masks_from_indices(_kept(trace, after_layer), trace.grids)
        masks |= dict(zip(trace.members, kept, strict=True))
    return [masks[candidate] for candidate in range(len(ranking.order))]


def pruning_layers(ranking: Ranking) -> list[int]:
    """
    The decoder layers after which tokens left, ascending; -1 stands for the decoder's input.

    :param ranking: The ranking.
    """
    stages = [stage for trace in ranking.traces for stage in trace.stages]
    return sorted({stage.layer for stage in stages if len(stage.kept) < stage.before})


def dimmed(image: Image.Image, mask: TokenMask) -> Pixels:
    """
    Draw an image as the model's token grid sees it, with the dropped tokens dimmed and grey.

    Every token is a square of the same number of pixels, and a kept token's pixels are the image's own.

    :param image: The image.
    :param mask: Its kept tokens, shape `(rows, columns)`.
    :returns: RGB, uint8, shape `(rows * p, columns * p, 3)`.
    """
    rows, columns = mask.shape
    # About as many pixels as a token stands for, so that an image the model saw reduced looks reduced.
    side = max(4, min(_MAX_PIXELS_PER_TOKEN, round(_LONG_SIDE / max(rows, columns))))
    size = (columns * side, rows * side)
    resized = image.convert("RGB").resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    pixels = np.asarray(resized)
    level, own = _VEIL
    grey = np.asarray(resized.convert("L"), dtype=np.float64)[..., None]
    veiled = (own * grey + (1 - own) * level).round().astype(np.uint8)
    stays = mask.repeat(side, axis=0).repeat(side, axis=1)[..., None]
    drawn: Pixels = np.where(stays, pixels, veiled)
    return drawn


def _kept(trace: PruningTrace, after_layer: int | None) -> list[int]:
    if after_layer is None:
        return list(trace.kept.tolist())
    stages = [stage for stage in trace.stages if stage.layer <= after_layer]
    return list(stages[-1].kept.tolist()) if stages else list(range(trace.candidate_index.numel()))
