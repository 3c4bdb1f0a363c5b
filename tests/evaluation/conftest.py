# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Small data sets in the files that their authors publish."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

FASHIONIQ_SPLITS = {
    "dress": ["D1", "D2", "D3", "D4"],
    "shirt": ["S1", "S2", "BOTH"],
    "toptee": ["T1", "BOTH"],
}
FASHIONIQ_CAPTIONS = {
    "dress": [
        {"target": "D1", "candidate": "D2", "captions": ["is shiny and silver ", "fit and flare"]},
        {"target": "D3", "candidate": "D4", "captions": ["", "is a solid red color"]},
        {"target": "D2", "candidate": "D1", "captions": ["is blue", "is longer"]},
    ],
    "shirt": [{"target": "S1", "candidate": "BOTH", "captions": ["is grey", "has dots"]}],
    "toptee": [{"target": "BOTH", "candidate": "T1", "captions": ["has stripes", "is green"]}],
}
KARPATHY = [
    ("train", "5.jpg", ["a cat"]),
    ("test", "1.jpg", ["a dog runs .", "the dog\n"]),
    ("val", "6.jpg", ["a bird"]),
    ("test", "2.jpg", ["two men", "people on a road", "men walk"]),
    ("test", "3.jpg", ["a red car"]),
]


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_image(path: Path, shade: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 48), (shade % 256, 200, 90)).save(path)
    return path


def names_of(splits: dict[str, list[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in splits.values() for name in names))


@pytest.fixture
def fashioniq(tmp_path: Path) -> Path:
    """FashionIQ's annotations and all images, in the usual folders."""
    root = tmp_path / "fashioniq"
    for category, names in FASHIONIQ_SPLITS.items():
        write_json(root / f"image_splits/split.{category}.val.json", names)
        write_json(root / f"captions/cap.{category}.val.json", FASHIONIQ_CAPTIONS[category])
    for number, name in enumerate(names_of(FASHIONIQ_SPLITS)):
        write_image(root / f"images/{name}.jpg", 20 * number)
    return root


@pytest.fixture
def write_karpathy(tmp_path: Path) -> Callable[..., Path]:
    """Writes annotations as Karpathy's files have them, and the images of the test split."""

    def write(file: str, *, filepath: str | None = None, images: str = "images") -> Path:
        root, records, sentid = tmp_path / "karpathy", [], 0
        for imgid, (split, name, texts) in enumerate(KARPATHY):
            sentences = []
            for text in texts:
                sentences.append({"tokens": text.split(), "raw": text, "imgid": imgid, "sentid": sentid})
                sentid += 1
            sentids = [sentence["sentid"] for sentence in sentences]
            record: dict[str, Any] = {"sentids": sentids, "imgid": imgid, "sentences": sentences, "split": split}
            record["filename"] = name
            if filepath is not None:
                record |= {"filepath": filepath, "cocoid": 1000 + imgid}
            records.append(record)
            if split == "test":
                write_image(root / images / (filepath or ".") / name, 20 * imgid)
        write_json(root / file, {"images": records, "dataset": "any"})
        return root

    return write
