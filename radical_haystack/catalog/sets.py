# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Candidate sets: hard ones with exactly one full match, families of look-alikes, and the benchmark splits."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from radical_haystack.catalog.attributes import FIELDS, Outfit, World, mutate, sample_outfit, swap, world_of
from radical_haystack.catalog.drawing import Scene
from radical_haystack.catalog.language import Modification, Query, describe, modification

SHARED_SHOP_SHARE = 0.7
# Proposals before a set is given up, per wanted outfit; about ten suffice.
ATTEMPTS_PER_OUTFIT = 100


@dataclass(frozen=True)
class BenchmarkItem:
    """
    One benchmark query with its candidates.

    :param query: What is asked for.
    :param candidates: The candidates, each an outfit and the scene it is drawn in.
    :param relevances: Graded relevance of each candidate.
    :param target_index: Index of the only full match.
    :param reference: The reference image of a composed query, or `None`.
    """

    query: Query | Modification
    candidates: tuple[tuple[Outfit, Scene], ...]
    relevances: tuple[int, ...]
    target_index: int
    reference: tuple[Outfit, Scene] | None = None


def hard_set(
    target: Outfit,
    wanted: Query | Modification,
    rng: random.Random,
    n: int = 20,
    *,
    world: World | None = None,
    reference: Outfit | None = None,
) -> tuple[list[Outfit], int]:
    """
    Surround a target with candidates that nearly match.

    Most negatives differ from the target in one to three attributes, some of them by having the attributes on the wrong
    garment; with a reference also the unmodified reference, its look-alikes, and the change made to the wrong garment.

    :param target: The outfit that matches.
    :param wanted: The query; no negative matches it.
    :param rng: Source of randomness.
    :param n: Number of candidates, the target included.
    :param world: The world of the negatives; `None` for either.
    :param reference: The reference of a composed query.
    :returns: The distinct candidates and the index of the target among them.
    :raises ValueError: If the target does not match, or the world has not enough such outfits.
    """
    if not wanted.matches(target):
        raise ValueError(f"The target does not match the query {wanted.text!r}.")
    negatives: list[Outfit] = []
    if reference is not None and n > 1:
        negatives.append(reference)

    def propose(attempt: int) -> Outfit | None:
        return _negative(target, reference, rng, world, widen=attempt > 10 * n)

    def accept(outfit: Outfit) -> bool:
        return outfit not in negatives and not wanted.matches(outfit)

    _fill(negatives, n - 1, propose, accept, world)
    rng.shuffle(negatives)
    index = rng.randrange(n)
    return [*negatives[:index], target, *negatives[index:]], index


def family(rng: random.Random, size: int, world: World | None = None) -> list[Outfit]:
    """
    Grow a pool of look-alikes around a random outfit, by changing members in one or two attributes and by swaps.

    :param rng: Source of randomness.
    :param size: Number of outfits.
    :param world: The world they belong to; `None` for either.
    :returns: Distinct outfits, the centre first.
    :raises ValueError: If the world has not enough such outfits.
    """
    members = [sample_outfit(rng, world=world)]

    def propose(attempt: int) -> Outfit | None:
        member = rng.choice(members)
        if rng.random() < 0.15:
            return swap(member, rng, world=world)
        return _mutated(member, rng, rng.choice((1, 1, 2)) + (attempt > 10 * size), world)

    _fill(members, size, propose, lambda outfit: outfit not in members, world)
    return members


def benchmark_text(seed: int, n_queries: int, n_candidates: int = 20, world: World = "heldout") -> list[BenchmarkItem]:
    """
    Make the text benchmark: full descriptions, hard candidates.

    :param seed: Seed of the split. Item `i` depends on the seed and `i` only.
    :param n_queries: Number of items.
    :param n_candidates: Candidates per item.
    :param world: The world of all outfits.
    :returns: The items.
    """
    return [_text_item(random.Random(f"text/{seed}/{i}"), n_candidates, world) for i in range(n_queries)]


