# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Which candidate tokens a query token speaks about: the truth for the grounding loss.

An attribute word (`striped`) looks at the tokens of garments with that attribute, `pocket` at the pockets of the colour
before it, or at the garments without one, of the kind of garment named last; a kind word of a description (`shirt`) at
the garments that best fit what was said of them so far; a token of the reference image at the candidates' garments most
like the one it shows, or at their pockets. A word speaks for the candidates it looks at; one that closes what a
description says about a garment (`with stripes`, `and a red pocket`) for those that best fit all of it.

Attention is causal: a word can only be asked for what is known when it is read. The colour before `pocket` has no
truth, since nothing tells there whether a pocket or a garment follows.
"""

from dataclasses import replace

import numpy as np

from radical_haystack.catalog import COLOURS, FIELDS, NO_POCKET, GarmentSpec, Outfit, full_spec
from training.layout import Layout

WORDS = {
    "colour": {**{colour: colour for colour in COLOURS}, "violet": "purple"},
    "pattern": {
        "plain": "plain", "solid": "plain", "striped": "striped", "stripes": "striped", "dotted": "dotted",
        "polka": "dotted", "dots": "dotted", "checked": "checked", "plaid": "checked", "checks": "checked",
    },
    "length": {"short": "short", "mini": "short", "long": "long", "maxi": "long"},
    "kind": {
        "shirt": "shirt", "jacket": "jacket", "hoodie": "hoodie", "sweater": "hoodie", "trousers": "trousers",
        "pants": "trousers", "shorts": "trousers", "skirt": "skirt", "dress": "dress",
    },
}  # fmt: skip


class Vocabulary:
    """Token id to the attribute it names."""

    def __init__(self, layout: Layout) -> None:
        self.meaning: dict[int, tuple[str, str]] = {}
        for field, words in WORDS.items():
            for word, value in words.items():
                ids = layout.encode(f" {word}")
                if len(ids) == 1:
                    self.meaning[ids[0]] = (field, value)
        self.pocket, self.shorts = layout.encode(" pocket")[0], layout.encode(" shorts")[0]
        closing = ("pocket", "sleeves", "stripes", "dots", "checks")
        self.closing = {ids[0] for ids in (layout.encode(f" {word}") for word in closing) if len(ids) == 1}


class SetTruth:
    """
    What every visual token of one candidate set shows.

    :param outfits: The candidates.
    :param labels: Label of every present token (see `Pool.labels`), `(N, T)`.
    """

    def __init__(self, outfits: list[Outfit], labels: np.ndarray) -> None:
        self.outfits = outfits
        self.garment = np.where(labels > 0, (labels.astype(int) - 1) // 2, -1)
        self.pocket = (labels > 0) & (labels % 2 == 0)

    def having(self, field: str, value: str | None, slot: str | None = None) -> np.ndarray:
        """
        Tokens of garments with an attribute, `(N, T)`.

        :param value: The attribute's value; an accent's tokens are those of the pocket, `None` means no pocket.
        :param slot: Only of garments worn there.
        """
        place = self.pocket if field == "accent" and value else ~self.pocket
        mask = np.zeros_like(place)
        for row, outfit in enumerate(self.outfits):
            for number, garment in enumerate(outfit.garments):
                if getattr(garment, field) == value and slot in (None, garment.slot):
                    mask[row] |= self.garment[row] == number
        return mask & place

    def fitting(self, spec: GarmentSpec) -> np.ndarray:
        """Tokens of the garments that fit a description best, `(N, T)`."""
        mask = np.zeros_like(self.pocket)
        hits = {
            (row, number): spec.hits(garment)
            for row, outfit in enumerate(self.outfits)
            for number, garment in enumerate(outfit.garments)
        }
        best = max(hits.values())
        for (row, number), count in hits.items():
            if count == best > 0:
                mask[row] |= self.garment[row] == number
        return mask


def word_truth(
    truth: SetTruth, vocabulary: Vocabulary, ids: list[int], *, described: bool
) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """
    What the words of one query speak about.

    :param ids: The query's tokens.
    :param described: Whether it describes garments; a modification names those that are to change.
    :returns: For each position in `ids` that has a truth: the position, the tokens to look at `(N, T)`, and the
        candidates it speaks for `(N,)`.
    """
    found = []
    adjectives: dict[str, str] = {}
    spec: GarmentSpec | None = None
    for place, token in enumerate(ids):
        field, value = vocabulary.meaning.get(token, (None, None))
        following = ids[place + 1] if place + 1 < len(ids) else None
        if (field is None and token not in vocabulary.closing) or following in vocabulary.closing:
            continue
        if field == "kind":
            shorts = {"length": "short"} if token == vocabulary.shorts else {}
            spec = GarmentSpec(value, **(adjectives | shorts))
            adjectives = {}
            mask = truth.fitting(spec) if described else None
        elif token in vocabulary.closing:
            field, value = _feature(vocabulary, ids, place)
            mask = truth.having(field, value, spec and spec.slot)
            spec = spec and replace(spec, **{field: NO_POCKET if value is None else value})
        else:
            adjectives[field] = value
            mask = truth.having(field, value)
        if mask is None or not mask.any():
            continue
        whole = described and spec is not None and token in vocabulary.closing
        found.append((place, mask, (truth.fitting(spec) if whole else mask).any(-1)))
    return found


def _feature(vocabulary: Vocabulary, ids: list[int], place: int) -> tuple[str, str | None]:
    """The attribute that ends at a closing word."""
    if ids[place] in vocabulary.meaning:
        return vocabulary.meaning[ids[place]]
    before, value = vocabulary.meaning.get(ids[place - 1], (None, None))
    if ids[place] == vocabulary.pocket:
        return "accent", value if before == "colour" else None
    return "length", value


def reference_truth(truth: SetTruth, outfit: Outfit, labels: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """
    What the tokens of a reference image speak about, and the two behind it.

    A garment's tokens do not show its pocket, and those before it cannot know of one: they speak for the garments most
    like theirs in all else. Whether a garment has none is only known behind the image, where one token per garment
    looks at the pockets of that colour, or at the garments without one.

    :param outfit: What the reference shows.
    :param labels: Label of every present token of it, `(T,)`.
    :returns: A token number (`T` and `T + 1` are behind the image), the tokens to look at `(N, T)` and the candidates
        it speaks for `(N,)`, each.
    """
    found = []
    for number, garment in enumerate(outfit.garments):
        alike = truth.fitting(replace(full_spec(garment), accent=None))
        pocket = truth.having("accent", garment.accent, garment.slot)
        behind = len(labels) + number
        for tokens, mask in (
            (_few(np.flatnonzero(labels == 1 + 2 * number)), alike),
            (np.flatnonzero(labels == 2 + 2 * number), pocket),
            ([behind], pocket),
        ):
            if mask.any():
                found += [(int(token), mask, mask.any(-1)) for token in tokens]
    return found


def _few(tokens: np.ndarray, count: int = 4) -> np.ndarray:
    """Evenly spread tokens of a garment: all of them would outweigh the words."""
    return tokens[:: max(1, len(tokens) // count)]


assert set(WORDS) == set(FIELDS) - {"accent"}
