# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What presets pass down to their models, on tiny ones of the same architectures; and first stages made by hand."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from haystack import Pipeline
from haystack.core.errors import PipelineRuntimeError
from haystack.utils import ComponentDevice
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersDocumentImageEmbedder,
    SentenceTransformersTextEmbedder,
)
from PIL import Image
from sentence_transformers.base.modules import Transformer
from transformers import AutoModel, AutoTokenizer, Qwen3VLModel

from radical_haystack.components import ComposedQuery
from radical_haystack.pipelines import (
    FIRST_STAGES,
    EmbedderPair,
    FirstStage,
    StoreError,
    build_indexing_pipeline,
    build_text_to_image_pipeline,
    index_folder,
    open_store,
    search_folder,
)
from radical_haystack.pipelines.first_stages import first_stage_of
from tests.pipelines.tiny_encoders import (
    save_qwen3_vl,
    save_qwen3_vl_embedding,
    save_siglip2_naflex,
    save_with_own_code,
)

CPU = ComponentDevice.from_str("cpu")
QUERY = "Retrieve images or text relevant to the user's query."
DOCUMENT = "Represent the user's input."
PADDING = {
    "padding": "max_length",
    "max_length": 64,
    "truncation": True,
    "padding_side": "right",
    "return_attention_mask": False,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, tiny_siglip: str) -> SimpleNamespace:
    """The tiny models' folders by architecture."""
    plain = save_qwen3_vl(tmp_path_factory.mktemp("qwen"))
    return SimpleNamespace(
        qwen_plain=plain,
        qwen=save_qwen3_vl_embedding(plain, tmp_path_factory.mktemp("qwen-embedding")),
        siglip=tiny_siglip,
        naflex=save_siglip2_naflex(tmp_path_factory.mktemp("naflex")),
        own_code=save_with_own_code(tmp_path_factory.mktemp("own-code")),
    )


TINY = {
    "qwen3-vl-embedding-2b": "qwen",
    "qwen3-vl-embedding-8b": "qwen_plain",
    "jina-embeddings-v4": "own_code",
    "siglip2-base-patch16-512": "siglip",
    "siglip2 naflex": "naflex",
    "bundled": None,
}
"""The tiny model that stands for each preset's; `None` for the preset's own."""


@pytest.fixture(params=TINY, scope="module")
def stage(request: pytest.FixtureRequest, folders: SimpleNamespace) -> FirstStage:
    """Every preset, over a tiny model."""
    preset = FIRST_STAGES["siglip2-base-patch16-512" if request.param == "siglip2 naflex" else request.param]
    folder = TINY[request.param]
    return replace(preset, model=getattr(folders, folder) if folder else preset.model, trust_remote_code=True)


def over(name: str, folder: str) -> FirstStage:
    return replace(FIRST_STAGES[name], model=folder)


def unit(vector: torch.Tensor) -> list[float]:
    return (vector / vector.norm()).tolist()


def query(stage: FirstStage, text: str) -> list[float]:
    embedding: list[float] = stage.text_embedder(device=CPU).run(text=text)["embedding"]
    return embedding


def gradient(width: int, height: int) -> Image.Image:
    columns = np.linspace(0, 255, width, dtype=np.uint8)
    return Image.fromarray(np.stack([np.tile(columns, (height, 1))] * 3, axis=-1))


