# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Words for outfits: captions, text queries and modification texts, with what they ask for kept beside the text."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from radical_haystack.catalog.attributes import FIELDS, SLOT_OF, Garment, Outfit

NO_POCKET = "none"
MAX_WORDS = 24

_COLOUR_WORDS = {"purple": ("purple", "violet")}
_KIND_WORDS = {"trousers": ("trousers", "pants"), "hoodie": ("hoodie", "hooded sweater")}
_PATTERN_ADJECTIVES = {
    "plain": ("plain", "solid"),
    "striped": ("striped",),
    "dotted": ("dotted", "polka-dot"),
    "checked": ("checked", "plaid"),
}
_PATTERN_NOUNS = {"striped": ("stripes",), "dotted": ("dots", "polka dots"), "checked": ("checks",)}
_OPENINGS = ("", "", "", "", "photo of", "i want", "show me", "looking for", "find", "an outfit with")
_TOP_FIRST = (" and ", " and ", " worn with ", " over ", " above ", ", ")
_BOTTOM_FIRST = (" and ", " and ", " worn with ", " under ", " below ", ", ")


@dataclass(frozen=True)
class GarmentSpec:
    """
    What a query says about one garment. `None` means that it says nothing about this attribute.

    :param kind: The kind, always mentioned.
    :param colour: The wanted colour.
    :param pattern: The wanted pattern.
    :param length: The wanted length.
    :param accent: The wanted pocket colour, or `NO_POCKET` where the query asks for no pocket.
    """

    kind: str
    colour: str | None = None
    pattern: str | None = None
    length: str | None = None
    accent: str | None = None

    @property
    def slot(self) -> str:
        """Where it is worn: `top`, `bottom` or `dress`."""
        return SLOT_OF[self.kind]

    @property
    def mentioned(self) -> int:
        """Number of attributes asked for, the kind included."""
        return sum(getattr(self, field) is not None for field in FIELDS)

    def hits(self, garment: Garment) -> int:
        """
        Count the attributes asked for that a garment has.

        :param garment: A garment; one of another slot has none of them.
        :returns: A number between 0 and `mentioned`.
        """
        if garment.slot != self.slot:
            return 0
        return sum(_value(garment, field) == getattr(self, field) for field in FIELDS)


@dataclass(frozen=True)
class Query:
    """
    A text query and what it asks for.

    :param text: The text, lower case.
    :param wanted: What it says, one entry per mentioned garment, in the order of the text.
    """

    text: str
    wanted: tuple[GarmentSpec, ...]

    @property
    def max_relevance(self) -> int:
        """The relevance of a full match."""
        return sum(spec.mentioned for spec in self.wanted)

    def relevance(self, outfit: Outfit) -> int:
        """
        Grade an outfit.

        :param outfit: The outfit.
        :returns: How many of the attributes asked for it has, on the right garment.
        """
        return sum(max(spec.hits(garment) for garment in outfit.garments) for spec in self.wanted)

    def matches(self, outfit: Outfit) -> bool:
        """
        Tell whether an outfit has everything the query asks for.

        :param outfit: The outfit.
        :returns: Whether it is a full match.
        """
        return self.relevance(outfit) == self.max_relevance

    def garment_indices(self, outfit: Outfit) -> tuple[int, ...]:
        """
        Find the garments of an outfit that the query speaks about.

        :param outfit: The outfit, matching or not.
        :returns: Indices into `outfit.garments` of those worn where a mentioned garment is worn, ascending.
        """
        slots = {spec.slot for spec in self.wanted}
        return tuple(index for index, garment in enumerate(outfit.garments) if garment.slot in slots)


@dataclass(frozen=True)
class Modification:
    """
    A text that says how the target differs from a reference; everything it does not name stays.

    :param text: The text, lower case.
    :param reference: The outfit it starts from.
    :param target: The outfit it leads to.
    """

    text: str
    reference: Outfit
    target: Outfit

    @property
    def wanted(self) -> tuple[GarmentSpec, ...]:
        """All attributes of the target."""
        return tuple(full_spec(garment) for garment in self.target.garments)

    @property
    def max_relevance(self) -> int:
        """The relevance of a full match."""
        return self._as_query().max_relevance

    def relevance(self, outfit: Outfit) -> int:
        """
        Grade an outfit.

        :param outfit: The outfit.
        :returns: How many attributes it shares with the target, on the same garment.
        """
        return self._as_query().relevance(outfit)

    def matches(self, outfit: Outfit) -> bool:
        """
        Tell whether an outfit has all attributes of the target.

        :param outfit: The outfit.
        :returns: Whether it is a full match.
        """
        return self._as_query().matches(outfit)

    def garment_indices(self, outfit: Outfit) -> tuple[int, ...]:
        """
        Find the garments of an outfit that are worn where the target's garments are.

        :param outfit: The outfit, matching or not.
        :returns: Indices into `outfit.garments`, ascending.
        """
        return self._as_query().garment_indices(outfit)

    def _as_query(self) -> Query:
        return Query(self.text, self.wanted)


