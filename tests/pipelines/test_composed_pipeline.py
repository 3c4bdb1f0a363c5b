# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Composed search from a reference image and a change to a reranked list, over a real FAISS store on disk."""

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.core.errors import PipelineRuntimeError
from haystack.dataclasses import ByteStream, ImageContent
from haystack.utils import ComponentDevice
from haystack_integrations.document_stores.faiss import FAISSDocumentStore
from PIL import Image

from radical_haystack.cli import main
from radical_haystack.components import ImageReadError, RadicalRanker
from radical_haystack.pipelines import StoreError, build_composed_pipeline, index_folder, open_store, search_folder
from radical_haystack.pruning import PruningSchedule

SCHEDULE = PruningSchedule(layers=(1, 3), alphas=(0.6, 0.1), keep_ratio=0.5)
CPU = ComponentDevice.from_str("cpu")
REFERENCE = "picture-04.png"


@pytest.fixture(scope="module")
def store_path(image_folder: Path, tiny_siglip: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "store"
    index_folder(image_folder, path, first_stage=tiny_siglip)
    return path


@pytest.fixture
def ranker(image_folder: Path, tiny_vlm: str) -> RadicalRanker:
    return RadicalRanker(model=tiny_vlm, schedule=SCHEDULE, root_path=str(image_folder), device=CPU, top_k=5)


@pytest.fixture
def pipeline(store_path: Path, tiny_siglip: str, ranker: RadicalRanker) -> Pipeline:
    return build_composed_pipeline(open_store(store_path), tiny_siglip, ranker=ranker, candidates=8, device=CPU)


def inputs(reference: Any, modification: Any = "is blue instead") -> dict[str, dict[str, Any]]:
    return {"builder": {"reference_image": reference, "modification": modification}}


def files(documents: list[Document]) -> list[str]:
    return [document.meta["file_path"] for document in documents]


def test_reference_and_change_give_reranked_candidates(pipeline: Pipeline) -> None:
    output = pipeline.run(inputs(REFERENCE), include_outputs_from={"reference_filter", "builder"})
    candidates, ranked = output["reference_filter"]["documents"], output["ranker"]["documents"]
    assert output["builder"]["text"] == "is blue instead"
    assert (len(candidates), len(ranked)) == (8, 5)
    places = {document.id: place for place, document in enumerate(candidates, start=1)}
    for document in ranked:
        assert document.meta["radical"]["first_stage_rank"] == places[document.id]
        assert "error" not in document.meta["radical"]


def test_ranked_as_the_ranker_does_with_the_reference(pipeline: Pipeline, image_folder: Path) -> None:
    output = pipeline.run(inputs(REFERENCE), include_outputs_from={"reference_filter"})
    candidates, ranker = output["reference_filter"]["documents"], pipeline.get_component("ranker")
    expected = ranker.run("is blue instead", documents=candidates, reference_image=image_folder / REFERENCE)
    assert output["ranker"] == expected
    assert output["ranker"] != ranker.run("is blue instead", documents=candidates)


def test_several_captions_are_one_change(pipeline: Pipeline) -> None:
    captions = pipeline.run(inputs(REFERENCE, ["is blue", "has dots"]))
    assert captions == pipeline.run(inputs(REFERENCE, "is blue and has dots"))
    assert captions != pipeline.run(inputs(REFERENCE, "is blue"))


class TestReferenceIsExcluded:
    """It is the nearest document of all; with or without it there are as many candidates, and the same ones."""

    def test_whatever_it_is_given_as(self, pipeline: Pipeline, store_path: Path, image_folder: Path) -> None:
        path = image_folder / REFERENCE
        (document,) = (d for d in open_store(store_path).filter_documents() if d.meta["file_path"] == REFERENCE)
        outputs = [
            pipeline.run(inputs(reference), include_outputs_from={"reference_filter"})
            for reference in (
                REFERENCE,
                path,
                document,
                Image.open(path),
                ByteStream.from_file_path(path),
                ImageContent.from_file_path(path),
            )
        ]
        assert all(output == outputs[0] for output in outputs)
        assert REFERENCE not in files(outputs[0]["reference_filter"]["documents"])
        assert len(outputs[0]["reference_filter"]["documents"]) == 8

    def test_not_if_the_user_wants_it(self, store_path: Path, tiny_siglip: str, ranker: RadicalRanker) -> None:
        store = open_store(store_path)
        kept = build_composed_pipeline(
            store, tiny_siglip, ranker=ranker, candidates=8, exclude_reference=False, device=CPU
        )
        output = kept.run(inputs(REFERENCE), include_outputs_from={"retriever"})
        assert REFERENCE in files(output["retriever"]["documents"])
        assert len(output["retriever"]["documents"]) == 8

    def test_nothing_else_is_lost(self, store_path: Path, image_folder: Path, tiny_siglip: str, tiny_vlm: str) -> None:
        for reference, expected in ((image_folder / REFERENCE, 11), (Image.new("RGB", (30, 30), "red"), 12)):
            found = search_folder(
                store_path, "is blue", reference_image=reference, model=tiny_vlm, top_k=30, device=CPU
            )
            assert len(found) == len(set(files(found))) == expected
            assert (REFERENCE in files(found)) == (expected == 12)

    def test_its_place_goes_to_the_next_candidate(
        self, store_path: Path, tiny_siglip: str, ranker: RadicalRanker
    ) -> None:
        def candidates(**options: Any) -> list[str]:
            built = build_composed_pipeline(
                open_store(store_path),
                tiny_siglip,
                ranker=RadicalRanker.from_dict(ranker.to_dict()),
                device=CPU,
                **options,
            )
            output = built.run(inputs(REFERENCE), include_outputs_from={"reference_filter", "retriever"})
            return files(output.get("reference_filter", output["retriever"])["documents"])

        everything = candidates(candidates=12, exclude_reference=False)
        others = [file for file in everything if file != REFERENCE]
        assert [candidates(candidates=count) for count in (1, 5, 11)] == [others[:1], others[:5], others]
        # A reference that is far down the list takes no place of another's.
        last = others[-1]
        built = build_composed_pipeline(open_store(store_path), tiny_siglip, ranker=ranker, candidates=3, device=CPU)
        output = built.run(inputs(last), include_outputs_from={"reference_filter"})
        assert len(output["reference_filter"]["documents"]) == 3


class TestYaml:
    def test_round_trip(self, pipeline: Pipeline) -> None:
        text = pipeline.dumps()
        again = Pipeline.loads(text)
        assert again.dumps() == text
        assert again.run(inputs(REFERENCE)) == pipeline.run(inputs(REFERENCE))

    def test_asynchronous(self, pipeline: Pipeline) -> None:
        again = Pipeline.loads(pipeline.dumps())
        assert asyncio.run(again.run_async(inputs(REFERENCE))) == pipeline.run(inputs(REFERENCE))

    def test_default_ranker(self, store_path: Path, tiny_siglip: str) -> None:
        built = build_composed_pipeline(open_store(store_path), tiny_siglip, root_path="/pictures")
        ranker = built.get_component("ranker")
        assert (ranker.root_path, ranker.model) == ("/pictures", "catalog-vlm-tiny")
        assert built.get_component("builder").root_path == "/pictures"
        assert built.get_component("reference_filter").root_path == "/pictures"
        assert built.get_component("reference_filter").top_k == 20
        assert built.get_component("retriever").top_k == 21


class TestBadInput:
    def test_blank_modification(self, pipeline: Pipeline) -> None:
        for text in ("", " ", ["", " "], []):
            with pytest.raises(PipelineRuntimeError, match="modification text of a composed query is blank"):
                pipeline.run(inputs(REFERENCE, text))

    def test_reference_that_is_no_image(self, pipeline: Pipeline, image_folder: Path, tmp_path: Path) -> None:
        with pytest.raises(PipelineRuntimeError, match="reference of a composed query must be an image .*, not int"):
            pipeline.run(inputs(7))
        with pytest.raises(PipelineRuntimeError, match="'absent.png', where there is no file"):
            pipeline.run(inputs("absent.png"))
        with pytest.raises(PipelineRuntimeError, match="lies outside the root"):
            pipeline.run(inputs(tmp_path / "anything.png"))
        with pytest.raises(PipelineRuntimeError, match="ByteStream' cannot be read: it is not an image"):
            pipeline.run(inputs(ByteStream(b"text")))


class TestSearchFolder:
    def test_a_path_leads_from_where_the_user_is(
        self, store_path: Path, image_folder: Path, tiny_vlm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copy(image_folder / REFERENCE, tmp_path / "mine.png")
        monkeypatch.chdir(tmp_path)
        found = search_folder(store_path, "is blue", reference_image="mine.png", model=tiny_vlm, top_k=4, device=CPU)
        assert [document.meta["radical"]["rank"] for document in found] == [1, 2, 3, 4]
        assert REFERENCE not in files(found)

    def test_document_of_the_store(self, store_path: Path, tiny_vlm: str) -> None:
        (document,) = (d for d in open_store(store_path).filter_documents() if d.meta["file_path"] == REFERENCE)
        found = search_folder(store_path, "is blue", reference_image=document, model=tiny_vlm, top_k=30, device=CPU)
        assert len(found) == 11
        assert REFERENCE not in files(found)

    def test_errors(self, store_path: Path, tmp_path: Path, tiny_siglip: str, image_folder: Path) -> None:
        reference = image_folder / REFERENCE
        with pytest.raises(ValueError, match="query is blank"):
            search_folder(store_path, " ", reference_image=reference)
        with pytest.raises(ImageReadError, match="absent.png', where there is no file"):
            search_folder(store_path, "is blue", reference_image=tmp_path / "absent.png")
        with pytest.raises(StoreError, match="no store"):
            search_folder(tmp_path, "is blue", reference_image=reference)
        folder, path = tmp_path / "images", tmp_path / "store"
        folder.mkdir()
        (folder / "broken.png").write_bytes(b"no image")
        index_folder(folder, path, first_stage=tiny_siglip)
        with pytest.raises(StoreError, match=f"The store at '{path}' is empty"):
            search_folder(path, "is blue", reference_image=reference)


class TestCommandLine:
    def run(self, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["radical-haystack", "search", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0)

    def test_search(
        self,
        store_path: Path,
        image_folder: Path,
        tiny_vlm: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        reference = str(image_folder / REFERENCE)
        words = ["--store", str(store_path), "--model", tiny_vlm, "--reference", reference, "is blue instead"]
        assert self.run(monkeypatch, *words, "--json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["query"], shown["reference"]) == ("is blue instead", reference)
        assert [result["rank"] for result in shown["results"]] == list(range(1, 11))
        assert REFERENCE not in [result["file"] for result in shown["results"]]
        assert self.run(monkeypatch, *words) == 0
        assert f"{REFERENCE}: is blue instead" in " ".join(capsys.readouterr().out.split())

    def test_mistakes_give_one_line(
        self, store_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(monkeypatch, "--store", str(store_path), "--reference", "absent.png", "is blue") == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error == "error: There is no image file 'absent.png'."


def test_embedding_of_the_wrong_length(tiny_siglip: str, ranker: RadicalRanker, image_folder: Path) -> None:
    store = FAISSDocumentStore(embedding_dim=16)
    store.write_documents([Document(meta={"file_path": REFERENCE}, embedding=[0.25] * 16)])
    pipeline = build_composed_pipeline(store, tiny_siglip, ranker=ranker, device=CPU)
    with pytest.raises(PipelineRuntimeError, match="32.*16"):
        pipeline.run(inputs(REFERENCE))
