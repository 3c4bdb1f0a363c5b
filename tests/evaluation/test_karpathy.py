# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Flickr30K and MSCOCO: what is read from Karpathy's files, and the sampling of queries."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from radical_haystack.evaluation import DatasetError, load_dataset, load_flickr30k, load_mscoco
from tests.evaluation.conftest import write_image, write_json

FLICKR, COCO = "dataset_flickr30k.json", "dataset_coco.json"


def test_flickr30k(write_karpathy: Callable[..., Path]) -> None:
    dataset = load_flickr30k(write_karpathy(FLICKR, images="flickr30k-images"))
    assert [document.id for document in dataset.documents] == ["1.jpg", "2.jpg", "3.jpg"]
    assert dataset.documents[0].meta == {"file_path": "flickr30k-images/1.jpg", "name": "1.jpg"}
    assert [(query.id, query.text) for query in dataset.queries] == [
        ("1.jpg#0", "a dog runs ."),
        ("1.jpg#1", "the dog"),
        ("2.jpg#0", "two men"),
        ("2.jpg#1", "people on a road"),
        ("2.jpg#2", "men walk"),
        ("3.jpg#0", "a red car"),
    ]
    assert dataset.qrels["2.jpg#1"] == {"2.jpg": 1}
    assert dataset.categories == {}
    assert all(query.reference is None for query in dataset.queries)
    assert (dataset.candidates_per_query, dataset.pool_size) == (20, 20)
    assert dataset.image(dataset.documents[2]).size == (40, 48)
    summary = dataset.summary()
    assert (summary["queries"], summary["queries_by_category"], summary["images"]) == (6, {}, 3)


@pytest.mark.parametrize("folder", [".", "images"])
@pytest.mark.parametrize("annotations", ["", "annotations/", "karpathy/"])
def test_mscoco_has_a_folder_for_each_year(write_karpathy: Callable[..., Path], folder: str, annotations: str) -> None:
    root = write_karpathy(annotations + COCO, filepath="val2014", images=folder)
    write_image(root / "a-copy/1.jpg")
    dataset = load_mscoco(root)
    assert dataset.missing == ()
    assert dataset.documents[0].meta["name"] == "val2014/1.jpg"
    assert dataset.documents[0].meta["file_path"] == (Path(folder) / "val2014/1.jpg").as_posix()


def test_images_may_lie_in_one_folder_in_spite_of_filepath(write_karpathy: Callable[..., Path]) -> None:
    root = write_karpathy(COCO, filepath="val2014", images="images")
    (root / "images/val2014").rename(root / "all")
    assert load_mscoco(root).documents[0].meta["file_path"] == "all/1.jpg"


def test_missing_images(write_karpathy: Callable[..., Path]) -> None:
    root = write_karpathy(COCO, filepath="val2014")
    (root / "images/val2014/2.jpg").unlink()
    summary = load_mscoco(root).summary()
    assert (summary["queries"], summary["images"], summary["missing_images"]) == (6, 2, 1)
    assert summary["missing_image_names"] == ["val2014/2.jpg"]
    assert summary["queries_without_target"] == 3


def test_sampling(write_karpathy: Callable[..., Path]) -> None:
    root = write_karpathy(FLICKR)
    everything = load_flickr30k(root)
    samples = [load_flickr30k(root, queries=3, seed=seed) for seed in range(20)]
    for sample in samples:
        ids = [query.id for query in sample.queries]
        assert len(set(ids)) == 3
        assert ids == [query.id for query in everything.queries if query.id in ids]
        assert set(sample.qrels) == set(ids)
        assert sample.documents == everything.documents
    assert samples[4] == load_flickr30k(root, queries=3, seed=4)
    assert len({tuple(sample.qrels) for sample in samples}) > 5
    with pytest.raises(ValueError, match="At least 1 query"):
        load_flickr30k(root, queries=0)


def test_a_thousand_queries_are_sampled(tmp_path: Path) -> None:
    sentences = [{"raw": f"caption {number}"} for number in range(5)]
    images = [{"filename": f"{n}.jpg", "split": "test", "sentences": sentences} for n in range(300)]
    write_json(tmp_path / FLICKR, {"images": images})
    dataset = load_flickr30k(tmp_path)
    assert len(dataset.queries) == 1000
    assert len(dataset.missing) == 300


@pytest.mark.parametrize(
    ("edit", "parts"),
    [
        (lambda c: c.pop("images"), ["'images'", "missing"]),
        (lambda c: c.update(images={}), ["'images'", "a list"]),
        (lambda c: c.update(images=[]), ["'images'", "no image of the split 'test'"]),
        (lambda c: c["images"].insert(0, 3), ["record 1", "an object", "3"]),
        (lambda c: c["images"][1].pop("split"), ["record 2", "'split'", "missing"]),
        (lambda c: c["images"][1].update(filename=3), ["record 2", "'filename'", "a text", "3"]),
        (lambda c: c["images"][1].update(filename="../1.jpg"), ["record 2", "'filename'", "'../1.jpg'", "root"]),
        (lambda c: c["images"][1].update(filename="/1.jpg"), ["record 2", "'filename'", "'/1.jpg'", "root"]),
        (lambda c: c["images"][1].update(filepath="a/../.."), ["record 2", "'filepath'", "'a/../..'", "root"]),
        (lambda c: c["images"][3].update(filename="1.jpg"), ["record 4", "'filename'", "'1.jpg'", "twice"]),
        (lambda c: c["images"][3].update(sentences=None), ["record 4", "'sentences'", "a list", "null"]),
        (lambda c: c["images"][3]["sentences"].insert(1, "hi"), ["record 4", "'sentences[1]'", "an object"]),
        (lambda c: c["images"][3]["sentences"][2].pop("raw"), ["record 4", "'sentences[2].raw'", "missing"]),
        (lambda c: c["images"][3]["sentences"][2].update(raw=" "), ["record 4", "'sentences[2].raw'", "not blank"]),
    ],
)
def test_schema_errors(write_karpathy: Callable[..., Path], edit: Callable[[Any], Any], parts: list[str]) -> None:
    root = write_karpathy(FLICKR)
    content = json.loads((root / FLICKR).read_text(encoding="utf-8"))
    edit(content)
    write_json(root / FLICKR, content)
    with pytest.raises(DatasetError) as error:
        load_flickr30k(root)
    for part in [FLICKR, *parts]:
        assert part in str(error.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=COCO):
        load_mscoco(tmp_path)


def test_by_name(write_karpathy: Callable[..., Path]) -> None:
    root = write_karpathy(FLICKR)
    assert load_dataset("flickr30k", root) == load_flickr30k(root)
    with pytest.raises(ValueError, match="'flickr8k'; known: fashioniq, flickr30k, mscoco"):
        load_dataset("flickr8k", root)
