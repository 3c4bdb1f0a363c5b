# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What an outfit of the drawn catalogue is: garments with attributes, split into a train and a held-out world."""

import hashlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

World = Literal["train", "heldout"]

COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "black", "white")
PATTERNS = ("plain", "striped", "dotted", "checked")
LENGTHS = ("short", "long")
KINDS = {"top": ("shirt", "jacket", "hoodie"), "bottom": ("trousers", "skirt"), "dress": ("dress",)}
SLOT_OF = {kind: slot for slot, kinds in KINDS.items() for kind in kinds}
FIELDS = ("kind", "colour", "pattern", "length", "accent")

ACCENT_SHARE = 0.65
PAIR_SHARE = 0.7
HELDOUT_SHARE = 0.2
WORLD_ATTEMPTS = 80
_EXCHANGES = (("colour",), ("pattern",), ("accent",), ("colour", "pattern"), ("colour", "accent"))


@dataclass(frozen=True)
class Garment:
    """
    One garment.

    :param kind: One of the kinds in `KINDS`.
    :param colour: One of `COLOURS`.
    :param pattern: One of `PATTERNS`, drawn in a lighter or darker tone of the same colour.
    :param length: `short` or `long`: the sleeves of a top, the legs or hem of anything else.
    :param accent: Colour of the patch pocket (never the garment's own), or `None` without a pocket.
    :raises ValueError: If a value is unknown, or the pocket has the garment's own colour.
    """

    kind: str
    colour: str
    pattern: str
    length: str
    accent: str | None = None

    def __post_init__(self) -> None:
        known = (SLOT_OF, COLOURS, PATTERNS, LENGTHS, (None, *COLOURS))
        for name, allowed in zip(FIELDS, known, strict=True):
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"Unknown garment {name} {value!r}, expected one of {list(allowed)}.")
        if self.accent == self.colour:
            raise ValueError(f"The pocket of a {self.colour} {self.kind} must have another colour than the garment.")

    @property
    def slot(self) -> str:
        """Where it is worn: `top`, `bottom` or `dress`."""
        return SLOT_OF[self.kind]


@dataclass(frozen=True)
class Outfit:
    """
    What one image shows.

    :param garments: A top and a bottom (in this order), or a single garment.
    :raises ValueError: If the garments are neither.
    """

    garments: tuple[Garment, ...]

    def __post_init__(self) -> None:
        slots = [garment.slot for garment in self.garments]
        if len(slots) != 1 and slots != ["top", "bottom"]:
            raise ValueError(f"An outfit is a single garment or a top and a bottom, not {slots}.")


def world_of(outfit: Outfit) -> World:
    """
    Tell to which world an outfit belongs, by a hash of its attributes that is the same in every process.

    :param outfit: The outfit.
    :returns: `heldout` for about a fifth of all outfits, else `train`.
    """
    text = "|".join(f"{g.kind},{g.colour},{g.pattern},{g.length},{g.accent}" for g in outfit.garments)
    digest = hashlib.sha256(text.encode()).digest()
    return "heldout" if int.from_bytes(digest[:4], "big") < HELDOUT_SHARE * 2**32 else "train"


def sample_outfit(rng: random.Random, *, world: World | None = None) -> Outfit:
    """
    Draw a random outfit: mostly a top with a bottom, else a single garment, mostly a dress.

    :param rng: Source of randomness.
    :param world: The world it must belong to; `None` for either.
    :returns: The outfit.
    """
    while True:
        if rng.random() < PAIR_SHARE:
            slots = ["top", "bottom"]
        else:
            slots = rng.choices(["dress", "top", "bottom"], weights=[3, 1, 1])
        outfit = Outfit(tuple(_sample_garment(rng, slot) for slot in slots))
        if world in (None, world_of(outfit)):
            return outfit


