# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The demo gallery: held-out outfits drawn into a folder, with their captions."""

import json
import os
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.progress import track

from radical_haystack.catalog.attributes import Outfit
from radical_haystack.catalog.drawing import Scene, draw
from radical_haystack.catalog.language import caption
from radical_haystack.catalog.sets import family

CAPTIONS_FILE = "captions.json"
FAMILY_SIZE = 4
SHOPS = 40


@dataclass(frozen=True)
class GalleryItem:
    """
    One picture of the gallery.

    :param name: File name without its ending.
    :param outfit: What it shows.
    :param scene: How it is drawn.
    :param caption: A description.
    """

    name: str
    outfit: Outfit
    scene: Scene
    caption: str


def gallery_items(count: int = 600, seed: int = 0) -> list[GalleryItem]:
    """
    List the gallery: distinct held-out outfits, in families of look-alikes, from a few dozen shops.

    :param count: Number of pictures; a smaller gallery is the beginning of a larger one.
    :param seed: Seed.
    :returns: The items.
    """
    rng = random.Random(f"gallery/{seed}")
    shops = [rng.getrandbits(32) for _ in range(SHOPS)]
    items: dict[Outfit, GalleryItem] = {}
    while len(items) < count:
        for outfit in family(rng, FAMILY_SIZE, "heldout"):
            scene = Scene(rng.choice(shops), rng.getrandbits(32))
            text = caption(outfit, rng)
            items.setdefault(outfit, GalleryItem(f"outfit-{len(items) + 1:04d}", outfit, scene, text))
    return list(items.values())[:count]


def write_gallery(folder: str | Path, count: int = 600) -> list[dict[str, Any]]:
    """
    Draw the gallery into a folder, with a progress bar. What an earlier, interrupted call has drawn is kept.

    :param folder: Where to; made if it does not exist.
    :param count: Number of pictures.
    :returns: The records that `captions.json` holds: `id`, `file` (relative to the folder), `caption` and `garments`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    items = gallery_items(count)
    missing = [item for item in items if not (folder / _file_name(item)).exists()]
    for item in track(missing, description="Drawing the gallery", disable=not missing):
        _write(folder / _file_name(item), item)
    records = [
        {
            "id": item.name,
            "file": _file_name(item),
            "caption": item.caption,
            "garments": [asdict(garment) for garment in item.outfit.garments],
        }
        for item in items
    ]
    # Written last: a folder that has it is complete.
    partial = folder / f".{CAPTIONS_FILE}.{os.getpid()}.part"
    partial.write_text(json.dumps(records, indent=1), encoding="utf-8")
    os.replace(partial, folder / CAPTIONS_FILE)
    return records


def is_gallery(folder: str | Path) -> bool:
    """
    Tell whether a folder of images is the drawn gallery: captions that name garments lie beside them.

    :param folder: The folder.
    """
    captions = Path(folder) / CAPTIONS_FILE
    return captions.is_file() and '"garments"' in captions.read_text(encoding="utf-8", errors="replace")


def _file_name(item: GalleryItem) -> str:
    return f"{item.name}.jpg"


def _write(path: Path, item: GalleryItem) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    draw(item.outfit, item.scene).image.save(partial, format="JPEG", quality=92)
    os.replace(partial, path)
