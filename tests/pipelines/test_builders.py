# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The pipelines, end to end, over a real FAISS store on disk."""

import asyncio
from pathlib import Path

import pytest
from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream
from haystack.utils import ComponentDevice
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.components import DocumentImageEmbedder, RadicalRanker
from radical_haystack.pipelines import (
    FIRST_STAGES,
    StoreError,
    build_indexing_pipeline,
    build_text_to_image_pipeline,
    calibrate_on_folder,
    index_folder,
    open_store,
    search_folder,
)
from radical_haystack.pipelines.first_stages import first_stage_of
from radical_haystack.pruning import PruningSchedule

SCHEDULE = PruningSchedule(layers=(1, 3), alphas=(0.6, 0.1), keep_ratio=0.5)
CPU = ComponentDevice.from_str("cpu")


@pytest.fixture(scope="module")
def store_path(image_folder: Path, tiny_siglip: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "store"
    index_folder(image_folder, path, first_stage=tiny_siglip)
    return path


@pytest.fixture
def pipeline(store_path: Path, image_folder: Path, tiny_siglip: str, tiny_vlm: str) -> Pipeline:
    ranker = RadicalRanker(model=tiny_vlm, schedule=SCHEDULE, root_path=str(image_folder), device=CPU, top_k=5)
    return build_text_to_image_pipeline(open_store(store_path), tiny_siglip, ranker=ranker, candidates=8, device=CPU)


def inputs(query: str) -> dict[str, dict[str, str]]:
    return {"embedder": {"text": query}, "ranker": {"query": query}}


def test_query_gives_reranked_candidates(pipeline: Pipeline) -> None:
    output = pipeline.run(inputs("a red shirt"), include_outputs_from={"retriever"})
    retrieved, ranked = output["retriever"]["documents"], output["ranker"]["documents"]
    assert (len(retrieved), len(ranked)) == (8, 5)
    places = {document.id: place for place, document in enumerate(retrieved, start=1)}
    for document in ranked:
        assert document.meta["radical"]["first_stage_rank"] == places[document.id]
        assert "error" not in document.meta["radical"]


def test_yaml_round_trip_over_a_store_on_disk(pipeline: Pipeline) -> None:
    text = pipeline.dumps()
    again = Pipeline.loads(text)
    assert again.dumps() == text
    assert again.run(inputs("a red shirt")) == pipeline.run(inputs("a red shirt"))


def test_asynchronous_pipeline(pipeline: Pipeline) -> None:
    again = Pipeline.loads(pipeline.dumps())
    assert asyncio.run(again.run_async(inputs("a red shirt"))) == pipeline.run(inputs("a red shirt"))


def test_indexing_pipeline_yaml_round_trip(image_folder: Path, tiny_siglip: str, tmp_path: Path) -> None:
    store = FAISSDocumentStore(index_path=str(tmp_path / "index"), embedding_dim=32)
    pipeline = build_indexing_pipeline(store, tiny_siglip, root_path=str(image_folder), device=CPU)
    again = Pipeline.loads(pipeline.dumps())
    assert again.dumps() == pipeline.dumps()
    documents = [Document(meta={"file_path": "picture-01.png"}), Document(id="none", meta={"file_path": "absent.png"})]
    output = again.run({"embedder": {"documents": documents}})
    assert output["writer"] == {"documents_written": 1}
    assert [document.id for document in output["embedder"]["unreadable"]] == ["none"]
    assert again.run({"embedder": {"documents": documents}})["writer"] == {"documents_written": 1}
    assert again.get_component("writer").document_store.count_documents() == 1


def test_default_ranker_has_the_root_and_the_bundled_model(store_path: Path, tiny_siglip: str) -> None:
    pipeline = build_text_to_image_pipeline(open_store(store_path), tiny_siglip, root_path="/pictures")
    ranker = pipeline.get_component("ranker")
    assert (ranker.root_path, ranker.model) == ("/pictures", "catalog-vlm-tiny")
    assert pipeline.get_component("retriever").top_k == 20


class TestFirstStages:
    def test_bundled_is_a_preset(self) -> None:
        assert FIRST_STAGES["bundled"].model == "catalog-siglip-tiny"
        assert first_stage_of("bundled") is FIRST_STAGES["bundled"]

    def test_any_other_name_is_a_model(self) -> None:
        stage = first_stage_of("org/model")
        assert (stage.name, stage.model) == ("org/model", "org/model")
        assert stage.text_embedder(device=CPU).model == "org/model"
        assert stage.image_embedder(device=CPU).model == "org/model"

    def test_both_embedders_normalise(self, tiny_siglip: str) -> None:
        stage = first_stage_of(tiny_siglip)
        assert stage.text_embedder().normalize_embeddings
        assert stage.image_embedder().normalize_embeddings


class TestDocumentImageEmbedder:
    def test_round_trip_leaves_the_dictionary_as_it_is(self) -> None:
        embedder = DocumentImageEmbedder(model="org/model", device=CPU, model_kwargs={"torch_dtype": "torch.float16"})
        data = embedder.to_dict()
        assert data["type"] == "radical_haystack.components.embedders.DocumentImageEmbedder"
        assert DocumentImageEmbedder.from_dict(data).to_dict() == data
        assert data["init_parameters"]["model_kwargs"] == {"torch_dtype": "torch.float16"}

    def test_blob_and_path_of_one_image_agree(self, image_folder: Path, tiny_siglip: str) -> None:
        file = image_folder / "picture-01.png"
        embedder = first_stage_of(tiny_siglip).image_embedder(root_path=str(image_folder))
        blob = ByteStream(file.read_bytes(), mime_type="image/png")
        documents = [Document(id="a", meta={"file_path": "picture-01.png"}), Document(id="b", blob=blob)]
        embedded = embedder.run(documents)["documents"]
        assert embedded[0].embedding == pytest.approx(embedded[1].embedding, abs=1e-6)
        assert documents[0].embedding is None

    def test_no_documents_load_no_model(self) -> None:
        embedder = DocumentImageEmbedder(model="is/not-loaded")
        assert embedder.run([]) == {"documents": [], "unreadable": []}


class TestSearchFolder:
    def test_search(self, store_path: Path, tiny_vlm: str) -> None:
        found = search_folder(store_path, "a red shirt", model=tiny_vlm, top_k=4, keep_ratio=0.5, device=CPU)
        assert [document.meta["radical"]["rank"] for document in found] == [1, 2, 3, 4]
        assert not any("error" in document.meta["radical"] for document in found)

    def test_search_more_than_the_usual_candidates(self, store_path: Path, tiny_vlm: str) -> None:
        assert len(search_folder(store_path, "red", model=tiny_vlm, top_k=50)) == 12

    def test_search_errors(self, store_path: Path, tmp_path: Path, tiny_siglip: str) -> None:
        with pytest.raises(ValueError, match="query is blank"):
            search_folder(store_path, "  ")
        with pytest.raises(StoreError, match="no store"):
            search_folder(tmp_path, "red")


def test_calibrate_on_folder(image_folder: Path, tiny_vlm: str) -> None:
    seen: list[tuple[int, int]] = []
    schedule = calibrate_on_folder(
        image_folder, model=tiny_vlm, queries=["red", "blue"], device=CPU, progress=lambda *at: seen.append(at)
    )
    assert schedule.entropies is not None
    assert len(schedule.entropies) == 6
    assert schedule.layers == tuple(sorted(schedule.layers))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_calibrate_errors(tmp_path: Path, tiny_vlm: str) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match="two images that can be read; '.*' has 0"):
        calibrate_on_folder(tmp_path, model=tiny_vlm)
    with pytest.raises(ValueError, match="not blank"):
        calibrate_on_folder(tmp_path, queries=["red", " "])
