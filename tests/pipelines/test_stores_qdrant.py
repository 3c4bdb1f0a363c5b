# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Stores other than FAISS: the real Qdrant engine in its local mode, and Haystack's store in memory."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.core.errors import PipelineRuntimeError
from haystack.dataclasses import ByteStream
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import ComponentDevice
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever
from haystack_integrations.document_stores.faiss import FAISSDocumentStore
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore

from radical_haystack.components import RadicalRanker
from radical_haystack.components.retrievers import MARK
from radical_haystack.pipelines import build_composed_pipeline, build_indexing_pipeline, build_text_to_image_pipeline
from radical_haystack.pruning import PruningSchedule

CPU = ComponentDevice.from_str("cpu")
SCHEDULE = PruningSchedule(layers=(1, 3), alphas=(0.6, 0.1), keep_ratio=0.5)


def qdrant(**location: Any) -> QdrantDocumentStore:
    return QdrantDocumentStore(**location, index="pictures", embedding_dim=32, progress_bar=False)


STORES: dict[str, Callable[[Path], Any]] = {
    "faiss": lambda path: FAISSDocumentStore(embedding_dim=32),
    "in memory": lambda path: InMemoryDocumentStore(),
    "qdrant in memory": lambda path: qdrant(location=":memory:"),
    "qdrant on disk": lambda path: qdrant(path=str(path / "qdrant")),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return STORES[request.param](tmp_path)


def pictures(image_folder: Path) -> list[Document]:
    """All but one by their paths, that one as a blob."""
    paths = sorted(image_folder.rglob("*.png"))
    found = [Document(meta={"file_path": str(path.relative_to(image_folder))}) for path in paths[1:]]
    blob = ByteStream(paths[0].read_bytes(), meta={"source": "camera"}, mime_type="image/png")
    return [Document(id="blob", blob=blob, meta={"nested": {"sizes": [1, 2]}, "none": None}), *found]


def fill(store: Any, image_folder: Path, first_stage: str) -> None:
    pipeline = build_indexing_pipeline(store, first_stage, root_path=str(image_folder), device=CPU)
    output = pipeline.run({"embedder": {"documents": pictures(image_folder)}})
    assert output["writer"] == {"documents_written": 12}


@pytest.fixture
def ranker(tiny_vlm: str, image_folder: Path) -> RadicalRanker:
    return RadicalRanker(model=tiny_vlm, schedule=SCHEDULE, root_path=str(image_folder), device=CPU, top_k=12)


def test_index_search_and_rerank(store: Any, image_folder: Path, tiny_siglip: str, ranker: RadicalRanker) -> None:
    fill(store, image_folder, tiny_siglip)
    fill(store, image_folder, tiny_siglip)  # the same documents replace themselves
    assert store.count_documents() == 12
    pipeline = build_text_to_image_pipeline(store, tiny_siglip, ranker=ranker, candidates=12, device=CPU)
    documents = pipeline.run({"embedder": {"text": "red"}, "ranker": {"query": "red"}})["ranker"]["documents"]
    assert len(documents) == 12
    assert not any("error" in document.meta["radical"] for document in documents)
    (blob,) = (document for document in documents if document.id == "blob")
    assert blob.blob == pictures(image_folder)[0].blob
    assert {**blob.meta, "radical": None} == {
        "nested": {"sizes": [1, 2]},
        "none": None,
        MARK: tiny_siglip,
        "radical": None,
    }


def test_all_stores_find_the_same(tmp_path: Path, image_folder: Path, tiny_siglip: str) -> None:
    found = {}
    for name, make in STORES.items():
        store = make(tmp_path)
        fill(store, image_folder, tiny_siglip)
        pipeline = build_text_to_image_pipeline(store, tiny_siglip, candidates=5, device=CPU)
        embedding = pipeline.get_component("embedder").run(text="a red shirt")["embedding"]
        retrieved = pipeline.get_component("retriever").run(query_embedding=embedding)["documents"]
        found[name] = [document.id for document in retrieved]
    assert all(order == found["faiss"] for order in found.values())
    assert len(found["faiss"]) == 5


def test_composed_query(store: Any, image_folder: Path, tiny_siglip: str, ranker: RadicalRanker) -> None:
    fill(store, image_folder, tiny_siglip)
    pipeline = build_composed_pipeline(store, tiny_siglip, ranker=ranker, candidates=4, device=CPU)
    inputs = {"builder": {"reference_image": "picture-01.png", "modification": "in red"}}
    documents = pipeline.run(inputs)["ranker"]["documents"]
    assert len(documents) == 4
    assert "picture-01.png" not in {document.meta.get("file_path") for document in documents}


def test_another_first_stage_is_refused_with_both_names(store: Any, image_folder: Path, tiny_siglip: str) -> None:
    fill(store, image_folder, tiny_siglip)
    pipeline = build_text_to_image_pipeline(store, "bundled", device=CPU)  # its embeddings are longer, too
    with pytest.raises(PipelineRuntimeError, match=f"filled with the first stage '{tiny_siglip}', not 'bundled'"):
        pipeline.run({"embedder": {"text": "red"}, "ranker": {"query": "red"}})


def test_empty_store(store: Any, tiny_siglip: str) -> None:
    pipeline = build_text_to_image_pipeline(store, tiny_siglip, device=CPU)
    with pytest.raises(PipelineRuntimeError, match="The document store is empty; index images into it first"):
        pipeline.run({"embedder": {"text": "red"}, "ranker": {"query": "red"}})


def test_indexing_with_embeddings_of_the_wrong_length(image_folder: Path) -> None:
    pipeline = build_indexing_pipeline(qdrant(location=":memory:"), "bundled", root_path=str(image_folder), device=CPU)
    message = "'bundled' makes embeddings of length 96, but the store holds embeddings of length 32"
    with pytest.raises(PipelineRuntimeError, match=message):
        pipeline.run({"embedder": {"documents": pictures(image_folder)}})


def test_qdrant_on_disk_is_found_again(tmp_path: Path, image_folder: Path, tiny_siglip: str) -> None:
    store = qdrant(path=str(tmp_path / "q"))
    fill(store, image_folder, tiny_siglip)
    pipeline = build_text_to_image_pipeline(store, tiny_siglip, candidates=3, device=CPU)
    embedding = pipeline.get_component("embedder").run(text="red")["embedding"]
    before = pipeline.get_component("retriever").run(query_embedding=embedding)["documents"]
    text = pipeline.dumps()
    store._client.close()  # a local store may be open once at a time
    again = Pipeline.loads(text)
    assert again.dumps() == text
    after = again.get_component("retriever").run(query_embedding=embedding)["documents"]
    assert [(document.id, document.meta) for document in after] == [(document.id, document.meta) for document in before]


@pytest.mark.parametrize("make_retriever", [QdrantEmbeddingRetriever, None])
def test_retriever_may_be_given(image_folder: Path, tiny_siglip: str, make_retriever: Any) -> None:
    store = qdrant(location=":memory:")
    fill(store, image_folder, tiny_siglip)
    own = make_retriever(document_store=store, return_embedding=True) if make_retriever else None
    pipeline = build_text_to_image_pipeline(store, tiny_siglip, retriever=own, candidates=3, device=CPU)
    embedding = pipeline.get_component("embedder").run(text="red")["embedding"]
    documents = pipeline.get_component("retriever").run(query_embedding=embedding)["documents"]
    assert [document.embedding is not None for document in documents] == [bool(make_retriever)] * 3


def test_stores_are_imported_only_where_they_are_used() -> None:
    code = (
        "import sys; import radical_haystack.pipelines;"
        "assert not [name for name in sys.modules if 'qdrant' in name], 'Qdrant was imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_retriever_of_the_store_in_memory(tiny_siglip: str) -> None:
    pipeline = build_text_to_image_pipeline(InMemoryDocumentStore(), tiny_siglip, device=CPU)
    assert isinstance(pipeline.get_component("retriever").retriever, InMemoryEmbeddingRetriever)
