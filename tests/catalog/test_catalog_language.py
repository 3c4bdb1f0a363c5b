# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Words: what a text says is what its specification asks for, and nothing else."""

import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.catalog import (
    COLOURS,
    NO_POCKET,
    Garment,
    Outfit,
    caption,
    describe,
    modification,
    mutate,
    sample_outfit,
)

SEEDS = st.integers(min_value=0, max_value=2**32)
SYNONYMS = {
    "violet": "purple", "solid": "plain", "stripes": "striped", "dots": "dotted", "polka-dot": "dotted",
    "checks": "checked", "plaid": "checked", "pants": "trousers", "sweater": "hoodie", "long-sleeved": "long",
    "short-sleeved": "short", "maxi": "long", "mini": "short",
}  # fmt: skip
VALUES = {*COLOURS, "plain", "striped", "dotted", "checked", "long", "short", "trousers", "skirt", "dress", "shirt",
          "jacket", "hoodie"}  # fmt: skip


def named(text: str) -> set[str]:
    """An independent reading of a text: the set of attribute values it names."""
    text = text.replace("shorts", "short trousers")
    words = [SYNONYMS.get(word, word) for word in re.findall(r"[a-z-]+", text)]
    return {word for word in words if word in VALUES}


def asked(wanted) -> set[str]:
    values = {getattr(spec, field) for spec in wanted for field in ("kind", "colour", "pattern", "length", "accent")}
    return values - {None, NO_POCKET}


@given(SEEDS, st.booleans())
def test_a_query_matches_its_own_outfit(seed, full):
    rng = random.Random(seed)
    outfit = sample_outfit(rng)
    query = describe(outfit, rng, full=full)
    assert query.matches(outfit)
    assert query.relevance(outfit) == query.max_relevance


@given(SEEDS, st.booleans())
def test_a_query_names_exactly_what_it_asks_for(seed, full):
    rng = random.Random(seed)
    query = describe(sample_outfit(rng), rng, full=full)
    assert named(query.text) == asked(query.wanted)
    assert query.text == query.text.lower()
    assert ("no pocket" in query.text or "without" in query.text) == any(s.accent == NO_POCKET for s in query.wanted)


@given(SEEDS)
def test_a_full_query_names_every_attribute(seed):
    rng = random.Random(seed)
    outfit = sample_outfit(rng)
    query = describe(outfit, rng)
    for spec in query.wanted:
        garment = next(g for g in outfit.garments if g.slot == spec.slot)
        assert (spec.kind, spec.colour, spec.pattern, spec.length) == (
            garment.kind, garment.colour, garment.pattern, garment.length,
        )  # fmt: skip
        assert spec.accent == garment.accent or (garment.accent is None and spec.accent == NO_POCKET)


@given(SEEDS)
def test_a_shortened_query_leaves_something_out(seed):
    rng = random.Random(seed)
    outfit = sample_outfit(rng)
    query = describe(outfit, rng, full=False)
    assert 2 <= query.max_relevance < 5 * len(outfit.garments)


@given(SEEDS)
def test_caption_names_exactly_the_attributes(seed):
    rng = random.Random(seed)
    outfit = sample_outfit(rng)
    values = {v for g in outfit.garments for v in (g.kind, g.colour, g.pattern, g.length, g.accent)} - {None}
    assert named(caption(outfit, rng)) == values


@given(SEEDS)
def test_relevance_falls_with_every_further_change(seed):
    rng = random.Random(seed)
    outfit = sample_outfit(rng)
    wanted = modification(mutate(outfit, rng, 1), outfit, rng)
    previous = wanted.relevance(outfit)
    garments = list(outfit.garments)
    changes = {
        "colour": next(c for c in COLOURS if c not in (garments[0].colour, garments[0].accent)),
        "pattern": "plain" if garments[0].pattern != "plain" else "dotted",
        "length": "long" if garments[0].length == "short" else "short",
    }
    for field, value in changes.items():
        garments[0] = replace(garments[0], **{field: value})
        relevance = wanted.relevance(Outfit(tuple(garments)))
        assert relevance == previous - 1
        previous = relevance


@given(SEEDS)
def test_a_modification_names_only_what_changes(seed):
    rng = random.Random(seed)
    reference = sample_outfit(rng)
    target = mutate(reference, rng, rng.choice((1, 2, 3)))
    change = modification(reference, target, rng)
    assert change.matches(target)
    assert not change.matches(reference)
    new = {
        getattr(b, f)
        for a, b in zip(reference.garments, target.garments, strict=True)
        for f in ("kind", "colour", "pattern", "length", "accent")
        if getattr(a, f) != getattr(b, f)
    } - {None}
    subjects = {g.kind for g in reference.garments}
    if any(g.kind == "trousers" and g.length == "short" for g in reference.garments):
        subjects.add("short")  # they may be called shorts
    assert new <= named(change.text)
    assert named(change.text) - new <= subjects


@given(SEEDS)
def test_a_change_of_two_garments_names_each(seed):
    rng = random.Random(seed)
    reference = sample_outfit(rng)
    target = mutate(reference, rng, 2)
    text = modification(reference, target, rng).text
    if len(reference.garments) == 2:
        changed = sum(a != b for a, b in zip(reference.garments, target.garments, strict=True))
        assert len(re.findall(r"\bthe (?!same)", text)) == changed


def test_modification_needs_a_difference_and_the_same_slots():
    shirt, dress = (Outfit((Garment(kind, "red", "plain", "long"),)) for kind in ("shirt", "dress"))
    with pytest.raises(ValueError, match="differs from the reference"):
        modification(shirt, shirt, random.Random(0))
    with pytest.raises(ValueError, match="same slots"):
        modification(shirt, dress, random.Random(0))


def test_a_query_points_at_the_garments_it_mentions():
    top, bottom = Garment("shirt", "red", "plain", "long"), Garment("skirt", "blue", "plain", "long")
    pair = Outfit((top, bottom))
    assert describe(Outfit((bottom,)), random.Random(0)).garment_indices(pair) == (1,)
    assert describe(pair, random.Random(0)).garment_indices(pair) == (0, 1)
    assert describe(pair, random.Random(0)).garment_indices(Outfit((top,))) == (0,)
    assert describe(pair, random.Random(0)).relevance(Outfit((top,))) == 4


def test_texts_are_short_varied_and_of_few_words():
    rng = random.Random(0)
    outfits = [sample_outfit(rng) for _ in range(2000)]
    texts = [describe(outfit, rng).text for outfit in outfits]
    texts += [modification(outfit, mutate(outfit, rng, 2), rng).text for outfit in outfits]
    assert max(len(text.split()) for text in texts) <= 26
    assert len({word for text in texts for word in re.findall(r"[a-z-]+", text)}) <= 120
    assert len({describe(outfits[0], rng).text for _ in range(50)}) > 20


def test_both_orders_of_two_garments_occur():
    pair = Outfit((Garment("shirt", "red", "plain", "long"), Garment("skirt", "blue", "plain", "long")))
    first = {describe(pair, random.Random(seed)).wanted[0].slot for seed in range(40)}
    assert first == {"top", "bottom"}


def test_texts_are_pinned():
    rng = random.Random(21)
    outfit = sample_outfit(rng)
    target = mutate(outfit, rng, 2)
    assert [describe(outfit, rng).text, caption(outfit, rng), modification(outfit, target, rng).text] == [
        "looking for a short-sleeved black shirt with checks and a green pocket over green long trousers with dots",
        "a short-sleeved black shirt with checks and a green pocket and green long trousers with dots",
        "same but the shirt is orange and solid",
    ]
