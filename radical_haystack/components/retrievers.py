# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Retrieval from any document store, with the checks that a store and a first stage belong together."""

from dataclasses import replace
from importlib import import_module
from typing import Any

from haystack import Document, component, default_to_dict
from haystack.components.retrievers.types import EmbeddingRetriever
from haystack.core.serialization import component_to_dict
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DocumentStore

MARK = "radical_first_stage"
"""The metadata field in which documents carry the name of the first stage that embedded them."""


class StoreError(ValueError):
    """A store that cannot be used; the message is one sentence that names it and the reason."""


@component
class FirstStageMarker:
    """Writes into documents which first stage embedded them, for `FirstStageRetriever` to see."""

    def __init__(self, *, first_stage: str, dimension: int | None = None) -> None:
        """
        Create the component.

        :param first_stage: The first stage's name.
        :param dimension: Length of the embeddings that the store holds; `None` if it takes any.
        """
        self.first_stage = first_stage
        self.dimension = dimension

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Mark documents on their way into the store.

        :param documents: Documents with embeddings.
        :returns: `documents`: marked copies.
        :raises StoreError: If an embedding has another length than the store's.
        """
        for document in documents:
            length = len(document.embedding or [])
            if self.dimension is not None and length != self.dimension:
                raise StoreError(
                    f"The first stage '{self.first_stage}' makes embeddings of length {length}, "
                    f"but the store holds embeddings of length {self.dimension}."
                )
        return {"documents": [replace(d, meta={**d.meta, MARK: self.first_stage}) for d in documents]}


@component
class FirstStageRetriever:
    """
    Retrieves candidates with the embedding retriever of any document store.

    Refuses a store that is empty, that holds embeddings of another length, or that another first stage filled: such
    searches would give nonsense or obscure errors.
    """

    def __init__(self, *, retriever: EmbeddingRetriever, first_stage: str, top_k: int | None = None) -> None:
        """
        Create the component.

        :param retriever: An embedding retriever with its document store.
        :param first_stage: Name of the first stage that embeds the queries.
        :param top_k: How many candidates to retrieve; `None` for the retriever's own value.
        """
        self.retriever = retriever
        self.first_stage = first_stage
        self.top_k = top_k

    def to_dict(self) -> dict[str, Any]:
        """
        Serialize the component.

        :returns: A dictionary of plain values, for `from_dict` and for pipelines in YAML.
        """
        retriever = component_to_dict(self.retriever, "retriever")
        return default_to_dict(self, retriever=retriever, first_stage=self.first_stage, top_k=self.top_k)

    @component.output_types(documents=list[Document])
    def run(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """
        Retrieve candidates.

        :param query_embedding: The query's embedding.
        :param filters: As the retriever takes them.
        :param top_k: How many to retrieve; `None` for the value from the constructor.
        :returns: `documents`: the nearest ones, best first.
        :raises StoreError: If the store is empty, holds embeddings of another length, or was filled by another first
            stage.
        """
        store = getattr(self.retriever, "document_store", None) or getattr(self.retriever, "_document_store", None)
        dimension = store_dimension(store)
        if dimension is not None and dimension != len(query_embedding):
            probe = self.retriever.run(query_embedding=[1.0] + [0.0] * (dimension - 1), top_k=1)["documents"]
            self._check_marks(probe)
            raise StoreError(
                f"The first stage '{self.first_stage}' makes embeddings of length {len(query_embedding)}, "
                f"but the store holds embeddings of length {dimension}."
            )
        options: dict[str, Any] = {"filters": filters, "top_k": top_k or self.top_k}
        given = {name: value for name, value in options.items() if value is not None}
        documents: list[Document] = self.retriever.run(query_embedding=query_embedding, **given)["documents"]
        self._check_marks(documents)
        if not documents and store is not None and not store.count_documents():
            raise StoreError("The document store is empty; index images into it first.")
        return {"documents": documents}

    def _check_marks(self, documents: list[Document]) -> None:
        others = {document.meta.get(MARK) for document in documents} - {None, self.first_stage}
        if others:
            names = " and ".join(f"'{name}'" for name in sorted(map(str, others)))
            raise StoreError(f"The store was filled with the first stage {names}, not '{self.first_stage}'.")


def find_retriever(document_store: DocumentStore) -> EmbeddingRetriever:
    """
    Make the embedding retriever that belongs to a document store.

    Haystack and its integrations keep to one rule, which this relies on: the retriever of
    `haystack_integrations.document_stores.qdrant.QdrantDocumentStore` is
    `haystack_integrations.components.retrievers.qdrant.QdrantEmbeddingRetriever`. Nothing else is imported.

    :param document_store: The store.
    :raises ValueError: If none is found.
    """
    for store_class in type(document_store).__mro__:
        package, found, rest = store_class.__module__.partition(".document_stores.")
        if found and store_class.__name__.endswith("DocumentStore"):
            name = store_class.__name__.removesuffix("DocumentStore") + "EmbeddingRetriever"
            try:
                module = import_module(f"{package}.components.retrievers.{rest.partition('.')[0]}")
                retriever: EmbeddingRetriever = getattr(module, name)(document_store=document_store)
            except (AttributeError, ImportError):
                continue
            return retriever
    raise ValueError(
        f"No embedding retriever is known for {type(document_store).__name__}; give the pipeline's builder one with "
        "retriever=."
    )


def store_dimension(document_store: Any) -> int | None:
    """
    Length of the embeddings that a document store holds.

    :param document_store: The store.
    :returns: The length, or `None` if it takes any or does not say.
    """
    if isinstance(document_store, InMemoryDocumentStore):
        embeddings = (document.embedding for document in document_store.storage.values())
        return next((len(embedding) for embedding in embeddings if embedding is not None), None)
    for attribute in ("embedding_dim", "embedding_dimension", "dimension"):  # Haystack's stores do not agree on a name
        if isinstance(getattr(document_store, attribute, None), int):
            return int(getattr(document_store, attribute))
    return None
