# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What a user brings to an audit: queries, and what images are grouped by."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from haystack import Document

from radical_haystack.evaluation.datasets.reading import DatasetError, Record, read_json

FILE_FIELD = "file_path"
"""The field of a metadata file that names the image."""
FOLDER_FIELD = "folder"
"""A field of every image in a subfolder: the first folder of its path."""

_OWN_FIELDS = {FILE_FIELD, "content_hash", "radical"}
"""Fields of documents that are no property of what they show."""


def read_queries(path: str | Path) -> list[str]:
    """
    Read queries. One that comes several times counts as often.

    :param path: `.json`: a list of texts, or of objects with a `query`; `.jsonl`: one of these a line; any other file:
        one query a line. Blank lines are passed over.
    :raises FileNotFoundError: If there is no such file.
    :raises DatasetError: If it is not such a file, or has no query.
    """
    path = Path(path)
    if path.suffix.lower() in (".json", ".jsonl"):
        records = _entries(path)
        queries = [(one.get("query") if isinstance(one.value, dict) else one).filled_text() for one in records]
    else:
        queries = [line.strip() for line in _text(path).splitlines() if line.strip()]
    if not queries:
        raise DatasetError(f"'{path.name}' has no queries.")
    return queries


def read_metadata(path: str | Path) -> dict[str, dict[str, Any]]:
    """
    Read fields of images.

    :param path: `.csv`: with a header and a column `file_path`; `.json`: an object of objects by `file_path`, or a list
        of objects with a `file_path`; `.jsonl`: one such object a line. Paths are relative to the indexed folder, as a
        search shows them.
    :returns: By file path, the fields.
    :raises FileNotFoundError: If there is no such file.
    :raises DatasetError: If it is not such a file, or names an image twice.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".csv":
        rows = _csv_rows(path)
    elif suffix in (".json", ".jsonl"):
        rows = _entries(path)
    else:
        raise DatasetError(f"Metadata is read from .csv, .json and .jsonl files, not from '{path.name}'.")
    fields: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = PurePosixPath(row.get(FILE_FIELD).filled_text()).as_posix()
        if name in fields:
            raise row.error(f"the image '{name}' is named a second time")
        fields[name] = {key: value for key, value in row.value.items() if key != FILE_FIELD}
    return fields


def groups_of(
    documents: Sequence[Document], field: str, metadata: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, str | None]:
    """
    Group images by a field: one of `metadata`, else one of the documents' own, else `FOLDER_FIELD`.

    :param documents: The documents; `meta["file_path"]` names each.
    :param field: The field.
    :param metadata: By file path, fields of images.
    :returns: By file path, the field's value as text; `None` for an image that does not have the field.
    :raises ValueError: If no document has the field, or one has several values of it.
    """
    known: set[str] = set()
    groups: dict[str, str | None] = {}
    for document in documents:
        name = file_of(document)
        fields = {**_folder(name), **document.meta, **(metadata or {}).get(name, {})}
        known |= fields.keys()
        groups[name] = _group(name, field, fields.get(field))
    if not any(groups.values()):
        others = ", ".join(f"'{other}'" for other in sorted(known - _OWN_FIELDS - {field})) or "none"
        raise ValueError(f"No image has the field '{field}'; fields that there are: {others}.")
    return groups


def file_of(document: Document) -> str:
    """
    What an audit calls a document.

    :param document: The document.
    """
    return str(document.meta.get(FILE_FIELD, document.id))


def _folder(name: str) -> dict[str, str]:
    parts = PurePosixPath(name).parts
    return {FOLDER_FIELD: parts[0]} if len(parts) > 1 else {}


def _group(name: str, field: str, value: Any) -> str | None:
    if isinstance(value, Mapping | list | tuple | set):
        raise ValueError(f"The image '{name}' has no single value of the field '{field}': an audit needs one for each.")
    text = "" if value is None else str(value).strip()
    return text or None


def _entries(path: Path) -> list[Record]:
    """The entries of a JSON or JSON Lines file; of an object by file path, each with its path."""
    if path.suffix.lower() == ".json":
        whole = read_json(path.parent, [path.name])
        if not isinstance(whole.value, Mapping):
            return whole.entries()
        named = [(name, whole.get(name)) for name in whole.value]
        return [
            Record(
                {**record.value, FILE_FIELD: name} if isinstance(record.value, dict) else record.value,
                path.name,
                number,
            )
            for number, (name, record) in enumerate(named, start=1)
        ]
    records = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip():
            try:
                records.append(Record(json.loads(line), path.name, number))
            except ValueError as error:
                raise DatasetError(f"'{path.name}', line {number}: the JSON is broken ({error}).") from error
    return records


def _csv_rows(path: Path) -> list[Record]:
    reader = csv.DictReader(_text(path).splitlines(keepends=True), strict=True)
    try:
        rows = [Record(row, path.name, number) for number, row in enumerate(reader, start=1)]
    except csv.Error as error:
        raise DatasetError(f"'{path.name}', line {reader.line_num + 1}: the CSV is broken ({error}).") from error
    for row in rows:
        if None in row.value or None in row.value.values():
            raise row.error(f"expected {len(reader.fieldnames or ())} values, as the header has")
    return rows


def _text(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}'.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"'{path.name}' is not text in UTF-8 ({error.reason} at byte {error.start}).") from error
