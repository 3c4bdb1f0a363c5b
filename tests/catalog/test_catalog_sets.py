# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Candidate sets: one full match, hard negatives, the right world, the same for everyone."""

import hashlib
import random
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radical_haystack.catalog import (
    FIELDS,
    Garment,
    Outfit,
    benchmark_composed,
    benchmark_text,
    describe,
    family,
    hard_set,
    modification,
    mutate,
    sample_outfit,
    swap,
    world_of,
)

SEEDS = st.integers(min_value=0, max_value=2**32)


def differences(first: Outfit, second: Outfit) -> int:
    pairs = zip(first.garments, second.garments, strict=True)
    return sum(getattr(a, field) != getattr(b, field) for a, b in pairs for field in FIELDS)


def composed_case(seed: int):
    rng = random.Random(seed)
    while True:
        reference = sample_outfit(rng, world="train")
        target = mutate(reference, rng, rng.choice((1, 2, 3)))
        if world_of(target) == "train":
            return reference, target, modification(reference, target, rng), rng


@given(SEEDS, st.booleans(), st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_text_sets_have_exactly_one_match(seed, full, n):
    rng = random.Random(seed)
    target = sample_outfit(rng, world="train")
    query = describe(target, rng, full=full)
    outfits, index = hard_set(target, query, rng, n, world="train")
    assert len(outfits) == len(set(outfits)) == n
    assert outfits[index] == target
    assert [query.matches(outfit) for outfit in outfits] == [i == index for i in range(n)]
    assert all(world_of(outfit) == "train" for outfit in outfits)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_composed_sets_have_exactly_one_match_and_the_reference(seed):
    reference, target, change, rng = composed_case(seed)
    outfits, index = hard_set(target, change, rng, 20, world="train", reference=reference)
    assert len(set(outfits)) == 20
    assert outfits[index] == target
    assert [change.matches(outfit) for outfit in outfits] == [i == index for i in range(20)]
    assert reference in outfits


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_most_negatives_nearly_match(seed):
    rng = random.Random(seed)
    target = sample_outfit(rng, world="train")
    query = describe(target, rng)
    outfits, index = hard_set(target, query, rng, 20, world="train")
    close = [query.max_relevance - query.relevance(outfit) <= 3 for outfit in outfits]
    assert sum(close) >= 14
    assert query.relevance(outfits[index]) == max(query.relevance(outfit) for outfit in outfits)


def test_sets_hold_binding_negatives():
    top = Garment("shirt", "red", "plain", "long", "yellow")
    target = Outfit((top, Garment("skirt", "blue", "striped", "long", "green")))
    rng = random.Random(0)
    swaps = {swap(target, rng) for _ in range(200)}
    sets = [hard_set(target, describe(target, rng), rng)[0] for _ in range(10)]
    assert all(len(swaps & set(outfits)) >= 1 for outfits in sets)


def test_the_target_is_anywhere():
    places = {item.target_index for item in benchmark_text(5, 60, 5)}
    assert places == set(range(5))


def test_hard_set_rejects_a_target_that_does_not_match():
    rng = random.Random(0)
    query = describe(Outfit((Garment("dress", "red", "plain", "long"),)), rng)
    with pytest.raises(ValueError, match="does not match"):
        hard_set(Outfit((Garment("dress", "blue", "plain", "long"),)), query, rng)


def test_a_world_that_is_too_small_is_an_error(monkeypatch):
    monkeypatch.setattr("radical_haystack.catalog.sets.ATTEMPTS_PER_OUTFIT", 4)  # giving up early saves time
    rng = random.Random(0)
    target = Outfit((Garment("dress", "red", "plain", "long"),))
    with pytest.raises(ValueError, match=r"Found only \d+ of 149 look-alikes in the heldout world"):
        hard_set(target, describe(target, rng), rng, 150, world="heldout")


@given(SEEDS, st.sampled_from(["train", "heldout", None]))
@settings(max_examples=25, deadline=None)
def test_families_are_distinct_and_connected(seed, world):
    members = family(random.Random(seed), 24, world)
    assert len(set(members)) == 24
    assert all(world in (None, world_of(member)) for member in members)
    for i, member in enumerate(members[1:], 1):
        assert min(differences(member, earlier) for earlier in members[:i]) <= 6
    near = [min(differences(m, e) for e in members[:i]) for i, m in enumerate(members[1:], 1)]
    assert sum(n <= 2 for n in near) >= 12


@pytest.mark.parametrize("make", [benchmark_text, benchmark_composed])
def test_benchmark_items(make):
    items = make(1, 20)
    for item in items:
        assert len(item.candidates) == len(item.relevances) == 20
        assert item.relevances == tuple(item.query.relevance(outfit) for outfit, _ in item.candidates)
        best = [i for i, r in enumerate(item.relevances) if r == item.query.max_relevance]
        assert best == [item.target_index]
        assert all(world_of(outfit) == "heldout" for outfit, _ in item.candidates)
        assert len({scene for _, scene in item.candidates}) == 20
        assert (item.reference is None) == (make is benchmark_text)
    shared = sum(len({scene.shop_seed for _, scene in item.candidates}) == 1 for item in items)
    assert 8 <= shared <= 19
    with pytest.raises(FrozenInstanceError):
        items[0].target_index = 0


@pytest.mark.parametrize("make", [benchmark_text, benchmark_composed])
def test_benchmark_items_depend_on_seed_and_position_only(make):
    assert make(2, 6)[:3] == make(2, 3)
    assert make(2, 3) != make(3, 3)
    assert len(make(2, 1, 7)[0].candidates) == 7


def test_benchmarks_are_pinned():
    texts = [item.query.text for make in (benchmark_text, benchmark_composed) for item in make(0, 10)]
    candidates = [repr(item.candidates) for make in (benchmark_text, benchmark_composed) for item in make(0, 3)]
    assert hashlib.sha256("\n".join(texts + candidates).encode()).hexdigest()[:16] == "e8d2f78b7bfa7267"