@dataclass
class Recorder:
    """What a model's first module makes of its input, and what it was told about it."""

    inputs: list[dict[str, Any]]
    settings: list[dict[str, Any]]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Looks on while the real preprocessing does its work."""
    seen = Recorder([], [])
    preprocess = Transformer.preprocess

    def record(self: Transformer, inputs: Any, **settings: Any) -> Any:
        features = preprocess(self, inputs, **settings)
        seen.inputs.append(features)
        seen.settings.append(settings)
        return features

    monkeypatch.setattr(Transformer, "preprocess", record)
    return seen


class TestWhatPresetsAre:
    """A wrong value here silently costs recall with the real model: change one only with its model card at hand."""

    @pytest.mark.parametrize(
        ("name", "model", "dimension", "pooling", "lower_case", "composed", "own_code"),
        [
            ("qwen3-vl-embedding-2b", "Qwen/Qwen3-VL-Embedding-2B", 2048, "lasttoken", False, "joint", False),
            ("qwen3-vl-embedding-8b", "Qwen/Qwen3-VL-Embedding-8B", 4096, "lasttoken", False, "joint", False),
            ("jina-embeddings-v4", "jinaai/jina-embeddings-v4", 2048, None, False, "fused", True),
            ("siglip2-base-patch16-512", "google/siglip2-base-patch16-512", 768, None, True, "fused", False),
            ("bundled", "catalog-siglip-tiny", 96, None, False, "fused", False),
        ],
    )
    def test_values(
        self,
        name: str,
        model: str,
        dimension: int,
        pooling: str | None,
        lower_case: bool,
        composed: str,
        own_code: bool,
    ) -> None:
        preset = FIRST_STAGES[name]
        assert (preset.name, preset.model, preset.dimension, preset.pooling) == (name, model, dimension, pooling)
        assert (preset.lower_case, preset.composed, preset.needs_remote_code) == (lower_case, composed, own_code)
        assert not preset.trust_remote_code

    def test_loading_arguments_reach_every_embedder(self) -> None:
        stage = replace(FIRST_STAGES["bundled"], loading={"model_kwargs": {"attn_implementation": "eager"}})
        for embedder in (stage.text_embedder(), stage.image_embedder(), stage.composed_embedder()):
            assert embedder.model_kwargs == {"attn_implementation": "eager"}
            embedder.model_kwargs["attn_implementation"] = "sdpa"
        assert stage.loading == {"model_kwargs": {"attn_implementation": "eager"}}

    def test_presets_stay_as_they_are_whatever_embedders_do(self) -> None:
        stage = FIRST_STAGES["siglip2-base-patch16-512"]
        stage.text_embedder(device=CPU).encode_kwargs["processing_kwargs"]["text"]["padding"] = True
        assert stage.encode_kwargs == {"processing_kwargs": {"text": PADDING}}

    def test_those_are_all(self) -> None:
        assert set(FIRST_STAGES) == set(TINY) - {"siglip2 naflex"}

    @pytest.mark.parametrize("name", ["qwen3-vl-embedding-2b", "qwen3-vl-embedding-8b"])
    def test_qwen_arguments_of_encode(self, name: str) -> None:
        stage = FIRST_STAGES[name]
        processing = {
            "chat_template": {"add_generation_prompt": True},
            "image": {"size": {"shortest_edge": 4096, "longest_edge": 1843200}},
        }
        shared = {"processing_kwargs": processing, "truncate_dim": stage.dimension}
        assert stage.text_embedder(device=CPU).encode_kwargs == {**shared, "prompt": QUERY}
        assert stage.image_embedder(device=CPU).encode_kwargs == {**shared, "prompt": DOCUMENT}
        composed = stage.composed_embedder(device=CPU)
        assert (composed.mode, composed.encode_kwargs) == ("joint", {**shared, "prompt": QUERY})

    def test_jina_arguments_of_encode(self) -> None:
        stage = first_stage_of("jina-embeddings-v4", trust_remote_code=True)
        shared = {"task": "retrieval", "truncate_dim": 2048}
        assert stage.text_embedder(device=CPU).encode_kwargs == {**shared, "prompt_name": "query"}
        assert stage.image_embedder(device=CPU).encode_kwargs == shared
        assert stage.composed_embedder(device=CPU).image_encode_kwargs == shared

    def test_siglip2_arguments_of_encode(self) -> None:
        stage = FIRST_STAGES["siglip2-base-patch16-512"]
        shared = {"processing_kwargs": {"text": PADDING}, "truncate_dim": 768}
        assert stage.text_embedder(device=CPU).encode_kwargs == shared
        assert stage.text_embedder(device=CPU).lower_case
        assert stage.composed_embedder(device=CPU).lower_case

    def test_bundled_arguments_of_encode(self) -> None:
        assert FIRST_STAGES["bundled"].text_embedder(device=CPU).encode_kwargs == {"truncate_dim": 96}

    def test_all_normalise(self, stage: FirstStage) -> None:
        for embedder in (stage.text_embedder(), stage.image_embedder(), stage.composed_embedder()):
            assert embedder.normalize_embeddings
        assert np.linalg.norm(query(stage, "a red shirt")) == pytest.approx(1, abs=1e-5)


class TestRemoteCode:
    @pytest.mark.parametrize("embedder", ["text_embedder", "image_embedder", "composed_embedder"])
    def test_needs_the_users_word(self, embedder: str) -> None:
        message = "code that comes with the model 'jinaai/jina-embeddings-v4'.*trust_remote_code=True"
        with pytest.raises(ValueError, match=message):
            getattr(FIRST_STAGES["jina-embeddings-v4"], embedder)()
        trusted = getattr(first_stage_of("jina-embeddings-v4", trust_remote_code=True), embedder)(device=CPU)
        assert trusted.trust_remote_code

    def test_through_indexing_and_builders(self, image_folder: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="trust_remote_code=True"):
            index_folder(image_folder, tmp_path / "s", first_stage="jina-embeddings-v4")
        assert not (tmp_path / "s").exists()

    def test_nothing_else_is_trusted_unasked(self, folders: SimpleNamespace) -> None:
        assert not first_stage_of("org/model").text_embedder(device=CPU).trust_remote_code
        with pytest.raises(ValueError, match="(?i)trust_remote_code|custom code"):
            query(FirstStage("mine", folders.own_code), "red")
        assert first_stage_of("org/model", trust_remote_code=True).text_embedder(device=CPU).trust_remote_code

    def test_task_and_prompts_reach_the_models_own_code(self, folders: SimpleNamespace) -> None:
        stage = replace(FIRST_STAGES["jina-embeddings-v4"], model=folders.own_code, trust_remote_code=True)
        text_embedder, image_embedder = stage.text_embedder(device=CPU), stage.image_embedder(device=CPU)
        text_embedder.run(text="a red shirt")
        assert text_embedder.embedding_backend.model[0].seen[-2:] == [["Query: a red shirt"], "retrieval"]
        image_embedder.embed_images([Image.new("RGB", (8, 8))])
        (image,), task = image_embedder._embedding_backend.model[0].seen[-2:]
        assert isinstance(image, Image.Image)
        assert task == "retrieval"


class TestQwen3VLEmbedding:
    def test_prompt_is_the_model_cards(self, folders: SimpleNamespace, recorder: Recorder) -> None:
        stage = over("qwen3-vl-embedding-2b", folders.qwen)
        query(stage, "A red shirt")
        stage.image_embedder(device=CPU).embed_images([gradient(64, 64)])
        tokenizer = AutoTokenizer.from_pretrained(folders.qwen)
        text, image = (tokenizer.decode(features["input_ids"][0]) for features in recorder.inputs)
        assert text == (
            f"<|im_start|>system\n{QUERY}<|im_end|>\n<|im_start|>user\nA red shirt<|im_end|>\n<|im_start|>assistant\n"
        )
        assert image.replace("<|image_pad|>", "") == (
            f"<|im_start|>system\n{DOCUMENT}<|im_end|>\n<|im_start|>user\n<|vision_start|><|vision_end|><|im_end|>\n"
            "<|im_start|>assistant\n"
        )

    def test_composed_query_is_one_message(self, folders: SimpleNamespace, recorder: Recorder) -> None:
        embedder = over("qwen3-vl-embedding-2b", folders.qwen).composed_embedder(device=CPU)
        embedder.run(composed_query=ComposedQuery("in blue", gradient(64, 64)))
        (features,) = recorder.inputs
        text = AutoTokenizer.from_pretrained(folders.qwen).decode(features["input_ids"][0])
        assert text.replace("<|image_pad|>", "") == (
            f"<|im_start|>system\n{QUERY}<|im_end|>\n<|im_start|>user\n<|vision_start|><|vision_end|>in blue<|im_end|>"
            "\n<|im_start|>assistant\n"
        )

    @pytest.mark.parametrize(("width", "height", "pixels"), [(10, 10, 64 * 64), (80, 80, 80 * 80)])
    def test_images_have_the_model_cards_size(
        self, folders: SimpleNamespace, recorder: Recorder, width: int, height: int, pixels: int
    ) -> None:
        over("qwen3-vl-embedding-2b", folders.qwen).image_embedder(device=CPU).embed_images([gradient(width, height)])
        assert int(recorder.inputs[0]["image_grid_thw"].prod()) * 8 * 8 == pixels  # patches of 8 x 8 pixels

    @pytest.mark.parametrize("folder", ["qwen", "qwen_plain"])
    def test_last_token_is_the_embedding(self, folders: SimpleNamespace, recorder: Recorder, folder: str) -> None:
        """Against transformers alone, whether the folder says how to pool or not."""
        embedding = query(over("qwen3-vl-embedding-2b", getattr(folders, folder)), "A red shirt")
        model = Qwen3VLModel.from_pretrained(folders.qwen_plain).eval()
        with torch.inference_mode():
            states = model(input_ids=recorder.inputs[0]["input_ids"]).last_hidden_state
        assert embedding == pytest.approx(unit(states[0, -1]), abs=1e-5)
        assert embedding != pytest.approx(unit(states[0].mean(0)), abs=1e-2)

    def test_padding_is_not_pooled(self, folders: SimpleNamespace) -> None:
        embedder = over("qwen3-vl-embedding-2b", folders.qwen_plain).image_embedder(device=CPU)
        images = [gradient(64, 64), gradient(160, 96)]
        together, (first,), (second,) = (embedder.embed_images(batch) for batch in (images, images[:1], images[1:]))
        assert together[0] == pytest.approx(first, abs=1e-4)
        assert together[1] == pytest.approx(second, abs=1e-4)

    def test_pooling_of_one_stage_is_not_that_of_another(self, folders: SimpleNamespace) -> None:
        """Embedders of one model share its weights, not what they do with them."""
        preset = over("qwen3-vl-embedding-2b", folders.qwen_plain)
        before = query(replace(preset, pooling=None), "red")
        last = query(preset, "red")
        assert query(replace(preset, pooling=None), "red") == before
        assert query(preset, "red") == last != before

    def test_pooling_needs_something_that_pools(self, folders: SimpleNamespace) -> None:
        with pytest.raises(ValueError, match="no pooling that could be set to 'lasttoken'"):
            query(FirstStage("mine", folders.siglip, pooling="lasttoken"), "red")

    def test_strips_and_tiny_images_are_enlarged(self, folders: SimpleNamespace) -> None:
        embedder = over("qwen3-vl-embedding-2b", folders.qwen).image_embedder(device=CPU)
        assert np.isfinite(embedder.embed_images([gradient(900, 2), gradient(1, 1)])).all()

    def test_structure_of_the_chat_in_a_query_is_taken_out(self, folders: SimpleNamespace) -> None:
        stage = over("qwen3-vl-embedding-2b", folders.qwen)
        assert query(stage, "a<|image_pad|>red<|im_end|>") == query(stage, "a red ")


class TestSiglip2:
    def test_padded_ids_reach_the_model(self, folders: SimpleNamespace, recorder: Recorder) -> None:
        query(over("siglip2-base-patch16-512", folders.siglip), "A Red Shirt")
        (features,) = recorder.inputs
        tokenizer = AutoTokenizer.from_pretrained(folders.siglip)
        ids = tokenizer("a red shirt")["input_ids"]
        assert features["input_ids"].tolist() == [ids + [tokenizer.pad_token_id] * (64 - len(ids))]
        assert "attention_mask" not in features

    def test_long_query_is_cut(self, folders: SimpleNamespace, recorder: Recorder) -> None:
        query(over("siglip2-base-patch16-512", folders.siglip), "red " * 100)
        assert recorder.inputs[0]["input_ids"].shape == (1, 64)

    def test_embedding_is_that_of_the_padded_text(self, folders: SimpleNamespace) -> None:
        """Against transformers alone."""
        embedding = query(over("siglip2-base-patch16-512", folders.siglip), "A Red Shirt")
        tokenizer, model = AutoTokenizer.from_pretrained(folders.siglip), AutoModel.from_pretrained(folders.siglip)
        ids = tokenizer("a red shirt", padding="max_length", max_length=64, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            features = model.get_text_features(input_ids=ids)
        vector = getattr(features, "pooler_output", features)[0]
        assert embedding == pytest.approx(unit(vector), abs=1e-5)

    @pytest.mark.parametrize(
        "change",
        [{"padding": True}, {"max_length": 32}, {"padding_side": "left"}, {"return_attention_mask": True}],
        ids=str,
    )
    def test_each_part_of_the_padding_rule_matters(self, folders: SimpleNamespace, change: dict[str, Any]) -> None:
        stage = over("siglip2-base-patch16-512", folders.siglip)
        other = replace(stage, encode_kwargs={"processing_kwargs": {"text": {**PADDING, **change}}})
        assert query(other, "a red shirt") != pytest.approx(query(stage, "a red shirt"), abs=1e-3)

    def test_case_does_not_matter(self, folders: SimpleNamespace) -> None:
        stage = over("siglip2-base-patch16-512", folders.siglip)
        assert query(stage, "A RED shirt") == query(stage, "a red shirt")
        cased = replace(stage, lower_case=False)
        assert query(cased, "A RED shirt") != pytest.approx(query(cased, "a red shirt"), abs=1e-3)


class TestQueriesAreTexts:
    """A user's words must not make the machine open a file or fetch a page."""

    @pytest.fixture
    def picture(self, tmp_path: Path) -> str:
        gradient(32, 32).save(tmp_path / "secret.png")
        return str(tmp_path / "secret.png")

    @pytest.mark.parametrize("folder", ["qwen", "siglip"])
    @pytest.mark.parametrize("text", ["http://localhost:1/secret.png", "data:image/png;base64,AAAA", None])
    def test_sentence_transformers_models_read_them(
        self, folders: SimpleNamespace, recorder: Recorder, picture: str, folder: str, text: str | None
    ) -> None:
        stage = FirstStage("mine", getattr(folders, folder))
        assert len(query(stage, text or picture)) in (32, 64)
        assert "pixel_values" not in recorder.inputs[0]

    @pytest.mark.parametrize("text", ["http://localhost:1/secret.png", "https://x", "httpx", None])
    def test_models_with_own_code_do_not_get_them(
        self, folders: SimpleNamespace, picture: str, text: str | None
    ) -> None:
        stage = FirstStage("mine", folders.own_code, trust_remote_code=True)
        with pytest.raises(ValueError, match="is a URL or the path of a file, which this model would open"):
            query(stage, text or picture)
        assert len(query(stage, "x" * 5000)) == 24  # too long for a path

    def test_only_strings(self) -> None:
        with pytest.raises(TypeError, match="QueryTextEmbedder: the query must be a string, not list"):
            FIRST_STAGES["bundled"].text_embedder().run(text=["red"])


