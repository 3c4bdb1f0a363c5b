# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Flickr30K and MSCOCO as split by Karpathy & Fei-Fei (CVPR 2015): captions, each the query for its image."""

from pathlib import Path

from haystack import Document

from radical_haystack.evaluation.datasets.base import Dataset, DatasetQuery
from radical_haystack.evaluation.datasets.reading import ImageFinder, read_json


def load_flickr30k(root: str | Path, *, queries: int = 1000, seed: int = 42) -> Dataset:
    """
    Load queries of the test split of Flickr30K. Parameters, ids and errors are those of `load_mscoco`.

    :param root: The folder with `dataset_flickr30k.json` and the images, such as `flickr30k-images/1007129816.jpg`.
    :param queries: How many captions to sample.
    :param seed: Seed of the sampling.
    :returns: The data set.
    """
    return _load("flickr30k", "dataset_flickr30k.json", Path(root), queries, seed)


def load_mscoco(root: str | Path, *, queries: int = 1000, seed: int = 42) -> Dataset:
    """
    Load queries of the test split of MSCOCO.

    The paper ranks 1,000 queries with 20 candidates each. The queries are captions sampled from all captions of the
    test split, the images all images of the test split, the candidates the first stage's best 20 [choice]. A
    document's id is its file's name, a query's that of its image with the number of the caption from 0, such as
    `COCO_val2014_000000391895.jpg#0`.

    :param root: The folder with `dataset_coco.json`, which may lie in `annotations/` or `karpathy/`, and the images: in
        it, or in its folders, or in theirs, such as `val2014/COCO_val2014_000000391895.jpg`.
    :param queries: How many captions to sample; all of them if there are not more.
    :param seed: Seed of the sampling.
    :returns: The data set. Images that are not there are in `missing`; their queries stay.
    :raises FileNotFoundError: If there is no such folder or file.
    :raises DatasetError: If the file is not what it should be, or an image's path leads out of the root.
    """
    return _load("mscoco", "dataset_coco.json", Path(root), queries, seed)


def _load(name: str, file: str, root: Path, count: int, seed: int) -> Dataset:
    content = read_json(root, [file, f"annotations/{file}", f"karpathy/{file}"])
    finder = ImageFinder(root)
    documents: dict[str, Document] = {}
    missing: dict[str, Document] = {}
    queries: list[DatasetQuery] = []
    qrels: dict[str, dict[str, int]] = {}
    for record in content.get("images").entries():
        if record.get("split").text() != "test":
            continue
        path = record.get("filename").relative_path()
        if "filepath" in record.value:
            path = record.get("filepath").relative_path() / path
        found = finder.find(path, record.get("filename"))
        document = Document(id=path.name, meta={"file_path": found or str(path), "name": str(path)})
        if document.id in documents or document.id in missing:
            raise record.get("filename").error(f"the image {path.name!r} is named twice")
        (documents if found else missing)[document.id] = document
        for number, sentence in enumerate(record.get("sentences").entries()):
            query = DatasetQuery(id=f"{document.id}#{number}", text=sentence.get("raw").filled_text())
            queries.append(query)
            qrels[query.id] = {document.id: 1}
    if not queries:
        raise content.get("images").error("no image of the split 'test' has a caption")
    return Dataset(
        name=name,
        root=str(root),
        documents=tuple(documents.values()),
        queries=tuple(queries),
        qrels=qrels,
        missing=tuple(missing.values()),
    ).sample(count, seed=seed)
