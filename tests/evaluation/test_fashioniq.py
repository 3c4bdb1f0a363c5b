# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""FashionIQ: what is read from its files, and what is said when something is wrong with them."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from radical_haystack.evaluation import DatasetError, load_fashioniq
from tests.evaluation.conftest import FASHIONIQ_SPLITS, names_of, write_image, write_json

CAPTIONS, SPLIT = "captions/cap.dress.val.json", "image_splits/split.dress.val.json"


def change(path: Path, edit: Callable[[Any], Any]) -> None:
    """Edit the content of a JSON file in place."""
    content = json.loads(path.read_text(encoding="utf-8"))
    edit(content)
    write_json(path, content)


def refused(root: Path) -> str:
    with pytest.raises(DatasetError) as error:
        load_fashioniq(root)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_queries(fashioniq: Path) -> None:
    dataset = load_fashioniq(fashioniq)
    assert [query.id for query in dataset.queries] == ["dress/1", "dress/2", "dress/3", "shirt/1", "toptee/1"]
    first, second = dataset.queries[:2]
    assert first.text == "is shiny and silver and fit and flare"
    assert second.text == "is a solid red color"
    assert [query.category for query in dataset.queries] == ["dress"] * 3 + ["shirt", "toptee"]
    assert first.reference is not None
    assert first.reference.id == "dress/D2"
    assert dataset.qrels["dress/1"] == {"dress/D1": 1}
    assert dataset.candidates == {}
    assert (dataset.candidates_per_query, dataset.pool_size) == (20, 50)


def test_documents(fashioniq: Path) -> None:
    dataset = load_fashioniq(fashioniq)
    assert [d.id for d in dataset.documents] == [f"{c}/{n}" for c, names in FASHIONIQ_SPLITS.items() for n in names]
    both = [document for document in dataset.documents if document.meta["name"] == "BOTH"]
    assert [document.meta["category"] for document in both] == ["shirt", "toptee"]
    assert {document.meta["file_path"] for document in both} == {"images/BOTH.jpg"}
    assert all(dataset.image(document).size == (40, 48) for document in dataset.documents)
    assert dataset.image(dataset.queries[0].reference).size == (40, 48)


def test_summary(fashioniq: Path) -> None:
    assert load_fashioniq(fashioniq).summary() == {
        "queries": 5,
        "queries_by_category": {"dress": 3, "shirt": 1, "toptee": 1},
        "images": 8,
        "missing_images": 0,
        "missing_image_names": [],
        "candidates": 20,
        "pool": 50,
        "queries_without_reference": 0,
        "queries_without_target": 0,
    }


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".jpeg", ".JPG"])
@pytest.mark.parametrize("folder", [".", "images", "images/dress", "resized_image"])
def test_layouts(fashioniq: Path, folder: str, suffix: str) -> None:
    shutil.rmtree(fashioniq / "images")
    for name in names_of(FASHIONIQ_SPLITS):
        write_image(fashioniq / folder / f"{name}{suffix}")
    assert load_fashioniq(fashioniq).summary()["missing_images"] == 0


def test_annotations_in_the_root_itself(fashioniq: Path) -> None:
    expected = load_fashioniq(fashioniq)
    for path in [*fashioniq.glob("captions/*"), *fashioniq.glob("image_splits/*")]:
        path.rename(fashioniq / path.name)
    assert load_fashioniq(fashioniq) == expected


def test_one_image_is_taken_of_several(fashioniq: Path) -> None:
    write_image(fashioniq / "images/D1.png")
    write_image(fashioniq / "thumbnails/D1.jpg")
    assert load_fashioniq(fashioniq).documents[0].meta["file_path"] == "images/D1.jpg"


def test_missing_images_are_named_and_their_queries_stay(fashioniq: Path) -> None:
    (fashioniq / "images/D1.jpg").unlink()
    (fashioniq / "images/BOTH.jpg").unlink()
    dataset = load_fashioniq(fashioniq)
    summary = dataset.summary()
    assert summary["queries"] == 5
    assert (summary["images"], summary["missing_images"]) == (6, 2)
    assert summary["missing_image_names"] == ["D1", "BOTH"]
    assert summary["queries_without_target"] == 2  # dress/1 and toptee/1
    assert summary["queries_without_reference"] == 2  # dress/3 and shirt/1
    assert [document.id for document in dataset.missing] == ["dress/D1", "shirt/BOTH", "toptee/BOTH"]
    assert dataset.queries[2].reference is not None
    with pytest.raises(ValueError, match="D1.jpg"):
        dataset.image(dataset.queries[2].reference)
    part = dataset.of_category("toptee").summary()
    assert (part["queries"], part["images"], part["missing_image_names"]) == (1, 1, ["BOTH"])


def test_no_images_at_all(fashioniq: Path) -> None:
    shutil.rmtree(fashioniq / "images")
    summary = load_fashioniq(fashioniq).summary()
    assert (summary["queries"], summary["images"], summary["missing_images"]) == (5, 0, 8)


def test_a_category_may_be_absent(fashioniq: Path) -> None:
    for path in fashioniq.rglob("*shirt*"):
        path.unlink()
    assert load_fashioniq(fashioniq).summary()["queries_by_category"] == {"dress": 3, "toptee": 1}