@pytest.fixture(scope="module")
def store(stage: FirstStage, image_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "store"
    report = index_folder(image_folder, path, first_stage=stage, batch_size=5, device=CPU)
    assert (report.indexed, report.unreadable) == (12, {})
    return path


class TestEndToEnd:
    """Index, search and rerank through every preset's code path."""

    def test_search_and_rerank(self, stage: FirstStage, store: Path, tiny_vlm: str) -> None:
        found = search_folder(store, "a red shirt", first_stage=stage, model=tiny_vlm, top_k=3, device=CPU)
        assert [document.meta["radical"]["rank"] for document in found] == [1, 2, 3]
        assert not any("error" in document.meta["radical"] for document in found)

    def test_composed_search(self, stage: FirstStage, store: Path, tiny_vlm: str) -> None:
        found = search_folder(
            store,
            "in blue",
            reference_image=gradient(40, 40),
            first_stage=stage,
            model=tiny_vlm,
            top_k=3,
            device=CPU,
        )
        assert [document.meta["radical"]["rank"] for document in found] == [1, 2, 3]

    def test_an_image_finds_itself(self, stage: FirstStage, store: Path, image_folder: Path) -> None:
        embedder = stage.image_embedder(device=CPU)
        image = Image.open(image_folder / "picture-05.png").convert("RGB")
        nearest = open_store(store).search(embedder.embed_images([image])[0], top_k=1)
        assert nearest[0].meta["file_path"] == "picture-05.png"

    def test_pipelines_survive_yaml(self, stage: FirstStage, store: Path, image_folder: Path) -> None:
        searching = build_text_to_image_pipeline(open_store(store), stage, device=CPU)
        indexing = build_indexing_pipeline(open_store(store), stage, root_path=str(image_folder), device=CPU)
        for pipeline in (searching, indexing):
            assert Pipeline.loads(pipeline.dumps()).dumps() == pipeline.dumps()
        embedder = Pipeline.loads(searching.dumps()).get_component("embedder")
        assert embedder.run(text="red") == searching.get_component("embedder").run(text="red")

    def test_another_first_stage_is_refused_with_both_names(self, stage: FirstStage, store: Path) -> None:
        message = f"made with the first stage '{stage.name}', not 'other'"
        with pytest.raises(StoreError, match=message):
            search_folder(store, "red", first_stage=replace(stage, name="other"))
        pipeline = build_text_to_image_pipeline(open_store(store), replace(stage, name="other"), device=CPU)
        with pytest.raises(PipelineRuntimeError, match=f"filled with the first stage '{stage.name}', not 'other'"):
            pipeline.run({"embedder": {"text": "red"}, "ranker": {"query": "red"}})


class TestDimension:
    def test_embeddings_are_cut_and_of_length_one(self, folders: SimpleNamespace) -> None:
        stage = over("qwen3-vl-embedding-2b", folders.qwen)
        whole, cut = query(stage, "red"), query(replace(stage, dimension=16), "red")
        assert (len(whole), len(cut)) == (64, 16)
        assert cut == pytest.approx(unit(torch.tensor(whole[:16])), abs=1e-5)
        assert len(replace(stage, dimension=16).image_embedder(device=CPU).embed_images([gradient(64, 64)])[0]) == 16


class TestWeights:
    def test_digest_is_of_the_weights(self, folders: SimpleNamespace, tmp_path: Path) -> None:
        assert FIRST_STAGES["qwen3-vl-embedding-2b"].weights_digest is None
        assert first_stage_of(folders.siglip).weights_digest != first_stage_of(folders.naflex).weights_digest
        model = AutoModel.from_pretrained(folders.siglip)
        model.save_pretrained(tmp_path)
        same = first_stage_of(str(tmp_path)).weights_digest
        assert same is not None
        with torch.no_grad():
            model.logit_bias += 1
        model.save_pretrained(tmp_path)
        assert first_stage_of(str(tmp_path)).weights_digest != same

    def test_store_of_other_weights_is_refused(
        self, folders: SimpleNamespace, image_folder: Path, tmp_path: Path
    ) -> None:
        index_folder(image_folder, tmp_path / "s", first_stage=FirstStage("mine", folders.siglip), device=CPU)
        retrained = FirstStage("mine", folders.naflex)
        for use in (
            lambda: index_folder(image_folder, tmp_path / "s", first_stage=retrained),
            lambda: search_folder(tmp_path / "s", "red", first_stage=retrained),
        ):
            with pytest.raises(StoreError, match="other weights of the first stage 'mine'; search it with those"):
                use()


class TestEmbedderPair:
    @pytest.fixture
    def pair(self, tiny_siglip: str) -> EmbedderPair:
        """Haystack's own embedders, as any integration has them."""
        options: dict[str, Any] = {"model": tiny_siglip, "normalize_embeddings": True, "device": CPU}
        return EmbedderPair(
            "pair", SentenceTransformersTextEmbedder(**options), SentenceTransformersDocumentImageEmbedder(**options)
        )

    def test_index_search_and_rerank(
        self, pair: EmbedderPair, image_folder: Path, tmp_path: Path, tiny_vlm: str
    ) -> None:
        for _ in range(2):  # one pair serves any number of pipelines
            index_folder(image_folder, tmp_path / "s", first_stage=pair)
        found = search_folder(tmp_path / "s", "red", first_stage=pair, model=tiny_vlm, top_k=3, device=CPU)
        assert [document.meta["radical"]["rank"] for document in found] == [1, 2, 3]
        with pytest.raises(StoreError, match="made with the first stage 'pair', not 'bundled'"):
            search_folder(tmp_path / "s", "red", first_stage="bundled")

    def test_same_as_the_model_by_its_name(self, pair: EmbedderPair, tiny_siglip: str) -> None:
        expected = query(FirstStage("mine", tiny_siglip), "red")
        assert pair.text_embedder().run(text="red")["embedding"] == pytest.approx(expected, abs=1e-6)

    def test_pipeline_survives_yaml(self, pair: EmbedderPair, image_folder: Path, tmp_path: Path) -> None:
        index_folder(image_folder, tmp_path / "s", first_stage=pair)
        text = build_text_to_image_pipeline(open_store(tmp_path / "s"), pair, device=CPU).dumps()
        assert Pipeline.loads(text).dumps() == text
        assert "SentenceTransformersTextEmbedder" in text

    def test_root_reaches_the_image_embedder(self, pair: EmbedderPair) -> None:
        embedder = pair.image_embedder(root_path="/pictures", file_path_meta_field="path")
        assert (embedder.root_path, embedder.file_path_meta_field) == ("/pictures", "path")
        assert pair.image.root_path == ""

    def test_composed_queries_need_an_embedder(self, pair: EmbedderPair, tiny_siglip: str) -> None:
        with pytest.raises(ValueError, match="The first stage 'pair' has no embedder of composed queries"):
            pair.composed_embedder()
        composed = FirstStage("mine", tiny_siglip).composed_embedder(device=CPU)
        assert replace(pair, composed=composed).composed_embedder().to_dict() == composed.to_dict()


@pytest.mark.parametrize("make", [lambda s: s.text_embedder(), lambda s: s.image_embedder()])
def test_round_trip_of_the_components(stage: FirstStage, make: Callable[[FirstStage], Any]) -> None:
    embedder = make(stage)
    data = embedder.to_dict()
    assert type(embedder).from_dict(data).to_dict() == data
