# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Pools of drawn training images: families of look-alikes, with the truth about every visual token."""

import argparse
import os
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image
from rich.progress import track

from radical_haystack.catalog import (
    FIELDS,
    Outfit,
    Scene,
    draw,
    evidence_tokens,
    hard_set,
    modification,
    mutate,
    sample_outfit,
    swap,
    token_labels,
    world_of,
)
from training.vlm_model import GRID, IMAGE_SIDE

FAMILY_SIZE = 28
HUBS = 2
KIND_SHARES = {"paired": 0.6, "crossed": 0.25, "look_alikes": 0.15}
LOOSE_SHARE = 0.3
RUNS = Path(__file__).parent / "runs"


@dataclass
class Pool:
    """
    :param outfits: What each image shows.
    :param images: `(n, side, side, 3)` uint8.
    :param labels: Label of every visual token, `(n, tokens)`: 0 background, 1 + 2g garment g, 2 + 2g its pocket.
    :param cover: Whether a token shows garment g (its pocket included), `(n, 2, tokens)` bool.
    """

    outfits: list[Outfit]
    images: np.ndarray
    labels: np.ndarray
    cover: np.ndarray


def look_alikes(rng: random.Random, size: int) -> list[Outfit]:
    """Distinct outfits of the train world, each with several neighbours one or two attribute values away."""
    centre = sample_outfit(rng, world="train")
    members = [centre]
    while len(members) < size:
        draw = rng.random()
        try:
            if draw < 0.25:
                outfit = swap(rng.choice(members), rng, world="train")
            elif draw < 0.65:
                outfit = mutate(centre, rng, rng.choice((1, 1, 2)), world="train")
            else:
                outfit = mutate(rng.choice(members), rng, rng.choice((1, 1, 2)), world="train")
        except ValueError:  # no such neighbour lies in the train world
            continue
        if outfit is not None and outfit not in members:
            members.append(outfit)
    return members


def paired(rng: random.Random, size: int) -> list[Outfit]:
    """
    Distinct outfits of the train world around two outfits one to three values apart.

    Either is surrounded as the targets of the benchmark are, with the other one as its reference: by outfits one value
    away, by its own values on the wrong garment, and by the change made to the wrong garment.
    """
    members: list[Outfit] = []
    while len(members) < size:
        first = sample_outfit(rng, world="train")
        try:
            second = mutate(first, rng, rng.choice((1, 2, 2, 3)), world="train")
            around = [
                hard_set(target, modification(other, target, rng), rng, size, world="train", reference=other)[0]
                for target, other in ((first, second), (second, first))
            ]
        except ValueError:  # the train world has not enough such neighbours
            continue
        neighbours = (outfit for pair in zip(*around, strict=True) for outfit in pair)
        members = list(dict.fromkeys([first, second, *neighbours]))
    return members[:size]


def crossed(rng: random.Random, size: int) -> list[Outfit]:
    """
    Distinct outfits of the train world whose attributes come from few parents.

    Every member has several neighbours one value away, as the targets of the benchmark have; among `look_alikes`
    only the centre has.
    """
    centre = sample_outfit(rng, world="train")
    parents = [centre, _parent(centre, rng)]
    members = [centre]
    attempts = 0
    while len(members) < size:
        attempts += 1
        if attempts % (8 * size) == 0:
            parents.append(mutate(centre, rng, 1))
        outfit = _child(parents, rng)
        if outfit is not None and outfit not in members and world_of(outfit) == "train":
            members.append(outfit)
    return members


def _parent(centre: Outfit, rng: random.Random) -> Outfit:
    """Three or four values away, often some of them exchanged between the garments."""
    exchanged = swap(centre, rng) if rng.random() < 0.5 else None
    return mutate(exchanged or centre, rng, 2 if exchanged else 2 + len(centre.garments))


def _child(parents: list[Outfit], rng: random.Random) -> Outfit | None:
    garments = []
    for same_slot in zip(*(parent.garments for parent in parents), strict=True):
        values = {field: getattr(rng.choice(same_slot), field) for field in FIELDS}
        try:
            garments.append(replace(same_slot[0], **values))
        except ValueError:  # the pocket would have its garment's own colour
            return None
    return Outfit(tuple(garments))


def family_outfits(seed: str) -> list[Outfit]:
    """The outfits of one family; the first `HUBS` have the most neighbours."""
    rng = random.Random(seed)
    kinds = {"paired": paired, "crossed": crossed, "look_alikes": look_alikes}
    kind = rng.choices(list(KIND_SHARES), weights=list(KIND_SHARES.values()))[0]
    return kinds[kind](rng, FAMILY_SIZE)


def draw_family(seed: str) -> Pool:
    """One family: most images share a shop, and with it the distractors."""
    outfits = family_outfits(seed)
    rng = random.Random(f"scenes/{seed}")
    shop = rng.getrandbits(32)
    images, labels, cover = [], [], []
    for outfit in outfits:
        own = rng.random() < LOOSE_SHARE
        drawing = draw(outfit, Scene(rng.getrandbits(32) if own else shop, rng.getrandbits(32)))
        images.append(np.asarray(drawing.image.resize((IMAGE_SIDE, IMAGE_SIDE), Image.Resampling.BICUBIC)))
        labels.append(token_labels(drawing.masks, GRID, GRID).reshape(-1))
        cover.append(np.stack([evidence_tokens(drawing.masks, [g], GRID, GRID).reshape(-1) for g in range(2)]))
    return Pool(outfits, np.stack(images), np.stack(labels).astype(np.uint8), np.stack(cover))


def draw_pool(name: str, families: int, seed: int, workers: int) -> Pool:
    """
    Draw a pool, or load it where it was drawn before. Outfits follow from the seeds, pixels are kept on disk.

    :param name: File name below `training/runs`.
    :param families: Number of families of `FAMILY_SIZE` images.
    :param seed: Seed of the pool.
    :param workers: Processes.
    """
    path = RUNS / f"{name}-{families}-{seed}.npz"
    seeds = [f"{name}/{seed}/{number}" for number in range(families)]
    if path.exists():
        stored = np.load(path)
        outfits = [outfit for s in seeds for outfit in family_outfits(s)]
        return Pool(outfits, stored["images"], stored["labels"], stored["cover"])
    with ProcessPoolExecutor(workers) as executor:
        parts = list(track(executor.map(draw_family, seeds, chunksize=2), f"drawing {name}", total=families))
    pool = Pool(
        [outfit for part in parts for outfit in part.outfits],
        np.concatenate([part.images for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.cover for part in parts]),
    )
    RUNS.mkdir(exist_ok=True)
    temporary = path.with_name(f"{path.stem}.part.npz")
    np.savez(temporary, images=pool.images, labels=pool.labels, cover=pool.cover)
    os.replace(temporary, path)
    return pool


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--families", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    print(draw_pool(arguments.name, arguments.families, arguments.seed, arguments.workers).images.shape)
