# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""FashionIQ (Wu et al., CVPR 2021): a reference image and what shall be different, in three categories of clothes."""

from pathlib import Path

from haystack import Document

from radical_haystack.evaluation.datasets.base import Dataset, DatasetQuery
from radical_haystack.evaluation.datasets.reading import ImageFinder, Record, find_file, read_json

CATEGORIES = ("dress", "shirt", "toptee")


def load_fashioniq(root: str | Path) -> Dataset:
    """
    Load the validation split of FashionIQ.

    A query's text is what its annotators wrote, joined by " and ", without blank ones [choice]. Each category has its
    own images, so an image that two categories name is a document in each: ids are such as `dress/B0084Y8XIU`. Query
    ids count the entries of the caption files: `dress/1`. A category without any file has no queries.

    :param root: The folder with `captions/cap.{dress,shirt,toptee}.val.json` and
        `image_splits/split.{dress,shirt,toptee}.val.json`, or these files themselves, and the images: in it, or in its
        folders, or in theirs, named `.jpg`, `.png` or `.jpeg`.
    :returns: The data set. Images that are not there are in `missing`; their queries stay.
    :raises FileNotFoundError: If there is no such folder, or a file is missing.
    :raises DatasetError: If a file is not what it should be, or an image's path leads out of the root.
    """
    root = Path(root)
    here = [category for category in CATEGORIES if find_file(root, [*_captions(category), *_split(category)])]
    finder: ImageFinder | None = None
    documents: dict[str, Document] = {}
    missing: dict[str, Document] = {}
    queries: list[DatasetQuery] = []
    qrels: dict[str, dict[str, int]] = {}
    for category in here or CATEGORIES[:1]:  # where nothing is found, reading tells what is missed
        captions, split = read_json(root, _captions(category)), read_json(root, _split(category))
        finder = finder or ImageFinder(root)
        for record in split.entries():
            document, found = _document(record, category, finder)
            if document.id in documents or document.id in missing:
                raise record.error(f"the image {record.text()!r} is named twice")
            (documents if found else missing)[document.id] = document
        known = documents | missing
        for record in captions.entries():
            query = DatasetQuery(
                id=f"{category}/{record.number}",
                text=_joined(record.get("captions")),
                category=category,
                reference=_named(record.get("candidate"), category, known, split.file),
            )
            queries.append(query)
            qrels[query.id] = {_named(record.get("target"), category, known, split.file).id: 1}
    return Dataset(
        name="fashioniq",
        root=str(root),
        documents=tuple(documents.values()),
        queries=tuple(queries),
        qrels=qrels,
        missing=tuple(missing.values()),
        pool_size=50,
    )


def _captions(category: str) -> list[str]:
    return [f"captions/cap.{category}.val.json", f"cap.{category}.val.json"]


def _split(category: str) -> list[str]:
    return [f"image_splits/split.{category}.val.json", f"split.{category}.val.json"]


def _document(record: Record, category: str, finder: ImageFinder) -> tuple[Document, bool]:
    """The document of an image, and whether its file is there."""
    name = record.relative_path()
    if len(name.parts) > 1:
        raise record.error(f"expected the name of an image, found the path {record.text()!r}")
    path = finder.find(name, record)
    meta = {"file_path": path or f"{name}.jpg", "name": str(name), "category": category}
    return Document(id=f"{category}/{name}", meta=meta), path is not None


def _named(record: Record, category: str, known: dict[str, Document], split: str) -> Document:
    document = known.get(f"{category}/{record.filled_text()}")
    if document is None:
        raise record.error(f"expected an image that '{split}' names, found {record.text()!r}")
    return document


def _joined(captions: Record) -> str:
    texts = [text for text in (entry.text() for entry in captions.entries()) if text]
    if not texts:
        raise captions.error("expected at least one text that is not blank")
    return " and ".join(texts)
