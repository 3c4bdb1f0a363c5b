# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""`ComposedQueryEmbedder` on tiny random models: a dual encoder (SigLIP) and one that reads both at once (Qwen3-VL)."""

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from haystack import Document, Pipeline
from haystack.utils import ComponentDevice, Secret
from haystack_integrations.components.embedders.sentence_transformers import SentenceTransformersTextEmbedder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from sentence_transformers import SentenceTransformer

from radical_haystack.components import ComposedQuery, ComposedQueryEmbedder, DocumentImageEmbedder, ImageReadError

CPU = ComponentDevice.from_str("cpu")
PICTURE = Image.linear_gradient("L").resize((40, 32)).convert("RGB")
QUERY = ComposedQuery("is blue instead", PICTURE)


def embedding(model: str, query: ComposedQuery = QUERY, **parameters: Any) -> list[float]:
    return ComposedQueryEmbedder(model=model, device=CPU, **parameters).run(query)["embedding"]


def parts(model: str) -> tuple[list[float], list[float]]:
    """The image and the text as the first stage's own components embed them."""
    common = {"model": model, "device": CPU, "normalize_embeddings": True, "progress_bar": False}
    (image,) = DocumentImageEmbedder(**common).embed_images([PICTURE])
    return image, SentenceTransformersTextEmbedder(**common).run("is blue instead")["embedding"]


def slow_sum(image: list[float], text: list[float], weight: float) -> list[float]:
    def unit(vector: list[float]) -> list[float]:
        length = math.sqrt(sum(x * x for x in vector))
        return [x / length for x in vector]

    return unit([weight * a + (1 - weight) * b for a, b in zip(unit(image), unit(text), strict=True)])


class TestFused:
    @given(weight=st.floats(0, 1))
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_weighted_sum_of_what_the_first_stage_embeds(self, tiny_siglip: str, weight: float) -> None:
        found = embedding(tiny_siglip, image_weight=weight)
        assert found == pytest.approx(slow_sum(*parts(tiny_siglip), weight), abs=1e-5)
        assert math.hypot(*found) == pytest.approx(1)

    def test_the_ends_are_the_image_and_the_text(self, tiny_siglip: str) -> None:
        image, text = parts(tiny_siglip)
        assert embedding(tiny_siglip, image_weight=1) == pytest.approx(image, abs=1e-6)
        assert embedding(tiny_siglip, image_weight=0) == pytest.approx(text, abs=1e-6)

    def test_half_of_each_by_default(self, tiny_siglip: str) -> None:
        assert embedding(tiny_siglip) == pytest.approx(slow_sum(*parts(tiny_siglip), 0.5), abs=1e-5)

    def test_not_normalised(self, tiny_siglip: str) -> None:
        image, text = parts(tiny_siglip)
        expected = [0.25 * a + 0.75 * b for a, b in zip(image, text, strict=True)]
        found = embedding(tiny_siglip, image_weight=0.25, normalize_embeddings=False)
        assert found == pytest.approx(expected, abs=1e-6)

    def test_prefix_and_suffix_belong_to_the_text(self, tiny_siglip: str) -> None:
        around = embedding(tiny_siglip, ComposedQuery("blue", PICTURE), prefix="is ", suffix=" instead")
        assert around == pytest.approx(embedding(tiny_siglip), abs=1e-6)

    def test_lower_case(self, tiny_siglip: str) -> None:
        loud = ComposedQuery("Is BLUE instead", PICTURE)
        assert embedding(tiny_siglip, loud, lower_case=True) == pytest.approx(embedding(tiny_siglip), abs=1e-6)
        assert embedding(tiny_siglip, loud) != pytest.approx(embedding(tiny_siglip), abs=1e-3)

    def test_encode_arguments_of_text_and_image_are_apart(self, tiny_siglip: str) -> None:
        prompted = embedding(tiny_siglip, ComposedQuery("instead", PICTURE), encode_kwargs={"prompt": "is blue "})
        assert prompted == pytest.approx(embedding(tiny_siglip), abs=1e-6)
        assert (
            len(embedding(tiny_siglip, encode_kwargs={"truncate_dim": 8}, image_encode_kwargs={"truncate_dim": 8})) == 8
        )

    def test_truncated(self, tiny_siglip: str) -> None:
        image, text = parts(tiny_siglip)
        found = embedding(tiny_siglip, truncate_dim=8)
        assert found == pytest.approx(slow_sum(image[:8], text[:8], 0.5), abs=1e-5)


