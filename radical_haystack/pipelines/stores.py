# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
A FAISS store in a folder that survives a kill at any moment.

`index.faiss` and `index.json` are what `FAISSDocumentStore` saves, `store.json` says what made them. While documents
are added, each batch is appended to `journal.jsonl`, which costs the same however large the store is. Where a journal
is found, the last writer was killed: its batches are taken over, and the FAISS index is made anew from the embeddings.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.components.retrievers import StoreError
from radical_haystack.pipelines.first_stages import EmbedderPair, FirstStage

_ABOUT, _INDEX, _JOURNAL = "store.json", "index", "journal.jsonl"


@dataclass(frozen=True)
class StoreInfo:
    """
    What made a store.

    :param first_stage: Name of the first stage that embedded its documents.
    :param dimension: Length of the embeddings.
    :param root_path: The folder of the images, absolute; document paths are relative to it.
    :param weights_digest: The first stage's `weights_digest`.
    """

    first_stage: str
    dimension: int
    root_path: str
    weights_digest: str | None = None


def create_store(path: str | Path, info: StoreInfo) -> FAISSDocumentStore:
    """
    Make an empty store.

    :param path: Its folder; made if it is not there.
    :param info: What is going to fill it.
    :raises StoreError: If the folder holds something already.
    """
    folder = Path(path)
    half_made = {_JOURNAL, f"{_ABOUT}.partial"}  # what a kill between the next lines leaves
    if folder.exists() and (not folder.is_dir() or {entry.name for entry in folder.iterdir()} - half_made):
        raise StoreError(f"A new store cannot be made at '{folder}': something is there already.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _JOURNAL).write_bytes(b"")
    partial = folder / f"{_ABOUT}.partial"
    partial.write_text(json.dumps(asdict(info), indent=2), encoding="utf-8")
    _sync(partial)
    os.replace(partial, folder / _ABOUT)
    return open_store(folder)


def read_store_info(path: str | Path) -> StoreInfo:
    """
    Read what made a store.

    :param path: Its folder.
    :raises StoreError: If there is no store, or it is damaged.
    """
    about = Path(path) / _ABOUT
    if not about.is_file():
        raise StoreError(f"There is no store at '{path}'; index a folder of images into it first.")
    try:
        return StoreInfo(**json.loads(about.read_text(encoding="utf-8")))
    except (TypeError, ValueError, OSError) as error:
        raise StoreError(f"The store at '{path}' is damaged ('{_ABOUT}': {error}).") from error


def check_first_stage(path: str | Path, info: StoreInfo, first_stage: FirstStage | EmbedderPair) -> None:
    """
    Refuse a store that another first stage made, or the same one with other weights.

    :param path: The store's folder.
    :param info: What made it.
    :param first_stage: What is going to search it or to add to it.
    :raises StoreError: If they do not belong together.
    """
    if info.first_stage != first_stage.name:
        raise StoreError(
            f"The store at '{path}' was made with the first stage '{info.first_stage}', not '{first_stage.name}'."
        )
    if info.weights_digest != first_stage.weights_digest and info.weights_digest is not None:
        raise StoreError(
            f"The store at '{path}' was made with other weights of the first stage '{info.first_stage}'; "
            "search it with those, or index the images into a new store."
        )


def open_store(path: str | Path) -> FAISSDocumentStore:
    """
    Open a store, taking over what a killed writer left.

    :param path: Its folder.
    :raises StoreError: If there is no store, or it is damaged.
    """
    folder = Path(path)
    info = read_store_info(folder)
    try:
        if not (folder / _JOURNAL).exists():
            return FAISSDocumentStore(index_path=str(folder / _INDEX), embedding_dim=info.dimension)
        store = FAISSDocumentStore(embedding_dim=info.dimension)
        for records in (_read_saved(folder / f"{_INDEX}.json"), _read_journal(folder / _JOURNAL)):
            store.write_documents([Document.from_dict(record) for record in records], policy=DuplicatePolicy.OVERWRITE)
    except (KeyError, RuntimeError, TypeError, ValueError, OSError) as error:
        raise StoreError(f"The store at '{folder}' is damaged ({error}).") from error
    save_store(store, folder)
    return store


def save_store(store: FAISSDocumentStore, path: str | Path) -> None:
    """
    Save a store so that a kill at any moment leaves the old or the new state, and close its journal.

    :param store: The store.
    :param path: Its folder.
    """
    folder = Path(path)
    store.index_path = str(folder / _INDEX)
    (folder / _JOURNAL).touch()  # until it goes, the index counts as outdated
    store.save(folder / "partial")
    for suffix in ("json", "faiss"):
        _sync(folder / f"partial.{suffix}")
        os.replace(folder / f"partial.{suffix}", folder / f"{_INDEX}.{suffix}")
    _sync(folder)
    (folder / _JOURNAL).unlink()


@contextmanager
def journal(path: str | Path) -> Iterator[Callable[[Sequence[Document]], None]]:
    """
    Make additions to a store durable, batch by batch; `save_store` must follow.

    :param path: The store's folder.
    :returns: A function that returns once the documents it is given are on disk.
    """
    with open(Path(path) / _JOURNAL, "a", encoding="utf-8") as file:

        def append(documents: Sequence[Document]) -> None:
            file.writelines(json.dumps(document.to_dict(flatten=False)) + "\n" for document in documents)
            file.flush()
            os.fsync(file.fileno())

        yield append


def _read_saved(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text(encoding="utf-8"))["documents"]) if path.exists() else []


def _read_journal(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be torn


def _sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    if path.is_dir() and os.name == "nt":  # Windows has no such wait for folders
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
