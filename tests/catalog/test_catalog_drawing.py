# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Pictures: the same in every process, true to their masks, quick."""

import random
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from radical_haystack.catalog import (
    COLOURS,
    KINDS,
    PATTERNS,
    Garment,
    Outfit,
    Scene,
    draw,
    evidence_tokens,
    sample_outfit,
    token_labels,
)
from radical_haystack.catalog.drawing import TONES

SEEDS = st.integers(min_value=0, max_value=2**32)
FINGERPRINT = """
import hashlib, random
from radical_haystack.catalog import Scene, draw, sample_outfit
rng = random.Random(3)
digest = hashlib.sha256()
for _ in range(6):
    drawing = draw(sample_outfit(rng), Scene(rng.getrandbits(32), rng.getrandbits(32)))
    digest.update(drawing.image.tobytes() + drawing.masks.tobytes())
print(digest.hexdigest())
"""


def mean_colour(drawing, label: int) -> np.ndarray:
    pixels = np.asarray(drawing.image, dtype=np.float64)
    return pixels[drawing.masks == label].mean(axis=0)


def cell_shares(flags: np.ndarray, rows: int, cols: int) -> np.ndarray:
    """Slow reference."""
    height, width = flags.shape
    shares = np.zeros((rows, cols))
    for r in range(rows):
        for c in range(cols):
            top, bottom = round(r * height / rows), round((r + 1) * height / rows)
            left, right = round(c * width / cols), round((c + 1) * width / cols)
            shares[r, c] = flags[top:bottom, left:right].mean()
    return shares


