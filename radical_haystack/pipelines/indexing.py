# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Indexing a folder of images: resumable, in batches, with every unreadable file reported by name."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from haystack import Document
from haystack.utils import ComponentDevice
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.components.image_loading import find_images
from radical_haystack.pipelines.builders import build_indexing_pipeline
from radical_haystack.pipelines.first_stages import AnyFirstStage, EmbedderPair, FirstStage, first_stage_of
from radical_haystack.pipelines.running import run_pipeline
from radical_haystack.pipelines.stores import (
    StoreError,
    StoreInfo,
    check_first_stage,
    create_store,
    journal,
    open_store,
    read_store_info,
    save_store,
)


@dataclass(frozen=True)
class IndexReport:
    """
    What indexing a folder did.

    :param indexed: Images embedded now.
    :param unchanged: Images that were in the store already.
    :param removed: Images taken out of the store because their files are gone.
    :param unreadable: Reason by file, relative to the folder, for images that could not be read.
    :param total: Images in the store now.
    """

    indexed: int
    unchanged: int
    removed: int
    unreadable: dict[str, str]
    total: int


def index_folder(
    folder: str | Path,
    store_path: str | Path,
    *,
    first_stage: AnyFirstStage = "bundled",
    trust_remote_code: bool = False,
    batch_size: int = 32,
    device: ComponentDevice | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> IndexReport:
    """
    Embed all images under a folder into a store; run again, only what changed is embedded.

    Each batch is on disk before the next begins: an interrupted run loses its last batch only.

    :param folder: The folder; searched with its subfolders.
    :param store_path: The store's folder; made if there is none.
    :param first_stage: A preset's name (see `FIRST_STAGES`), a model for sentence-transformers, a `FirstStage` or an
        `EmbedderPair`.
    :param trust_remote_code: Whether code that comes with the first stage's model may run.
    :param batch_size: Images per batch.
    :param device: Where to run the model; `None` for the default device.
    :param progress: Called with the number of images looked at and of all.
    :raises FileNotFoundError: If there is no such folder.
    :raises ValueError: If it holds no image, or the model needs code that comes with it and must not run.
    :raises StoreError: If the store is damaged, or was made from another folder or with another first stage.
    """
    root = Path(folder).resolve()
    paths = find_images(root)
    stage = first_stage_of(first_stage, trust_remote_code=trust_remote_code)
    store = _open_or_create(store_path, stage, root, device)
    stored = {document.id: document.meta.get("content_hash") for document in store.filter_documents()}
    gone = sorted(set(stored) - {_document_id(path, root) for path in paths})
    store.delete_documents(gone)

    pipeline = build_indexing_pipeline(store, stage, root_path=str(root), batch_size=batch_size, device=device)
    indexed, unchanged, unreadable = 0, 0, dict[str, str]()
    with journal(store_path) as append:
        for start in range(0, len(paths), batch_size):
            batch = [_document(path, root) for path in paths[start : start + batch_size]]
            new = [document for document in batch if stored.get(document.id, "") != document.meta["content_hash"]]
            unchanged += len(batch) - len(new)
            if new:
                inputs = {"embedder": {"documents": new}}
                outputs = run_pipeline(pipeline, inputs, include_outputs_from={"embedder", "marker"})
                embedded, skipped = outputs["marker"]["documents"], outputs["embedder"].get("unreadable", [])
                append(embedded)
                store.delete_documents([document.id for document in skipped])
                indexed += len(embedded)
                unreadable |= {d.meta["file_path"]: _reason(d) for d in skipped}
            if progress:
                progress(min(start + batch_size, len(paths)), len(paths))
    save_store(store, store_path)
    return IndexReport(indexed, unchanged, len(gone), unreadable, store.count_documents())


def _open_or_create(
    store_path: str | Path, stage: FirstStage | EmbedderPair, root: Path, device: ComponentDevice | None
) -> FAISSDocumentStore:
    try:
        info = read_store_info(store_path)
    except StoreError:
        if (Path(store_path) / "store.json").exists():
            raise
        embedding = stage.text_embedder(device=device).run(text="image")["embedding"]
        return create_store(store_path, StoreInfo(stage.name, len(embedding), str(root), stage.weights_digest))
    check_first_stage(store_path, info, stage)
    if info.root_path != str(root):
        raise StoreError(f"The store at '{store_path}' was made from the folder '{info.root_path}', not '{root}'.")
    return open_store(store_path)


def _reason(document: Document) -> str:
    """Why it was skipped, without the name, which the report gives, and the id, which says nothing to people."""
    reason: str = document.meta["radical"]["error"]
    for known in (f"Document '{document.id}' ", f"('{document.meta['file_path']}') ", "cannot be read: "):
        reason = reason.removeprefix(known)
    return reason


def _document(path: Path, root: Path) -> Document:
    meta = {"file_path": path.relative_to(root).as_posix(), "content_hash": _content_hash(path)}
    return Document(id=_document_id(path, root), meta=meta)


def _document_id(path: Path, root: Path) -> str:
    return hashlib.sha256(os.fsencode(path.relative_to(root).as_posix())).hexdigest()


def _content_hash(path: Path) -> str | None:
    """`None` for what cannot be read as a file; the loader then says why."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
    except OSError:
        return None
