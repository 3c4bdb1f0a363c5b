# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What a user brings to an audit: files in all forms, and mistakes in them."""

import json
from pathlib import Path

import pytest
from haystack import Document

from radical_haystack.evaluation.audit_files import groups_of, read_metadata, read_queries

QUERIES = ["a red shirt", "einen Rock, blau", "a red shirt"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("queries.txt", "a red shirt\n\n  einen Rock, blau \r\na red shirt"),
        ("queries", "\ufeffa red shirt\neinen Rock, blau\na red shirt\n"),
        ("queries.json", json.dumps(QUERIES)),
        ("queries.JSON", json.dumps([{"query": text, "id": 3} for text in QUERIES])),
        ("queries.jsonl", "\n".join(json.dumps(text) for text in QUERIES)),
        ("queries.jsonl", "\n\n".join(json.dumps({"query": text}, ensure_ascii=False) for text in QUERIES)),
    ],
)
def test_queries(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_queries(tmp_path / name) == QUERIES


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("q.txt", b" \n", ["'q.txt' has no queries"]),
        ("q.txt", b"caf\xe9", ["'q.txt' is not text in UTF-8", "byte 3"]),
        ("q.json", b"[]", ["no queries"]),
        ("q.json", b'["a", 3]', ["record 2", "text"]),
        ("q.json", b'[{"text": "a"}]', ["record 1", "'query'", "missing"]),
        ("q.json", b'["a"', ["'q.json'", "broken"]),
        ("q.jsonl", b'"a"\n{"query": " "}', ["record 2", "'query'", "blank"]),
        ("q.jsonl", b'"a"\n{', ["'q.jsonl', line 2", "broken"]),
    ],
)
def test_mistakes_in_queries_are_named(tmp_path: Path, name: str, content: bytes, parts: list[str]) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="q.") as error:
        read_queries(tmp_path / name)
    assert all(part in str(error.value) for part in parts), str(error.value)


@pytest.mark.parametrize("name", ["none.txt", "none.json", "none.jsonl"])
def test_files_that_are_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=name):
        read_queries(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv", "file_path,brand,price\na.png,Ada,3\n./more/b.png,,4\n"),
        ("m.csv", '\ufeffbrand,file_path,price\r\n"Ada",a.png,3\r\n"",more/b.png,4\r\n'),
        ("m.json", '{"a.png": {"brand": "Ada", "price": "3"}, "more/b.png": {"brand": "", "price": "4"}}'),
        ("m.json", '[{"file_path": "a.png", "brand": "Ada", "price": "3"},'
                   '{"file_path": "more/b.png", "brand": "", "price": "4"}]'),
        ("m.jsonl", '{"file_path": "a.png", "brand": "Ada", "price": "3"}\n\n'
                    '{"file_path": "more/b.png", "brand": "", "price": "4"}'),
    ],
)  # fmt: skip
def test_metadata(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    expected = {"a.png": {"brand": "Ada", "price": "3"}, "more/b.png": {"brand": "", "price": "4"}}
    assert read_metadata(tmp_path / name) == expected


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("m.txt", "x", ["m.txt", ".csv"]),
        ("m.csv", "path,brand\na.png,Ada\n", ["record 1", "'file_path'", "missing"]),
        ("m.csv", "file_path,brand\na.png,Ada\na.png,Bea\n", ["record 2", "'a.png'", "second time"]),
        ("m.csv", "file_path,brand\na.png\n", ["record 1", "2 values"]),
        ("m.csv", "file_path,brand\na.png,Ada,3\n", ["record 1", "2 values"]),
        ("m.csv", 'file_path,brand\na.png,"Ada\n', ["'m.csv', line 2", "broken"]),
        ("m.csv", "file_path,brand\n ,Ada\n", ["record 1", "blank"]),
        ("m.json", '{"a.png": "Ada"}', ["record 1", "object"]),
        ("m.json", "3", ["'m.json'", "a list"]),
        ("m.jsonl", '["a.png"]', ["record 1", "object"]),
    ],
)
def test_mistakes_in_metadata_are_named(tmp_path: Path, name: str, text: str, parts: list[str]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="m.") as error:
        read_metadata(tmp_path / name)
    assert all(part in str(error.value) for part in parts), str(error.value)


def document(path: str, **meta: object) -> Document:
    return Document(meta={"file_path": path, "content_hash": "x", **meta})


def test_fields_come_from_the_file_then_the_document_then_the_folder() -> None:
    documents = [document("x/y/a.png"), document("x/b.png", folder="own"), document("c.png"), document("z/d.png")]
    assert groups_of(documents, "folder", {"z/d.png": {"folder": "given"}}) == {
        "x/y/a.png": "x",
        "x/b.png": "own",
        "c.png": None,
        "z/d.png": "given",
    }
    numbered = [document("a.png", year=1999), document("b.png", year=0), document("c.png", year=" ")]
    assert groups_of(numbered, "year") == {"a.png": "1999", "b.png": "0", "c.png": None}


def test_fields_that_nobody_has_or_somebody_has_several_times() -> None:
    documents = [document("x/a.png", brand="Ada")]
    with pytest.raises(ValueError, match="the field 'colour'; fields that there are: 'brand', 'folder', 'size'."):
        groups_of(documents, "colour", {"x/a.png": {"size": 3}, "other.png": {"colour": "red"}})
    with pytest.raises(ValueError, match="there are: none"):
        groups_of([document("a.png")], "folder")
    with pytest.raises(ValueError, match="'x/a.png' has no single value of the field 'brand'"):
        groups_of(documents, "brand", {"x/a.png": {"brand": ["Ada", "Bea"]}})