def mutate(outfit: Outfit, rng: random.Random, changes: int, *, world: World | None = None) -> Outfit:
    """
    Change exactly so many attribute values. The number of garments and their slots stay.

    :param outfit: The outfit to start from.
    :param rng: Source of randomness.
    :param changes: How many attribute values differ afterwards.
    :param world: The world the result must belong to; `None` for either.
    :returns: The changed outfit.
    :raises ValueError: If there are not so many attributes, or no such outfit was found in that world.
    """
    places = [
        (index, field)
        for index, garment in enumerate(outfit.garments)
        for field in FIELDS
        if field != "kind" or len(KINDS[garment.slot]) > 1
    ]
    if not 1 <= changes <= len(places):
        raise ValueError(f"Cannot change {changes} attributes of an outfit that has {len(places)}.")
    result = _first_in_world(lambda: _change(outfit, rng, rng.sample(places, changes)), world)
    if result is None:
        raise ValueError(f"No outfit of the {world} world found {changes} change(s) away from {outfit}.")
    return result


def swap(outfit: Outfit, rng: random.Random, *, world: World | None = None) -> Outfit | None:
    """
    Bind the same attributes to other parts: exchange colour, pattern or pocket (or several of them) between the two
    garments, or the colours of one garment and its pocket.

    :param outfit: The outfit to start from.
    :param rng: Source of randomness.
    :param world: The world the result must belong to; `None` for either.
    :returns: Another outfit made of the same attributes, or `None` where no exchange gives one.
    """
    options = [option for option in _swaps(outfit) if world in (None, world_of(option))]
    return rng.choice(options) if options else None


def _sample_garment(rng: random.Random, slot: str) -> Garment:
    colour = rng.choice(COLOURS)
    accent = rng.choice([c for c in COLOURS if c != colour]) if rng.random() < ACCENT_SHARE else None
    return Garment(rng.choice(KINDS[slot]), colour, rng.choice(PATTERNS), rng.choice(LENGTHS), accent)


def _first_in_world(make: Callable[[], Outfit], world: World | None) -> Outfit | None:
    candidates = (make() for _ in range(WORLD_ATTEMPTS))
    return next((outfit for outfit in candidates if world in (None, world_of(outfit))), None)


def _change(outfit: Outfit, rng: random.Random, places: list[tuple[int, str]]) -> Outfit:
    garments = list(outfit.garments)
    # Colours come before pockets (FIELDS order), so that a new pocket can avoid the garment's new colour.
    for index, field in sorted(places, key=lambda place: FIELDS.index(place[1])):
        change: dict[str, Any] = {field: rng.choice(_other_values(garments[index], field))}
        garments[index] = replace(garments[index], **change)
    return Outfit(tuple(garments))


def _other_values(garment: Garment, field: str) -> list[str | None]:
    allowed: dict[str, Iterable[str | None]] = {
        "kind": KINDS[garment.slot],
        "colour": [colour for colour in COLOURS if colour != garment.accent],
        "pattern": PATTERNS,
        "length": LENGTHS,
        # "No pocket" weighs as much as two colours.
        "accent": [None, None, *(colour for colour in COLOURS if colour != garment.colour)],
    }
    return [value for value in allowed[field] if value != getattr(garment, field)]


def _swaps(outfit: Outfit) -> list[Outfit]:
    found = [_replaced(outfit, i, _pocket_exchanged(g)) for i, g in enumerate(outfit.garments) if g.accent is not None]
    if len(outfit.garments) == 2:
        for fields in _EXCHANGES:
            first, second = ({field: getattr(garment, field) for field in fields} for garment in outfit.garments)
            try:
                swapped = Outfit((replace(outfit.garments[0], **second), replace(outfit.garments[1], **first)))
            except ValueError:  # the exchange would give a pocket its garment's own colour
                continue
            if swapped != outfit and swapped not in found:
                found.append(swapped)
    return found


def _pocket_exchanged(garment: Garment) -> Garment:
    return replace(garment, colour=str(garment.accent), accent=garment.colour)


def _replaced(outfit: Outfit, index: int, garment: Garment) -> Outfit:
    return Outfit((*outfit.garments[:index], garment, *outfit.garments[index + 1 :]))
