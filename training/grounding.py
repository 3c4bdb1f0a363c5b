# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Which candidate tokens a query token speaks about: the truth for the grounding loss.

An attribute word (`striped`) speaks about the tokens of garments with that attribute; `pocket` about the pockets of the
colour before it, or about the garments without one, of the kind of garment named last; a kind word of a text query
(`shirt`) about the garments that best fit what it says of them; a token of the reference image about the candidates'
garments most like the one it shows. The colour before `pocket` has no truth: attention is causal, and at that word
nothing tells yet whether a pocket or a garment follows.
"""

import numpy as np

from radical_haystack.catalog import COLOURS, FIELDS, SLOT_OF, GarmentSpec, Outfit, full_spec
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
        self.pocket = layout.encode(" pocket")[0]


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
    truth: SetTruth, vocabulary: Vocabulary, ids: list[int], wanted: tuple[GarmentSpec, ...] | None
) -> list[tuple[int, np.ndarray]]:
    """
    What the words of one query speak about.

    :param ids: The query's tokens.
    :param wanted: What a text query asks for; `None` for a modification, whose kind words name what is to change.
    :returns: Pairs of a position in `ids` and the mask `(N, T)`; positions without truth are left out.
    """
    found = []
    slot = None
    meanings = [vocabulary.meaning.get(token, (None, None)) for token in ids]
    for place, (field, value) in enumerate(meanings):
        if field == "kind":
            slot = SLOT_OF[value]
            spec = next((spec for spec in wanted or () if spec.kind == value), None)
            mask = None if spec is None else truth.fitting(spec)
        elif ids[place] == vocabulary.pocket:
            before, colour = meanings[place - 1]
            mask = truth.having("accent", colour if before == "colour" else None, slot)
        elif vocabulary.pocket in ids[place + 1 : place + 2]:
            mask = None
        else:
            mask = None if field is None else truth.having(field, value)
        if mask is not None and mask.any():
            found.append((place, mask))
    return found


def reference_truth(truth: SetTruth, outfit: Outfit, labels: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """
    What the tokens of a reference image speak about.

    :param outfit: What the reference shows.
    :param labels: Label of every present token of it, `(T,)`.
    :returns: Pairs of a token number and the mask `(N, T)`.
    """
    found = []
    for number, garment in enumerate(outfit.garments):
        spec = full_spec(garment)
        for pocket, label in ((False, 1 + 2 * number), (True, 2 + 2 * number)):
            mask = truth.having("accent", garment.accent) if pocket and garment.accent else truth.fitting(spec)
            if mask.any():
                found += [(int(token), mask) for token in np.flatnonzero(labels == label)]
    return found


assert set(WORDS) == set(FIELDS) - {"accent"}