@pytest.mark.parametrize("name", [CAPTIONS, SPLIT])
def test_half_a_category_is_refused(fashioniq: Path, name: str) -> None:
    (fashioniq / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        load_fashioniq(fashioniq)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=CAPTIONS):
        load_fashioniq(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder '.*nowhere'"):
        load_fashioniq(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "edit", "parts"),
    [
        (CAPTIONS, lambda c: c[1].pop("target"), ["record 2", "'target'", "missing"]),
        (CAPTIONS, lambda c: c[1].update(target=7), ["record 2", "'target'", "a text", "7"]),
        (CAPTIONS, lambda c: c[1].update(target=" "), ["record 2", "'target'", "not blank"]),
        (CAPTIONS, lambda c: c[2].update(candidate=None), ["record 3", "'candidate'", "a text", "null"]),
        (CAPTIONS, lambda c: c[2].update(candidate="S1"), ["record 3", "'candidate'", SPLIT, "'S1'"]),
        (CAPTIONS, lambda c: c[0].update(captions="is red"), ["record 1", "'captions'", "a list", "is red"]),
        (CAPTIONS, lambda c: c[0].update(captions=["a", 1]), ["record 1", "'captions[1]'", "a text"]),
        (CAPTIONS, lambda c: c[0].update(captions=[" ", ""]), ["record 1", "'captions'", "not blank"]),
        (CAPTIONS, lambda c: c[0].update(captions=[]), ["record 1", "'captions'", "not blank"]),
        (CAPTIONS, lambda c: c.append("D1"), ["record 4", "an object", "D1"]),
        (SPLIT, lambda c: c.append(5), ["record 5", "a text", "5"]),
        (SPLIT, lambda c: c.append(""), ["record 5", "not blank"]),
        (SPLIT, lambda c: c.append("D1"), ["record 5", "'D1'", "twice"]),
        (SPLIT, lambda c: c.append("../D9"), ["record 5", "'../D9'", "below the root"]),
        (SPLIT, lambda c: c.append("/etc/passwd"), ["record 5", "'/etc/passwd'", "below the root"]),
        (SPLIT, lambda c: c.append("C:\\D9"), ["record 5", "D9", "below the root"]),
        (SPLIT, lambda c: c.append("a\0b"), ["record 5", "below the root"]),
        (SPLIT, lambda c: c.append("more/D9"), ["record 5", "'more/D9'", "name of an image"]),
        (SPLIT, lambda c: c.append("."), ["record 5", "'.'"]),
    ],
)
def test_schema_errors_name_file_record_and_field(
    fashioniq: Path, file: str, edit: Callable[[Any], Any], parts: list[str]
) -> None:
    change(fashioniq / file, edit)
    message = refused(fashioniq)
    for part in [file, *parts]:
        assert part in message
    assert len(message) < 200


@pytest.mark.parametrize("content", [{"data": []}, "x" * 1000, None, 5])
@pytest.mark.parametrize("file", [CAPTIONS, SPLIT])
def test_a_file_must_hold_a_list(fashioniq: Path, file: str, content: Any) -> None:
    write_json(fashioniq / file, content)
    message = refused(fashioniq)
    assert f"'{file}': expected a list" in message
    assert len(message) < 200


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b'[\n "D1",\n "D2"\n "D3"]', ["line 4"]),
        (b"", ["line 1"]),
        (b"\xff\xfe[]", ["cannot be read as JSON"]),
        (b"[" * 100_000, ["cannot be read as JSON"]),
        (b"[" + b"9" * 5000 + b"]", ["cannot be read as JSON"]),
    ],
)
def test_broken_json_names_file_and_line(fashioniq: Path, content: bytes, parts: list[str]) -> None:
    (fashioniq / SPLIT).write_bytes(content)
    message = refused(fashioniq)
    for part in [SPLIT, *parts]:
        assert part in message


def test_byte_order_mark(fashioniq: Path) -> None:
    path = fashioniq / SPLIT
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_fashioniq(fashioniq).summary()["queries"] == 5


def test_a_link_out_of_the_root_is_refused(fashioniq: Path, tmp_path: Path) -> None:
    outside = write_image(tmp_path / "outside.jpg")
    (fashioniq / "images/D2.jpg").unlink()
    os.symlink(outside, fashioniq / "images/D2.jpg")
    message = refused(fashioniq)
    for part in (SPLIT, "record 2", "images/D2.jpg", "outside the root"):
        assert part in message


def test_a_broken_link_is_a_missing_image(fashioniq: Path) -> None:
    (fashioniq / "images/D2.jpg").unlink()
    os.symlink("nowhere.jpg", fashioniq / "images/D2.jpg")
    assert load_fashioniq(fashioniq).summary()["missing_image_names"] == ["D2"]


def test_of_category(fashioniq: Path) -> None:
    part = load_fashioniq(fashioniq).of_category("dress")
    assert len(part.queries) == 3
    assert {document.meta["category"] for document in part.documents} == {"dress"}
    assert set(part.qrels) == {query.id for query in part.queries}
    with pytest.raises(ValueError, match="'hat'.*dress, shirt, toptee"):
        load_fashioniq(fashioniq).of_category("hat")