def full_spec(garment: Garment) -> GarmentSpec:
    """
    Ask for everything about a garment, the absence of a pocket included.

    :param garment: The garment.
    :returns: The specification only this garment fulfils.
    """
    return GarmentSpec(*(_value(garment, field) for field in FIELDS))


def describe(outfit: Outfit, rng: random.Random, *, full: bool = True) -> Query:
    """
    Make a text query that an outfit matches.

    :param outfit: The outfit to ask for.
    :param rng: Source of randomness for templates, synonyms and order.
    :param full: Mention every attribute (a missing pocket only sometimes). Otherwise leave out a garment or some
        attributes, but never all of them.
    :returns: The query.
    """
    specs = [_full_query_spec(garment, rng) for garment in outfit.garments]
    if not full:
        specs = _leave_out(specs, rng)
    text, ordered = _sentence(specs, rng)
    opening = rng.choice(_OPENINGS)
    if opening and len(f"{opening} {text}".split()) <= MAX_WORDS:
        text = f"{opening} {text}"
    return Query(text, ordered)


def caption(outfit: Outfit, rng: random.Random) -> str:
    """
    Describe an outfit: every attribute, no pocket that is not there.

    :param outfit: The outfit.
    :param rng: Source of randomness for templates, synonyms and order.
    :returns: The caption, lower case.
    """
    specs = [GarmentSpec(g.kind, g.colour, g.pattern, g.length, g.accent) for g in outfit.garments]
    return _sentence(specs, rng)[0]


def modification(reference: Outfit, target: Outfit, rng: random.Random) -> Modification:
    """
    Say how the target differs from the reference.

    :param reference: The outfit to start from.
    :param target: Another outfit with garments in the same slots.
    :param rng: Source of randomness for templates, synonyms and order.
    :returns: The modification.
    :raises ValueError: If the two are equal or their garments are worn in different places.
    """
    if [g.slot for g in reference.garments] != [g.slot for g in target.garments]:
        raise ValueError("A modification needs a reference and a target with garments in the same slots.")
    if reference == target:
        raise ValueError("A modification needs a target that differs from the reference.")
    pairs = [(old, new) for old, new in zip(reference.garments, target.garments, strict=True) if old != new]
    rng.shuffle(pairs)
    if len(reference.garments) == 1:
        text = _single_change(*pairs[0], rng)
    else:
        clauses = [f"the {_noun(old.kind, old.length, rng)} {_predicates(old, new, rng)}" for old, new in pairs]
        text = rng.choice(("", "", "same but ")) + rng.choice((" and ", ", ")).join(clauses)
    return Modification(text, reference, target)


def _value(garment: Garment, field: str) -> str:
    value: str | None = getattr(garment, field)
    return NO_POCKET if value is None else value


def _full_query_spec(garment: Garment, rng: random.Random) -> GarmentSpec:
    accent = garment.accent
    if accent is None and rng.random() < 0.3:
        accent = NO_POCKET
    return GarmentSpec(garment.kind, garment.colour, garment.pattern, garment.length, accent)


def _leave_out(specs: list[GarmentSpec], rng: random.Random) -> list[GarmentSpec]:
    if len(specs) == 2 and rng.random() < 0.3:
        return [rng.choice(specs)]
    return [_leave_out_attributes(spec, rng) for spec in specs]


def _leave_out_attributes(spec: GarmentSpec, rng: random.Random) -> GarmentSpec:
    mentioned = [field for field in FIELDS[1:] if getattr(spec, field) is not None]
    kept = rng.sample(mentioned, rng.randint(1, len(mentioned) - 1))
    return GarmentSpec(spec.kind, **{field: getattr(spec, field) for field in kept})


