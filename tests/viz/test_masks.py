# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Kept tokens as masks: each token lies where the model saw it, in every pass and for every method."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from PIL import Image

from radical_haystack.pruning import PRUNERS
from radical_haystack.viz import dimmed, masks_from_indices, pruning_layers, token_masks
from radical_haystack.vlm import PruningTrace, Ranking
from tests.vlm.conftest import noise, shared_processor

grids = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=5)
masks = npst.arrays(np.bool_, npst.array_shapes(min_dims=2, max_dims=2, max_side=9))


@given(grids, st.randoms())
def test_masks_hold_exactly_the_kept_tokens(grids: list[tuple[int, int]], random: object) -> None:
    total = sum(rows * columns for rows, columns in grids)
    kept = sorted(random.sample(range(total), random.randint(0, total)))
    result = masks_from_indices(torch.tensor(kept, dtype=torch.int64), grids)
    found, start = [], 0
    for (rows, columns), mask in zip(grids, result, strict=True):
        assert mask.shape == (rows, columns)
        found += [start + r * columns + c for r in range(rows) for c in range(columns) if mask[r, c]]
        start += rows * columns
    assert found == kept


@pytest.mark.parametrize("index", [-1, 6])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="0..5"):
        masks_from_indices([index], [(2, 3)])


@given(masks)
def test_a_mask_covers_exactly_its_pixels(mask: np.ndarray) -> None:
    image = noise(50, 40)
    rows, columns = mask.shape
    drawn, whole = dimmed(image, mask), dimmed(image, np.ones_like(mask))
    assert drawn.shape == whole.shape
    side = drawn.shape[0] // rows
    assert drawn.shape == (rows * side, columns * side, 3)
    for r in range(rows):
        for c in range(columns):
            cell = np.s_[r * side : (r + 1) * side, c * side : (c + 1) * side]
            if mask[r, c]:
                assert (drawn[cell] == whole[cell]).all()
            else:
                assert (drawn[cell] == drawn[cell][..., :1]).all()
                assert (drawn[cell] != whole[cell]).any(axis=2).mean() > 0.9


def test_a_whole_mask_leaves_the_image_as_it_is() -> None:
    image = noise(8 * 28, 4 * 28)
    assert (dimmed(image, np.ones((4, 8), dtype=bool)) == np.asarray(image)).all()


def test_dropped_tokens_are_darker_than_white_and_lighter_than_black() -> None:
    none = np.zeros((2, 2), dtype=bool)
    assert dimmed(Image.new("RGB", (64, 64), "white"), none).max() < 128
    assert dimmed(Image.new("RGB", (64, 64), "black"), none).min() > 16


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1"])
def test_images_of_any_mode_are_drawn(mode: str) -> None:
    assert dimmed(noise(40, 40).convert(mode), np.ones((2, 2), dtype=bool)).shape[2] == 3


@given(st.integers(0, 3), st.integers(0, 2))
def test_tokens_are_in_row_major_order(row: int, column: int) -> None:
    """Changing the pixels of one cell of the grid changes the patches of one token: the one of that index."""
    image = noise(48, 64)
    changed = image.copy()
    changed.paste(noise(16, 16, seed=7), (16 * column, 16 * row))
    processor = shared_processor().image_processor
    patches = processor(images=[image, changed], return_tensors="pt")
    before, after = patches["pixel_values"].chunk(2)
    differing = (before != after).any(dim=1).nonzero().flatten()
    trace = PruningTrace(torch.zeros(12, dtype=torch.int64), patch_grids=patches["image_grid_thw"][:1])
    assert trace.grids == ((4, 3),)
    assert set((differing // 4).tolist()) == {row * 3 + column}


@pytest.mark.parametrize("method", sorted(PRUNERS))
def test_every_method_has_masks(rank: Callable[..., Ranking], method: str) -> None:
    ranking = rank(pruner=method, keep_ratio=0.4)
    found = token_masks(ranking)
    assert [int(mask.sum()) for mask in found] == list(ranking.kept_tokens)
    if method == "dense":
        assert [mask.size for mask in found] == list(ranking.total_tokens)
        assert pruning_layers(ranking) == []
    if method in ("qi-ei", "visionzip"):
        assert pruning_layers(ranking) == [-1]
    if method == "lowres":
        assert all(mask.all() for mask in found)
        assert sum(mask.size for mask in found) < sum(ranking.total_tokens)


def test_masks_by_layer_only_lose_tokens(rank: Callable[..., Ranking]) -> None:
    ranking = rank()
    layers = pruning_layers(ranking)
    assert layers == [2, 4]
    (trace,) = ranking.traces
    before = [np.ones(grid, dtype=bool) for grid in trace.grids]
    assert all((a == b).all() for a, b in zip(token_masks(ranking, 1), before, strict=True))
    for layer, stage in zip(layers, trace.stages, strict=True):
        after = token_masks(ranking, layer)
        assert tuple(int(mask.sum()) for mask in after) == stage.kept_per_candidate
        assert all(not (new & ~old).any() for new, old in zip(after, before, strict=True))
        before = after
    assert all((a == b).all() for a, b in zip(token_masks(ranking), before, strict=True))


def test_a_layer_that_drops_nothing_is_no_pruning_layer(rank: Callable[..., Ranking]) -> None:
    ranking = rank(keep_ratio=1.0)
    assert ranking.traces[0].stages
    assert pruning_layers(ranking) == []


def test_with_windows_a_candidate_is_as_in_its_last_pass(rank: Callable[..., Ranking]) -> None:
    ranking = rank(window_size=3, window_step=1)
    assert len(ranking.traces) > 2
    found = token_masks(ranking)
    assert [int(mask.sum()) for mask in found] == list(ranking.kept_tokens)
    for candidate, mask in enumerate(found):
        trace = [trace for trace in ranking.traces if candidate in trace.members][-1]
        mine = (trace.candidate_index == trace.members.index(candidate)).nonzero().flatten().tolist()
        assert [token in trace.kept.tolist() for token in mine] == mask.ravel().tolist()


def test_a_trace_without_grids_says_so() -> None:
    trace = PruningTrace(torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ValueError, match="token grids"):
        _ = trace.grids


def test_grids_that_do_not_fit_are_refused() -> None:
    trace = PruningTrace(torch.zeros(5, dtype=torch.int64), patch_grids=torch.tensor([[1, 4, 4]]))
    with pytest.raises(ValueError, match="5 visual tokens"):
        _ = trace.grids
