# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The world itself: attributes, the two worlds, changes and swaps."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.catalog import FIELDS, Garment, Outfit, mutate, sample_outfit, swap, world_of

SEEDS = st.integers(min_value=0, max_value=2**32)
WORLDS = st.sampled_from(["train", "heldout", None])


def differences(first: Outfit, second: Outfit) -> int:
    pairs = zip(first.garments, second.garments, strict=True)
    return sum(getattr(a, field) != getattr(b, field) for a, b in pairs for field in FIELDS)


def bag(outfit: Outfit) -> Counter:
    """The attribute values without saying which garment or part has them."""
    colours = [value for g in outfit.garments for value in (g.colour, g.accent)]
    return Counter([*colours, *(g.pattern for g in outfit.garments)])


def test_garment_rejects_an_unknown_value():
    with pytest.raises(ValueError, match="Unknown garment pattern 'zigzag'"):
        Garment("shirt", "red", "zigzag", "long")


def test_garment_rejects_a_pocket_in_its_own_colour():
    with pytest.raises(ValueError, match="another colour"):
        Garment("shirt", "red", "plain", "long", "red")


def test_outfit_rejects_a_bottom_above_a_top():
    top, bottom = Garment("shirt", "red", "plain", "long"), Garment("skirt", "blue", "plain", "long")
    Outfit((top, bottom))
    for wrong in ((bottom, top), (top, top), ()):
        with pytest.raises(ValueError, match="single garment or a top and a bottom"):
            Outfit(wrong)


def test_sampling_is_pinned():
    rng = random.Random(7)
    assert [sample_outfit(rng) for _ in range(2)] == [
        Outfit(
            (
                Garment("shirt", "yellow", "plain", "long", "red"),
                Garment("trousers", "red", "plain", "short"),
            )
        ),
        Outfit(
            (
                Garment("jacket", "orange", "plain", "short", "purple"),
                Garment("trousers", "green", "checked", "short", "purple"),
            )
        ),
    ]


def test_worlds_are_pinned():
    outfits = [sample_outfit(random.Random(seed)) for seed in range(40)]
    assert (
        "".join("h" if world_of(outfit) == "heldout" else "t" for outfit in outfits)
        == "tttttttttthttttththtthtttttththhttthtthh"
    )


@given(SEEDS, WORLDS)
def test_sampled_outfits_belong_to_the_world_asked_for(seed, world):
    outfit = sample_outfit(random.Random(seed), world=world)
    assert world in (None, world_of(outfit))


def test_shares_of_the_world():
    rng = random.Random(0)
    outfits = [sample_outfit(rng) for _ in range(4000)]
    garments = [garment for outfit in outfits for garment in outfit.garments]
    assert sum(world_of(outfit) == "heldout" for outfit in outfits) / 4000 == pytest.approx(0.2, abs=0.03)
    assert sum(len(outfit.garments) == 2 for outfit in outfits) / 4000 == pytest.approx(0.7, abs=0.03)
    assert sum(g.accent is not None for g in garments) / len(garments) == pytest.approx(0.65, abs=0.03)


@given(SEEDS, st.integers(1, 4))
def test_mutate_changes_exactly_so_many_attributes(seed, changes):
    rng = random.Random(seed)
    outfit = sample_outfit(rng)
    changed = mutate(outfit, rng, changes)
    assert differences(outfit, changed) == changes
    assert [g.slot for g in changed.garments] == [g.slot for g in outfit.garments]


@given(SEEDS)
def test_mutate_stays_in_the_world(seed):
    rng = random.Random(seed)
    changed = mutate(sample_outfit(rng), rng, 2, world="heldout")
    assert world_of(changed) == "heldout"


@pytest.mark.parametrize("changes", [0, 5])
def test_mutate_rejects_an_impossible_number_of_changes(changes):
    dress = Outfit((Garment("dress", "red", "plain", "long"),))
    with pytest.raises(ValueError, match=f"Cannot change {changes} attributes"):
        mutate(dress, random.Random(0), changes)


@given(SEEDS, WORLDS)
def test_swap_binds_the_same_attributes_elsewhere(seed, world):
    rng = random.Random(seed)
    outfit = sample_outfit(rng)
    swapped = swap(outfit, rng, world=world)
    if swapped is not None:
        assert swapped != outfit
        assert bag(swapped) == bag(outfit)
        assert [g.kind for g in swapped.garments] == [g.kind for g in outfit.garments]
        assert world in (None, world_of(swapped))


def test_swap_finds_nothing_where_everything_is_alike():
    top = Garment("shirt", "red", "plain", "long")
    assert swap(Outfit((top, replace(top, kind="skirt"))), random.Random(0)) is None
    assert swap(Outfit((top,)), random.Random(0)) is None
