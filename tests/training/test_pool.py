# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Families of training outfits: distinct, of the train world, hard where the benchmark is."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radical_haystack.catalog import FIELDS, Outfit, world_of
from training.pool import FAMILY_SIZE, HUBS, crossed, family_outfits, look_alikes, paired

SEEDS = st.integers(min_value=0, max_value=2**32)


def distance(first: Outfit, second: Outfit) -> int:
    pairs = zip(first.garments, second.garments, strict=True)
    return sum(getattr(a, field) != getattr(b, field) for a, b in pairs for field in FIELDS)


@pytest.mark.parametrize("kind", [paired, crossed, look_alikes])
@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_members_are_distinct_and_of_the_train_world(kind, seed):
    members = kind(random.Random(seed), FAMILY_SIZE)
    assert len(members) == len(set(members)) == FAMILY_SIZE
    assert {world_of(outfit) for outfit in members} == {"train"}
    assert len({tuple(garment.slot for garment in outfit.garments) for outfit in members}) == 1


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_a_pair_is_one_to_three_values_apart_and_both_have_close_neighbours(seed):
    members = paired(random.Random(seed), FAMILY_SIZE)
    first, second = members[:HUBS]
    assert 1 <= distance(first, second) <= 3
    for hub in (first, second):
        assert sum(distance(hub, other) == 1 for other in members) >= 2


def test_families_follow_from_their_seed():
    assert family_outfits("a/0/1") == family_outfits("a/0/1") != family_outfits("a/0/2")
