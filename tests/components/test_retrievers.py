# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Retrieval from any store, and the refusal of stores that do not belong to the first stage."""

from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.retrievers.faiss import FAISSEmbeddingRetriever
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.components.retrievers import (
    MARK,
    FirstStageMarker,
    FirstStageRetriever,
    StoreError,
    find_retriever,
    store_dimension,
)


def documents() -> list[Document]:
    return [
        Document(id="left", meta={"file_path": "left.png"}, embedding=[1.0, 0.0, 0.0]),
        Document(id="up", meta={"file_path": "up.png"}, embedding=[0.0, 1.0, 0.0]),
        Document(id="far", meta={"file_path": "far.png"}, embedding=[0.0, 0.0, 1.0]),
    ]


@pytest.fixture(params=["faiss", "in memory"])
def store(request: pytest.FixtureRequest) -> Any:
    return FAISSDocumentStore(embedding_dim=3) if request.param == "faiss" else InMemoryDocumentStore()


@pytest.fixture
def filled(store: Any) -> Any:
    store.write_documents(FirstStageMarker(first_stage="mine").run(documents())["documents"])
    return store


def retriever(store: Any, first_stage: str = "mine", top_k: int | None = 2) -> FirstStageRetriever:
    return FirstStageRetriever(retriever=find_retriever(store), first_stage=first_stage, top_k=top_k)


def ids(found: dict[str, list[Document]]) -> list[str]:
    return [document.id for document in found["documents"]]


def test_nearest_come_first(filled: Any) -> None:
    assert ids(retriever(filled).run([0.1, 1.0, 0.5])) == ["up", "far"]
    assert ids(retriever(filled).run([0.1, 1.0, 0.5], top_k=1)) == ["up"]
    assert len(ids(retriever(filled, top_k=None).run([0.1, 1.0, 0.5]))) == 3


def test_filters_are_passed_on(filled: Any) -> None:
    filters = {"field": "meta.file_path", "operator": "==", "value": "far.png"}
    assert ids(retriever(filled).run([0.1, 1.0, 0.5], filters=filters)) == ["far"]
    nothing = {"field": "meta.file_path", "operator": "==", "value": "none"}
    assert ids(retriever(filled).run([0.1, 1.0, 0.5], filters=nothing)) == []


def test_another_first_stage_is_refused_with_both_names(filled: Any) -> None:
    with pytest.raises(StoreError, match="The store was filled with the first stage 'mine', not 'yours'."):
        retriever(filled, "yours").run([0.0, 1.0, 0.0])


def test_another_first_stage_is_refused_by_name_even_where_its_embeddings_are_longer(filled: Any) -> None:
    with pytest.raises(StoreError, match="The store was filled with the first stage 'mine', not 'yours'."):
        retriever(filled, "yours").run([0.0, 1.0, 0.0, 0.0])


def test_wrong_dimension_names_both(filled: Any) -> None:
    message = "The first stage 'mine' makes embeddings of length 2, but the store holds embeddings of length 3."
    with pytest.raises(StoreError, match=message):
        retriever(filled).run([0.0, 1.0])


def test_empty_store(store: Any) -> None:
    with pytest.raises(StoreError, match="The document store is empty; index images into it first."):
        retriever(store).run([0.0, 1.0, 0.0])


def test_documents_without_a_mark_are_anybodys(store: Any) -> None:
    store.write_documents(documents())
    assert ids(retriever(store, "any").run([0.0, 1.0, 0.0], top_k=1)) == ["up"]


def test_marker_leaves_its_input_alone_and_keeps_the_rest() -> None:
    given = documents()
    (first, *_) = FirstStageMarker(first_stage="mine", dimension=3).run(given)["documents"]
    assert first.meta == {"file_path": "left.png", MARK: "mine"}
    assert given == documents()


def test_marker_refuses_the_wrong_dimension() -> None:
    message = "The first stage 'mine' makes embeddings of length 3, but the store holds embeddings of length 8."
    with pytest.raises(StoreError, match=message):
        FirstStageMarker(first_stage="mine", dimension=8).run(documents())
    assert FirstStageMarker(first_stage="mine", dimension=8).run([]) == {"documents": []}


def test_retriever_of_a_store_is_found() -> None:
    assert isinstance(find_retriever(FAISSDocumentStore(embedding_dim=3)), FAISSEmbeddingRetriever)
    assert isinstance(find_retriever(InMemoryDocumentStore()), InMemoryEmbeddingRetriever)

    class MyStore(FAISSDocumentStore):
        pass

    assert isinstance(find_retriever(MyStore(embedding_dim=3)), FAISSEmbeddingRetriever)


def test_unknown_store_asks_for_a_retriever() -> None:
    class SomeDocumentStore:
        pass

    with pytest.raises(ValueError, match="No embedding retriever is known for SomeDocumentStore; .* retriever="):
        find_retriever(SomeDocumentStore())


def test_dimension_of_a_store(store: Any) -> None:
    assert store_dimension(store) == (3 if isinstance(store, FAISSDocumentStore) else None)
    store.write_documents(documents())
    assert store_dimension(store) == 3


def test_yaml_round_trip(filled: Any) -> None:
    pipeline = Pipeline()
    pipeline.add_component("marker", FirstStageMarker(first_stage="mine", dimension=3))
    pipeline.add_component("retriever", retriever(filled))
    again = Pipeline.loads(pipeline.dumps())
    assert again.dumps() == pipeline.dumps()
    assert again.get_component("retriever").top_k == 2