def _sentence(specs: Sequence[GarmentSpec], rng: random.Random) -> tuple[str, tuple[GarmentSpec, ...]]:
    ordered = list(specs)
    joiner = rng.choice(_TOP_FIRST)
    if len(ordered) == 2 and rng.random() < 0.4:
        ordered.reverse()
        joiner = rng.choice(_BOTTOM_FIRST)
    return joiner.join(_phrase(spec, rng) for spec in ordered), tuple(ordered)


def _phrase(spec: GarmentSpec, rng: random.Random) -> str:
    adjectives: list[str] = []
    features: list[str] = []
    noun = _noun(spec.kind, spec.length, rng)
    if spec.length is not None and noun != "shorts":
        _add_length(spec, adjectives, features, rng)
    if spec.pattern is not None:
        if spec.pattern in _PATTERN_NOUNS and rng.random() < 0.35:
            features.append(rng.choice(_PATTERN_NOUNS[spec.pattern]))
        else:
            adjectives.append(rng.choice(_PATTERN_ADJECTIVES[spec.pattern]))
    if spec.colour is not None:
        adjectives.insert(rng.randint(0, len(adjectives)), _colour(spec.colour, rng))
    if spec.accent not in (None, NO_POCKET):
        features.append(_pocket(str(spec.accent), rng))
    words = _with_article(" ".join([*adjectives, noun]), noun)
    if features:
        words += " with " + _enumerate(features)
    if spec.accent == NO_POCKET:
        words += rng.choice((" without a pocket", " without pocket", f" {'and' if features else 'with'} no pocket"))
    return words


def _add_length(spec: GarmentSpec, adjectives: list[str], features: list[str], rng: random.Random) -> None:
    if spec.slot == "top":
        if rng.random() < 0.4:
            features.append(f"{spec.length} sleeves")
        else:
            adjectives.append(f"{spec.length}-sleeved")
    elif spec.kind in ("skirt", "dress") and rng.random() < 0.3:
        adjectives.append("maxi" if spec.length == "long" else "mini")
    else:
        adjectives.append(str(spec.length))


def _single_change(old: Garment, new: Garment, rng: random.Random) -> str:
    predicates = _predicates(old, new, rng)
    if _is_plural(old):
        return f"the {_noun(old.kind, old.length, rng)} {predicates}"
    subjects = ("", "", "it ", f"the {_noun(old.kind, old.length, rng)} ", "same but ", "the same but it ")
    return rng.choice(subjects) + predicates


def _predicates(old: Garment, new: Garment, rng: random.Random) -> str:
    changed = {field: _value(new, field) for field in FIELDS[1:] if getattr(new, field) != getattr(old, field)}
    be, have, become = ("are", "have", "become") if _is_plural(old) else ("is", "has", "becomes")
    if new.kind != old.kind:
        return f"{become} {_phrase(GarmentSpec(new.kind, **changed), rng)}"
    states: list[str] = []
    features: list[str] = []
    if "colour" in changed:
        states.append(_colour(new.colour, rng))
    if "pattern" in changed:
        if new.pattern in _PATTERN_NOUNS and rng.random() < 0.5:
            features.append(rng.choice(_PATTERN_NOUNS[new.pattern]))
        else:
            states.append(rng.choice(_PATTERN_ADJECTIVES[new.pattern]))
    if "length" in changed and new.slot != "top":
        states.append(new.length)
    elif "length" in changed:
        features.append(f"{new.length} sleeves")
    if "accent" in changed:
        features.append("no pocket" if new.accent is None else _pocket(new.accent, rng))
    rng.shuffle(features)
    parts = []
    if states:
        parts.append(f"{be} {_enumerate(states)}{rng.choice(('', ' instead'))}")
    if features:
        parts.append(f"{have} {_enumerate(features)}")
    return " and ".join(parts)


def _noun(kind: str, length: str | None, rng: random.Random) -> str:
    if kind == "trousers" and length == "short" and rng.random() < 0.7:
        return "shorts"
    return rng.choice(_KIND_WORDS.get(kind, (kind,)))


def _is_plural(garment: Garment) -> bool:
    return garment.kind == "trousers"


def _with_article(words: str, noun: str) -> str:
    if noun in ("trousers", "pants", "shorts"):
        return words
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _pocket(colour: str, rng: random.Random) -> str:
    word = _colour(colour, rng)
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word} pocket"


def _colour(colour: str, rng: random.Random) -> str:
    return rng.choice(_COLOUR_WORDS.get(colour, (colour,)))


def _enumerate(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return ", ".join(parts[:-1]) + " and " + parts[-1]
