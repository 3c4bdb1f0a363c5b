# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Filling a document store with the images of a data set."""

from collections.abc import Callable, Sequence

from haystack import Document
from haystack.document_stores.types import DocumentStore
from haystack.utils import ComponentDevice

from radical_haystack.evaluation.datasets import Dataset
from radical_haystack.pipelines import build_indexing_pipeline
from radical_haystack.pipelines.first_stages import AnyFirstStage
from radical_haystack.pipelines.indexing import IndexReport


def fill_store(
    dataset: Dataset,
    document_store: DocumentStore,
    first_stage: AnyFirstStage = "bundled",
    *,
    batch_size: int = 32,
    device: ComponentDevice | None = None,
    written: Callable[[Sequence[Document]], None] = lambda documents: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> IndexReport:
    """
    Embed the images of a data set into a document store. Those in the store already stay as they are.

    Each batch is written before the next is embedded, so a run that is interrupted loses one batch of a store that
    keeps what it is given.

    :param dataset: The data set; of one with categories, `dataset.of_category(...)` gives a part, for a store each.
    :param document_store: The store.
    :param first_stage: A preset's name (see `FIRST_STAGES`), a model for sentence-transformers, a `FirstStage` or an
        `EmbedderPair`.
    :param batch_size: Images per batch.
    :param device: Where to run the model; `None` for the default device.
    :param written: Called with the embedded documents of each batch, once they are in the store.
    :param progress: Called with the number of images looked at and of all.
    :returns: What was done; `unreadable` has the reason by path. What `dataset.missing` names is not in it.
    :raises ValueError: If the images of the data set are not in files.
    """
    if not dataset.root:
        raise ValueError(f"The images of the data set '{dataset.name}' are not in files: load it with a folder.")
    pipeline = build_indexing_pipeline(
        document_store, first_stage, root_path=dataset.root, batch_size=batch_size, device=device
    )
    stored = {document.id for document in document_store.filter_documents()}
    indexed, unreadable = 0, dict[str, str]()
    for start in range(0, len(dataset.documents), batch_size):
        batch = dataset.documents[start : start + batch_size]
        new = [document for document in batch if document.id not in stored]
        if new:
            outputs = pipeline.run({"embedder": {"documents": new}}, include_outputs_from={"embedder", "marker"})
            written(outputs["marker"]["documents"])
            indexed += outputs["writer"]["documents_written"]
            skipped = outputs["embedder"].get("unreadable", [])
            unreadable |= {d.meta["file_path"]: d.meta["radical"]["error"] for d in skipped}
        progress(min(start + batch_size, len(dataset.documents)), len(dataset.documents))
    unchanged = sum(document.id in stored for document in dataset.documents)
    return IndexReport(indexed, unchanged, 0, unreadable, document_store.count_documents())
