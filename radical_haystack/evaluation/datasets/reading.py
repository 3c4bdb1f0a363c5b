# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Reading annotation files and finding the images they name; whatever is wrong is told with its place."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

IMAGE_SUFFIXES = (".jpg", ".png", ".jpeg")
"""The endings of image files, the preferred one first."""

_DEPTH = 3  # the root, `images/` and `images/dress/`


class DatasetError(ValueError):
    """A data set that cannot be used; the message is one sentence that names the place and the reason."""


@dataclass(frozen=True)
class Record:
    """
    An entry of an annotation file, or a part of one, that knows its place.

    :param value: What stands there.
    :param file: Name of the file.
    :param number: Number of the entry, from 1; 0 for the file as a whole.
    :param field: The field within the entry; empty for the entry as a whole.
    """

    value: Any
    file: str
    number: int = 0
    field: str = ""

    def entries(self) -> list["Record"]:
        """
        The entries of this list.

        :raises DatasetError: If it is no list.
        """
        self._expect(list, "a list")
        if not self.number:
            return [Record(value, self.file, number) for number, value in enumerate(self.value, start=1)]
        return [
            Record(value, self.file, self.number, f"{self.field}[{place}]") for place, value in enumerate(self.value)
        ]

    def get(self, name: str) -> "Record":
        """
        A field of this object.

        :param name: The field's name.
        :raises DatasetError: If it is no object or has no such field.
        """
        self._expect(dict, "an object")
        field = f"{self.field}.{name}" if self.field else name
        if name not in self.value:
            raise DatasetError(f"{Record(None, self.file, self.number, field).place} is missing.")
        return Record(self.value[name], self.file, self.number, field)

    def text(self) -> str:
        """
        This text, without the white space around it.

        :raises DatasetError: If it is no text.
        """
        self._expect(str, "a text")
        return str(self.value).strip()

    def filled_text(self) -> str:
        """
        This text, without the white space around it.

        :raises DatasetError: If it is no text or a blank one.
        """
        text = self.text()
        if not text:
            raise self.error("expected a text that is not blank")
        return text

    def relative_path(self) -> PurePosixPath:
        """
        This path, which must stay below where it starts.

        :raises DatasetError: If it is no text, a blank one, or a path that leads elsewhere.
        """
        text = self.filled_text()
        windows = PureWindowsPath(text)
        if windows.anchor or not windows.parts or ".." in windows.parts or "\\" in text or "\0" in text:
            raise self.error(f"expected a path that stays below the root, found {text!r}")
        return PurePosixPath(text)

    def error(self, reason: str) -> DatasetError:
        """
        An error at this place.

        :param reason: What is wrong, without the full stop.
        """
        return DatasetError(f"{self.place}: {reason}.")

    @property
    def place(self) -> str:
        """Where this stands, in words."""
        record = f", record {self.number}" if self.number else ""
        field = f", field '{self.field}'" if self.field else ""
        return f"'{self.file}'{record}{field}"

    def _expect(self, kind: type, name: str) -> None:
        if not isinstance(self.value, kind):
            found = json.dumps(self.value)
            raise self.error(f"expected {name}, found {found if len(found) <= 60 else found[:57] + '...'}")


def read_json(root: Path, names: Sequence[str]) -> Record:
    """
    Read the first of the named files that is there.

    :param root: The data set's folder.
    :param names: Where the file may be, relative to the root, the usual place first.
    :returns: What it holds.
    :raises FileNotFoundError: If there is no such folder or file.
    :raises DatasetError: If it is not JSON in UTF-8.
    """
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder '{root}'.")
    name = find_file(root, names)
    if name is None:
        raise FileNotFoundError(f"There is no file '{names[0]}' in '{root}'.")
    try:
        return Record(json.loads((root / name).read_text(encoding="utf-8-sig")), name)
    except json.JSONDecodeError as error:
        raise DatasetError(f"'{name}', line {error.lineno}: the JSON is broken ({error.msg}).") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number without end, brackets without end
        raise DatasetError(f"'{name}' cannot be read as JSON ({error}).") from error


def find_file(root: Path, names: Sequence[str]) -> str | None:
    """
    The first of the named files that is there, or `None`.

    :param root: The data set's folder.
    :param names: Where it may be, relative to the root.
    """
    return next((name for name in names if (root / name).is_file()), None)


class ImageFinder:
    """The image files of a folder, its folders and their folders, by their names."""

    def __init__(self, root: Path) -> None:
        """
        Look what is there.

        :param root: The data set's folder.
        """
        self._root = root.resolve()
        self._paths: dict[str, list[str]] = {}
        folders = [root]
        for _ in range(_DEPTH):
            listings = [_listing(folder) for folder in folders]
            for path in (path for images, _ in listings for path in images):
                relative = path.relative_to(root).as_posix()
                self._paths.setdefault(path.name, []).append(relative)
                self._paths.setdefault(path.stem, []).append(relative)
            folders = [folder for _, inner in listings for folder in inner]

    def find(self, name: PurePosixPath, record: Record) -> str | None:
        """
        The path of an image, relative to the root.

        :param name: Its name, with or without an ending; a folder before it decides where the name is there twice.
        :param record: Where the annotations name it.
        :returns: The path, or `None` if there is no such image.
        :raises DatasetError: If a link leads out of the root.
        """
        paths = self._paths.get(name.name, [])
        if not paths:
            return None
        path = next((path for path in paths if f"/{path}".endswith(f"/{name}")), paths[0])
        if not (self._root / path).resolve().is_relative_to(self._root):
            raise record.error(f"the image '{path}' lies outside the root: a link leads out of it")
        return path


def _listing(folder: Path) -> tuple[list[Path], list[Path]]:
    """The images and the folders in a folder."""
    try:
        with os.scandir(folder) as scan:
            entries = list(scan)
    except PermissionError:  # such as `lost+found`; images in it count as missing
        return [], []
    images = [Path(e.path) for e in entries if Path(e.name).suffix.lower() in IMAGE_SUFFIXES and e.is_file()]
    folders = [Path(e.path) for e in entries if not e.name.startswith(".") and e.is_dir()]
    return sorted(images, key=lambda path: (IMAGE_SUFFIXES.index(path.suffix.lower()), path.name)), sorted(folders)