class TestJoint:
    def test_image_and_text_are_read_together(self, tiny_vlm: str) -> None:
        expected = SentenceTransformer(tiny_vlm, device="cpu").encode(
            [{"image": PICTURE, "text": "is blue instead"}], normalize_embeddings=True
        )[0]
        found = embedding(tiny_vlm, mode="joint")
        assert found == pytest.approx(expected.tolist(), abs=1e-5)
        assert math.hypot(*found) == pytest.approx(1)

    def test_pooling(self, tiny_vlm: str) -> None:
        vectors = [embedding(tiny_vlm, mode="joint", pooling=pooling) for pooling in (None, "mean", "lasttoken")]
        assert vectors[0] == pytest.approx(vectors[1], abs=1e-6)
        assert vectors[0] != pytest.approx(vectors[2], abs=1e-3)

    def test_both_matter(self, tiny_vlm: str) -> None:
        base = embedding(tiny_vlm, mode="joint")
        other_text = embedding(tiny_vlm, ComposedQuery("has dots", PICTURE), mode="joint")
        other_image = embedding(tiny_vlm, ComposedQuery(QUERY.text, Image.new("RGB", (40, 32), "red")), mode="joint")
        assert base != pytest.approx(other_text, abs=1e-3)
        assert base != pytest.approx(other_image, abs=1e-3)

    def test_dual_encoder_is_refused_by_name(self, tiny_siglip: str) -> None:
        with pytest.raises(ValueError, match=f"'{tiny_siglip}' cannot embed an image and a text .*mode='fused'"):
            embedding(tiny_siglip, mode="joint")


class TestReference:
    def test_under_the_root(self, tiny_siglip: str, tmp_path: Path) -> None:
        PICTURE.save(tmp_path / "a.png")
        given = ComposedQuery("is blue instead", Document(meta={"picture": "a.png"}))
        found = embedding(tiny_siglip, given, root_path=str(tmp_path), file_path_meta_field="picture")
        assert found == pytest.approx(embedding(tiny_siglip), abs=1e-6)

    def test_unreadable_before_the_model_is_loaded(self) -> None:
        with pytest.raises(ImageReadError, match="absent.png"):
            embedding("is/not-loaded", ComposedQuery("is blue", "absent.png"))


class TestInit:
    def test_loads_nothing(self) -> None:
        embedder = ComposedQueryEmbedder(model="is/not-loaded")
        assert (embedder.mode, embedder.image_weight, embedder.normalize_embeddings) == ("fused", 0.5, True)

    @pytest.mark.parametrize(
        ("argument", "value"),
        [("mode", "sum"), ("image_weight", -0.1), ("image_weight", 1.1)],
    )
    def test_invalid_value_is_named(self, argument: str, value: Any) -> None:
        with pytest.raises(ValueError, match=f"ComposedQueryEmbedder: {argument} must be .* but got .*{value}"):
            ComposedQueryEmbedder(model="m", **{argument: value})


class TestSerialization:
    def full(self) -> ComposedQueryEmbedder:
        return ComposedQueryEmbedder(
            model="org/model",
            mode="joint",
            image_weight=0.3,
            pooling="lasttoken",
            lower_case=True,
            device=CPU,
            token=Secret.from_env_var("SOME_TOKEN", strict=False),
            prefix="p ",
            suffix=" s",
            progress_bar=True,
            normalize_embeddings=False,
            trust_remote_code=True,
            local_files_only=True,
            truncate_dim=64,
            model_kwargs={"torch_dtype": torch.float16},
            tokenizer_kwargs={"padding": "max_length"},
            config_kwargs={"a": 1},
            encode_kwargs={"task": "retrieval"},
            image_encode_kwargs={"task": "document"},
            backend="onnx",
            revision="main",
            file_path_meta_field="picture",
            root_path="/data",
        )

    def test_every_parameter_is_written_down(self) -> None:
        written = self.full().to_dict()["init_parameters"]
        default = ComposedQueryEmbedder(model="m").to_dict()["init_parameters"]
        assert set(written) == set(ComposedQueryEmbedder.__init__.__annotations__) - {"return"}
        assert not [name for name in written if name != "device" and written[name] == default[name]]

    @pytest.mark.parametrize("full", [True, False])
    def test_round_trip(self, full: bool) -> None:
        embedder = self.full() if full else ComposedQueryEmbedder(model="m")
        data = embedder.to_dict()
        before = deepcopy(data)
        again = ComposedQueryEmbedder.from_dict(data)
        assert data == before
        assert again.to_dict() == data
        assert again.model_kwargs == embedder.model_kwargs

    def test_to_dict_leaves_the_component_as_it_is(self) -> None:
        embedder = self.full()
        embedder.to_dict()
        assert embedder.model_kwargs == {"torch_dtype": torch.float16}

    def test_yaml(self) -> None:
        pipeline = Pipeline()
        pipeline.add_component("embedder", self.full())
        assert Pipeline.loads(pipeline.dumps()).dumps() == pipeline.dumps()
