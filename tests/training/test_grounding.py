# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What a query token is asked to look at is there, is the right thing, and can be known when the token is read."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen2Tokenizer

from radical_haystack.catalog import Outfit, describe, modification
from training.grounding import SetTruth, Vocabulary, reference_truth, word_truth
from training.layout import Layout
from training.pool import FAMILY_SIZE, paired
from training.vlm_model import MODEL_FOLDER

SEEDS = st.integers(min_value=0, max_value=2**32)
TOKENS = 13


@pytest.fixture(scope="module")
def layout():
    return Layout(Qwen2Tokenizer.from_pretrained(MODEL_FOLDER))


@pytest.fixture(scope="module")
def vocabulary(layout):
    return Vocabulary(layout)


def labels_of(outfit: Outfit) -> np.ndarray:
    """One background token, then five of each garment and one of its pocket, or background."""
    labels = [0]
    for number, garment in enumerate(outfit.garments):
        labels += [1 + 2 * number] * 5 + [2 + 2 * number if garment.accent else 0]
    return np.array(labels + [0] * (TOKENS - len(labels)), dtype=np.uint8)


def truth_of(outfits: list[Outfit]) -> SetTruth:
    return SetTruth(outfits, np.stack([labels_of(outfit) for outfit in outfits]))


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_a_word_is_only_asked_for_what_is_known_when_it_is_read(layout, vocabulary, seed):
    rng = random.Random(seed)
    outfits = paired(rng, FAMILY_SIZE)
    truth = truth_of(outfits)
    for text, described in (
        (describe(outfits[0], rng).text, True),
        (modification(outfits[0], outfits[1], rng).text, False),
    ):
        ids = layout.encode(f" {text}")
        for place, mask, vote in word_truth(truth, vocabulary, ids, described=described):
            known = {p: (m, v) for p, m, v in word_truth(truth, vocabulary, ids[: place + 1], described=described)}
            np.testing.assert_array_equal(known[place][0], mask)
            np.testing.assert_array_equal(known[place][1], vote)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_the_words_of_a_description_speak_for_what_it_describes(layout, vocabulary, seed):
    rng = random.Random(seed)
    outfits = paired(rng, FAMILY_SIZE)
    target = rng.randrange(FAMILY_SIZE)
    truth = truth_of(outfits)
    ids = layout.encode(f" {describe(outfits[target], rng).text}")
    found = word_truth(truth, vocabulary, ids, described=True)
    assert found
    for _, mask, vote in found:
        assert vote[target]
        assert mask[target].any()
        assert not mask[:, 0].any(), "background"


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_a_reference_speaks_for_its_like_and_of_pockets_only_where_it_shows_them(seed):
    rng = random.Random(seed)
    outfits = paired(rng, FAMILY_SIZE)
    number = rng.randrange(FAMILY_SIZE)
    shown, labels = outfits[number], labels_of(outfits[number])
    truth = truth_of(outfits)
    found = reference_truth(truth, shown, labels)
    assert {token for token, _, _ in found} >= {TOKENS + garment for garment in range(len(shown.garments))}
    for token, mask, vote in found:
        assert vote[number], "the reference is most like itself"
        np.testing.assert_array_equal(vote, mask.any(-1))
        if token >= TOKENS or labels[token] % 2 == 0:
            garment = token - TOKENS if token >= TOKENS else (labels[token] - 1) // 2
            accents = [outfit.garments[garment].accent for outfit in outfits]
            np.testing.assert_array_equal(vote, [accent == shown.garments[garment].accent for accent in accents])
        else:
            garment = (int(labels[token]) - 1) // 2
            other = replace(shown.garments[garment], accent=None)
            changed = Outfit(tuple(other if n == garment else g for n, g in enumerate(shown.garments)))
            blind = {t: m for t, m, _ in reference_truth(truth, changed, labels)}
            np.testing.assert_array_equal(blind[token], mask)