def test_two_processes_draw_the_same():
    runs = [
        subprocess.run(
            [sys.executable, "-c", FINGERPRINT], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert runs[0] == runs[1]


def test_what_was_drawn_before_does_not_matter():
    outfit, scene = sample_outfit(random.Random(0)), Scene(5, 6)
    first = draw(outfit, scene)
    for shot in range(3):
        draw(outfit, Scene(5, shot))
    second = draw(outfit, scene)
    assert first.image.tobytes() == second.image.tobytes()
    np.testing.assert_array_equal(first.masks, second.masks)


@pytest.mark.parametrize("size", [64, 256, 300])
def test_size_and_types(size):
    drawing = draw(sample_outfit(random.Random(0)), Scene(1, 2), size)
    assert drawing.image.mode == "RGB"
    assert drawing.image.size == (size, size)
    assert drawing.masks.shape == (size, size)
    assert drawing.masks.dtype == np.uint8


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_masks_name_the_parts_that_exist(seed):
    rng = random.Random(seed)
    outfit = sample_outfit(rng)
    drawing = draw(outfit, Scene(rng.getrandbits(32), rng.getrandbits(32)))
    expected = {0} | {1 + 2 * i for i in range(len(outfit.garments))}
    expected |= {2 + 2 * i for i, garment in enumerate(outfit.garments) if garment.accent}
    assert set(np.unique(drawing.masks).tolist()) == expected
    for i, garment in enumerate(outfit.garments):
        assert (drawing.masks == 1 + 2 * i).mean() > 0.04
        if garment.accent:
            assert 0.003 < (drawing.masks == 2 + 2 * i).mean() < 0.03


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("kind", [kind for kinds in KINDS.values() for kind in kinds])
def test_pixels_under_the_mask_have_the_garments_colour(kind, colour):
    accent = COLOURS[(COLOURS.index(colour) + 3) % len(COLOURS)]
    for shot in range(3):
        drawing = draw(Outfit((Garment(kind, colour, "plain", "long", accent),)), Scene(shot, shot))
        for label, expected in ((1, colour), (2, accent)):
            distances = {c: np.linalg.norm(mean_colour(drawing, label) - TONES[c][0]) for c in COLOURS}
            assert min(distances, key=distances.get) == expected


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("pattern", [p for p in PATTERNS if p != "plain"])
def test_patterns_show_both_tones_even_at_64_pixels(colour, pattern):
    outfit = Outfit((Garment("shirt", colour, pattern, "long"), Garment("trousers", colour, "plain", "long")))
    drawing = draw(outfit, Scene(3, 4))
    small = np.asarray(drawing.image.resize((64, 64), Image.Resampling.BICUBIC), dtype=np.float64)
    masks = drawing.masks[2::4, 2::4]
    main, second = (np.array(tone, dtype=np.float64) for tone in TONES[colour])
    axis = (second - main) / np.linalg.norm(second - main) ** 2
    spread = [((small[masks == label] - main) @ axis).std() for label in (1, 3)]
    assert spread[0] > 0.15
    assert spread[0] > spread[1]


@pytest.mark.parametrize("kind", [kind for kinds in KINDS.values() for kind in kinds])
def test_lengths_are_visible(kind):
    """Long sleeves hang beside the lower body; long legs and hems make the garment taller. Neither depends on zoom."""
    measure = _low_width if kind in KINDS["top"] else _slimness
    short, long = (
        np.mean([measure(draw(Outfit((Garment(kind, "red", "plain", n),)), Scene(0, shot)).masks) for shot in range(4)])
        for n in ("short", "long")
    )
    assert long > 1.25 * short


def _slimness(masks: np.ndarray) -> float:
    rows, cols = (np.flatnonzero((masks > 0).any(axis=axis)) for axis in (1, 0))
    return (rows[-1] - rows[0]) / (cols[-1] - cols[0])


def _low_width(masks: np.ndarray) -> float:
    rows = np.flatnonzero((masks > 0).any(axis=1))
    height = rows[-1] - rows[0]
    cols = np.flatnonzero((masks[rows[0] + int(0.65 * height) : rows[0] + int(0.8 * height)] > 0).any(axis=0))
    return (cols[-1] - cols[0]) / height


def test_a_shop_shares_its_look_and_shots_differ():
    outfit = Outfit((Garment("shirt", "red", "plain", "short"),))
    same = [np.asarray(draw(outfit, Scene(9, shot)).image, dtype=float)[:, :12].mean(axis=(0, 1)) for shot in range(6)]
    other = [np.asarray(draw(outfit, Scene(s, 0)).image, dtype=float)[:, :12].mean(axis=(0, 1)) for s in range(20, 26)]
    assert np.std(same, axis=0).mean() < np.std(other, axis=0).mean()
    assert draw(outfit, Scene(9, 0)).image.tobytes() != draw(outfit, Scene(9, 1)).image.tobytes()


def test_scenes_do_not_depend_on_the_garments_colours():
    """Distractors are order-neutral: far from the garment, two outfits of the same shape share every pixel."""
    first, second = (
        draw(Outfit((Garment("shirt", c, "plain", "long", "black"),)), Scene(4, 8)) for c in ("red", "blue")
    )
    np.testing.assert_array_equal(first.masks, second.masks)
    corner = np.s_[:20, :20]
    assert (first.masks[corner] == 0).all()
    np.testing.assert_array_equal(np.asarray(first.image)[corner], np.asarray(second.image)[corner])


@given(SEEDS, st.integers(1, 12), st.integers(1, 12), st.floats(0.05, 1.0))
@settings(max_examples=40, deadline=None)
def test_evidence_tokens_match_the_slow_reference(seed, rows, cols, min_cover):
    masks = np.random.default_rng(seed).integers(0, 5, (48, 60)).astype(np.uint8)
    expected = cell_shares(np.isin(masks, [3, 4]), rows, cols)
    clear = np.abs(expected - min_cover) > 1e-9
    found = evidence_tokens(masks, [1], rows, cols, min_cover)
    assert found.shape == (rows, cols)
    np.testing.assert_array_equal(found[clear], (expected >= min_cover)[clear])


def test_evidence_of_no_garment_is_empty_and_of_all_is_everything_drawn():
    rng = random.Random(1)
    drawing = draw(sample_outfit(rng), Scene(1, 1))
    assert not evidence_tokens(drawing.masks, [], 8, 8).any()
    both = evidence_tokens(drawing.masks, [0, 1], 8, 8)
    np.testing.assert_array_equal(both, cell_shares(drawing.masks > 0, 8, 8) >= 0.3)


def test_token_labels_follow_the_majority_but_a_pocket_wins_early():
    masks = np.zeros((8, 8), dtype=np.uint8)
    masks[:4, :4] = 1
    masks[:2, :2] = 2
    masks[:4, 4:] = 3
    masks[:1, 4:7] = 4
    assert token_labels(masks, 2, 2).tolist() == [[2, 3], [0, 0]]


def test_a_pocket_usually_fills_one_to_three_cells():
    rng = random.Random(2)
    counts = Counter()
    for shot in range(40):
        outfit = sample_outfit(rng)
        labels = token_labels(draw(outfit, Scene(0, shot)).masks, 8, 8)
        counts.update(int((labels == 2 + 2 * i).sum()) for i, g in enumerate(outfit.garments) if g.accent)
    assert sum(counts[n] for n in (1, 2, 3)) > 0.85 * sum(counts.values())


def test_drawing_is_quick():
    rng = random.Random(0)
    cases = [(sample_outfit(rng), Scene(i // 20, i)) for i in range(30)]
    rates = []
    for _ in range(3):
        start = time.process_time()
        for outfit, scene in cases:
            draw(outfit, scene)
        rates.append(len(cases) / (time.process_time() - start))
    assert max(rates) > 30  # 2,000 in about a minute, on one core of a slow or busy machine