def benchmark_composed(
    seed: int, n_queries: int, n_candidates: int = 20, world: World = "heldout"
) -> list[BenchmarkItem]:
    """
    Make the composed benchmark: a reference image and a text that changes one to three attributes.

    :param seed: Seed of the split. Item `i` depends on the seed and `i` only.
    :param n_queries: Number of items.
    :param n_candidates: Candidates per item.
    :param world: The world of all outfits.
    :returns: The items.
    """
    return [_composed_item(random.Random(f"composed/{seed}/{i}"), n_candidates, world) for i in range(n_queries)]


def _text_item(rng: random.Random, n: int, world: World) -> BenchmarkItem:
    target = sample_outfit(rng, world=world)
    query = describe(target, rng)
    outfits, index = hard_set(target, query, rng, n, world=world)
    return _item(query, outfits, index, None, rng)


def _composed_item(rng: random.Random, n: int, world: World) -> BenchmarkItem:
    target = None
    while target is None:
        reference = sample_outfit(rng, world=world)
        target = _mutated(reference, rng, rng.choice((1, 2, 2, 3)), world)
    query = modification(reference, target, rng)
    outfits, index = hard_set(target, query, rng, n, world=world, reference=reference)
    return _item(query, outfits, index, reference, rng)


def _item(
    query: Query | Modification, outfits: list[Outfit], index: int, reference: Outfit | None, rng: random.Random
) -> BenchmarkItem:
    shop = rng.getrandbits(32) if rng.random() < SHARED_SHOP_SHARE else None

    def scene() -> Scene:
        return Scene(rng.getrandbits(32) if shop is None else shop, rng.getrandbits(32))

    return BenchmarkItem(
        query=query,
        candidates=tuple((outfit, scene()) for outfit in outfits),
        relevances=tuple(query.relevance(outfit) for outfit in outfits),
        target_index=index,
        reference=None if reference is None else (reference, scene()),
    )


def _fill(
    members: list[Outfit],
    size: int,
    propose: Callable[[int], Outfit | None],
    accept: Callable[[Outfit], bool],
    world: World | None,
) -> None:
    """Append accepted proposals in place until there are `size` members."""
    for attempt in range(ATTEMPTS_PER_OUTFIT * size):
        if len(members) >= size:
            return
        outfit = propose(attempt)
        if outfit is not None and accept(outfit):
            members.append(outfit)
    if len(members) < size:
        raise ValueError(f"Found only {len(members)} of {size} look-alikes in the {world or 'whole'} world.")


def _negative(
    target: Outfit, reference: Outfit | None, rng: random.Random, world: World | None, *, widen: bool
) -> Outfit | None:
    draw = rng.random()
    if draw < 0.2:
        return swap(target, rng, world=world)
    if reference is not None and draw < 0.35:
        return _mutated(reference, rng, 1 + widen, world)
    if reference is not None and draw < 0.5:
        return _wrong_garment(reference, target, world)
    return _mutated(target, rng, rng.choices((1, 2, 3), weights=(45, 35, 20))[0] + widen, world)


def _mutated(outfit: Outfit, rng: random.Random, changes: int, world: World | None) -> Outfit | None:
    try:
        return mutate(outfit, rng, changes, world=world)
    except ValueError:  # no neighbour of that outfit lies in this world
        return None


def _wrong_garment(reference: Outfit, target: Outfit, world: World | None) -> Outfit | None:
    """Make the change from reference to target, but on the other garment."""
    if len(reference.garments) != 2:
        return None
    garments = list(reference.garments)
    for index, (old, new) in enumerate(zip(reference.garments, target.garments, strict=True)):
        changed = {f: getattr(new, f) for f in FIELDS[1:] if getattr(new, f) != getattr(old, f)}
        try:
            garments[1 - index] = replace(garments[1 - index], **changed)
        except ValueError:  # the pocket would have its garment's own colour
            return None
    outfit = Outfit(tuple(garments))
    return outfit if world in (None, world_of(outfit)) else None
