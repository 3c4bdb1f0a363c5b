# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""`RadicalRanker` as its users expect a Haystack ranker to behave, on a tiny random model."""

import asyncio
import logging
import random
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch
from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream
from haystack.utils import ComponentDevice, Secret
from PIL import Image

from radical_haystack.components import ImageReadError, RadicalRanker
from radical_haystack.pruning import PruningSchedule
from radical_haystack.vlm import ListwiseVLM, PromptTemplate

SCHEDULE = PruningSchedule(layers=(1, 3), alphas=(0.6, 0.1), keep_ratio=0.5, model="tiny")


def picture(number: int) -> Image.Image:
    size = (16 * (1 + number % 4), 16 * (1 + number % 3))
    return Image.frombytes("RGB", size, random.Random(number).randbytes(3 * size[0] * size[1]))


def png(image: Image.Image) -> bytes:
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def document(number: int, **fields: Any) -> Document:
    blob = ByteStream(png(picture(number)), mime_type="image/png")
    return Document(**{"id": f"doc-{number}", "blob": blob, "meta": {"number": number}, **fields})


def documents(count: int) -> list[Document]:
    return [document(number, score=1 - number / 100) for number in range(count)]


def ids(output: dict[str, list[Document]]) -> list[str]:
    return [found.id for found in output["documents"]]


@pytest.fixture(scope="module")
def ranker(tiny_vlm: str) -> RadicalRanker:
    return RadicalRanker(model=tiny_vlm, schedule=SCHEDULE, keep_ratio=0.3, device=ComponentDevice.from_str("cpu"))


class TestInit:
    def test_init_default_loads_nothing(self) -> None:
        ranker = RadicalRanker()
        assert ranker.model == "catalog-vlm-tiny"
        assert (ranker.keep_ratio, ranker.num_pruning_layers, ranker.layer_gap) == (0.2, 4, 2)
        assert (ranker.pruner, ranker.scoring, ranker.top_k) == ("radical", "logits", 10)
        assert (ranker.window_size, ranker.window_step) == (20, 10)
        assert ranker.file_path_meta_field == "file_path"
        assert ranker.raise_on_failure is False
        assert ranker._vlm is None

    def test_init_takes_keywords_only(self) -> None:
        with pytest.raises(TypeError):
            RadicalRanker("some/model")

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            ("top_k", 0),
            ("top_k", -3),
            ("keep_ratio", 0.0),
            ("keep_ratio", 1.2),
            ("num_pruning_layers", 0),
            ("layer_gap", 0),
            ("pruner", "magic"),
            ("scoring", "guess"),
            ("window_size", 0),
            ("window_size", 53),
            ("window_step", 0),
            ("window_step", 21),
            ("max_pixels", 0),
        ],
    )
    def test_init_invalid_value_is_named(self, argument: str, value: object) -> None:
        with pytest.raises(ValueError, match=f"{argument.replace('_', '.')}.*{value}"):
            RadicalRanker(**{argument: value})

    def test_unknown_model_is_named(self, tmp_path: Path) -> None:
        ranker = RadicalRanker(model=str(tmp_path / "no-such-model"))
        with pytest.raises((OSError, ValueError), match="no-such-model"):
            ranker.warm_up()


class TestSerialization:
    def full(self) -> RadicalRanker:
        return RadicalRanker(
            model="some/model",
            keep_ratio=0.15,
            num_pruning_layers=3,
            layer_gap=1,
            schedule=SCHEDULE,
            pruner="random",
            scoring="generate",
            top_k=7,
            window_size=12,
            window_step=4,
            max_pixels=50_000,
            file_path_meta_field="picture",
            root_path="/data",
            device=ComponentDevice.from_str("cpu"),
            dtype="bfloat16",
            token=Secret.from_env_var("SOME_TOKEN", strict=False),
            model_kwargs={"attn_implementation": "sdpa", "torch_dtype": torch.float16},
            prompt_template=PromptTemplate(system="Rank."),
            raise_on_failure=True,
        )

    def test_to_dict(self) -> None:
        data = self.full().to_dict()
        assert data == {
            "type": "radical_haystack.components.rankers.RadicalRanker",
            "init_parameters": {
                "model": "some/model",
                "keep_ratio": 0.15,
                "num_pruning_layers": 3,
                "layer_gap": 1,
                "schedule": {
                    "layers": [1, 3],
                    "alphas": [0.6, 0.1],
                    "keep_ratio": 0.5,
                    "model": "tiny",
                    "entropies": None,
                },
                "pruner": "random",
                "scoring": "generate",
                "top_k": 7,
                "window_size": 12,
                "window_step": 4,
                "max_pixels": 50_000,
                "file_path_meta_field": "picture",
                "root_path": "/data",
                "device": {"type": "single", "device": "cpu"},
                "dtype": "bfloat16",
                "token": {"type": "env_var", "env_vars": ["SOME_TOKEN"], "strict": False},
                "model_kwargs": {"attn_implementation": "sdpa", "torch_dtype": "torch.float16"},
                "prompt_template": {**PromptTemplate().to_dict(), "system": "Rank."},
                "raise_on_failure": True,
            },
        }

    def test_to_dict_leaves_the_component_as_it_is(self) -> None:
        ranker = self.full()
        ranker.to_dict()
        assert ranker.model_kwargs == {"attn_implementation": "sdpa", "torch_dtype": torch.float16}

    @pytest.mark.parametrize("full", [True, False])
    def test_round_trip(self, full: bool) -> None:
        ranker = self.full() if full else RadicalRanker()
        again = RadicalRanker.from_dict(ranker.to_dict())
        assert again.to_dict() == ranker.to_dict()
        assert again.schedule == ranker.schedule
        assert again.prompt_template == ranker.prompt_template
        assert again.model_kwargs == ranker.model_kwargs
        assert again.device == ranker.device

    def test_from_dict_leaves_the_dictionary_as_it_is(self) -> None:
        data = self.full().to_dict()
        before = deepcopy(data)
        RadicalRanker.from_dict(data)
        assert data == before
        assert RadicalRanker.from_dict(data).to_dict() == before

    @pytest.mark.parametrize("full", [True, False])
    def test_pipeline_yaml_round_trip(self, full: bool) -> None:
        pipeline = Pipeline()
        pipeline.add_component("ranker", self.full() if full else RadicalRanker())
        text = pipeline.dumps()
        again = Pipeline.loads(text)
        assert again == pipeline
        assert again.dumps() == text

    def test_literal_token_is_not_written_down(self) -> None:
        with pytest.raises(ValueError, match="[Tt]oken"):
            RadicalRanker(token=Secret.from_token("secret")).to_dict()


class TestRun:
    def test_run_ranks_all_and_says_how(self, ranker: RadicalRanker) -> None:
        given = documents(6)
        output = ranker.run(query="a red shirt", documents=given)["documents"]
        assert sorted(found.id for found in output) == sorted(found.id for found in given)
        scores = [found.score for found in output]
        assert scores == sorted(scores, reverse=True)
        for rank, found in enumerate(output, start=1):
            number = found.meta["number"]
            assert found.meta["radical"]["rank"] == rank
            assert found.meta["radical"]["first_stage_rank"] == number + 1
            assert found.meta["radical"]["first_stage_score"] == given[number].score
            assert found.blob == given[number].blob

    def test_run_agrees_with_the_model_called_directly(self, ranker: RadicalRanker, tiny_vlm: str) -> None:
        vlm = ListwiseVLM.load(tiny_vlm, device="cpu", schedule=SCHEDULE)
        expected = vlm.rank("a red shirt", [picture(number) for number in range(6)], keep_ratio=0.3)
        output = ranker.run(query="a red shirt", documents=documents(6))["documents"]
        assert [found.meta["number"] for found in output] == list(expected.order)
        for found in output:
            number, figures = found.meta["number"], found.meta["radical"]
            assert found.score == pytest.approx(expected.scores[number], abs=1e-5)
            assert figures["kept_tokens"] == expected.kept_tokens[number]
            assert figures["total_tokens"] == expected.total_tokens[number]
        kept = sum(found.meta["radical"]["kept_tokens"] for found in output)
        total = sum(found.meta["radical"]["total_tokens"] for found in output)
        assert 0 < kept < 0.5 * total

    def test_run_does_not_change_its_input(self, ranker: RadicalRanker) -> None:
        given = [*documents(4), Document(id="broken", content="no image", score=0.2)]
        before = deepcopy(given)
        output = ranker.run(query="a red shirt", documents=given)["documents"]
        output[0].meta["radical"]["rank"] = 99
        output[0].meta["mine"] = 1
        assert given == before

    def test_run_reads_paths_under_the_root(self, tiny_vlm: str, ranker: RadicalRanker, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        given = []
        for number in range(4):
            picture(number).save(tmp_path / "sub" / f"{number}.png")
            given.append(document(number, blob=None, meta={"picture": f"sub/{number}.png", "number": number}))
        from_paths = RadicalRanker(
            model=tiny_vlm, schedule=SCHEDULE, keep_ratio=0.3, root_path=str(tmp_path), file_path_meta_field="picture"
        )
        output = from_paths.run(query="a red shirt", documents=given)
        assert ids(output) == ids(ranker.run(query="a red shirt", documents=documents(4)))

    def test_run_empty_documents(self, tmp_path: Path) -> None:
        ranker = RadicalRanker(model=str(tmp_path / "is-not-loaded"))
        assert ranker.run(query="a red shirt", documents=[]) == {"documents": []}

    def test_run_one_document(self, ranker: RadicalRanker) -> None:
        output = ranker.run(query="a red shirt", documents=documents(1))["documents"]
        assert [found.id for found in output] == ["doc-0"]
        assert output[0].score == pytest.approx(0)  # the log-probability of the only choice
        assert output[0].meta["radical"]["rank"] == 1

    @pytest.mark.parametrize("query", ["", "  \n\t"])
    def test_run_blank_query_returns_documents_unranked(self, query: str, caplog: pytest.LogCaptureFixture) -> None:
        ranker = RadicalRanker(model="is/not-loaded", top_k=1)
        given = documents(3)
        with caplog.at_level(logging.WARNING):
            output = ranker.run(query=query, documents=[*given, given[0]])
        assert output == {"documents": given}
        assert "Empty query" in caplog.text

    def test_run_top_k(self, ranker: RadicalRanker) -> None:
        everything = ids(ranker.run(query="a red shirt", documents=documents(6)))
        assert ids(ranker.run(query="a red shirt", documents=documents(6), top_k=2)) == everything[:2]
        assert ids(ranker.run(query="a red shirt", documents=documents(6), top_k=60)) == everything

    def test_run_top_k_of_the_component(self, tiny_vlm: str) -> None:
        ranker = RadicalRanker(model=tiny_vlm, schedule=SCHEDULE, top_k=2)
        assert len(ranker.run(query="a red shirt", documents=documents(4))["documents"]) == 2
        assert len(ranker.run(query="a red shirt", documents=documents(4), top_k=3)["documents"]) == 3

    @pytest.mark.parametrize("top_k", [0, -1])
    def test_run_invalid_top_k(self, top_k: int) -> None:
        with pytest.raises(ValueError, match=f"top_k must be > 0, but got {top_k}"):
            RadicalRanker().run(query="a red shirt", documents=[], top_k=top_k)

    def test_run_duplicates_keep_the_best_scored(self, ranker: RadicalRanker) -> None:
        given = [document(0, score=0.1), document(1, score=0.5), document(0, score=0.9), document(0)]
        output = ranker.run(query="a red shirt", documents=given)["documents"]
        assert sorted(found.id for found in output) == ["doc-0", "doc-1"]
        figures = {found.id: found.meta["radical"] for found in output}
        assert figures["doc-0"]["first_stage_score"] == 0.9
        assert (figures["doc-0"]["first_stage_rank"], figures["doc-1"]["first_stage_rank"]) == (1, 2)

    def test_run_more_documents_than_a_window(self, tiny_vlm: str) -> None:
        ranker = RadicalRanker(model=tiny_vlm, schedule=SCHEDULE, window_size=4, window_step=2, top_k=50)
        output = ranker.run(query="a red shirt", documents=documents(11))["documents"]
        assert sorted(found.meta["number"] for found in output) == list(range(11))
        scores = [found.score for found in output]
        assert scores == sorted(scores, reverse=True)

    @pytest.mark.parametrize("pruner", ["dense", "random"])
    def test_run_other_pruners(self, tiny_vlm: str, pruner: str) -> None:
        ranker = RadicalRanker(model=tiny_vlm, schedule=SCHEDULE, pruner=pruner, keep_ratio=0.25)
        figures = [found.meta["radical"] for found in ranker.run(query="red", documents=documents(5))["documents"]]
        kept, total = (sum(each[key] for each in figures) for key in ("kept_tokens", "total_tokens"))
        assert kept == total if pruner == "dense" else kept < 0.5 * total

    def test_run_generate_tells_of_a_fallback(self, tiny_vlm: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("radical_haystack.vlm.listwise.MAX_NEW_TOKENS", 4)
        ranker = RadicalRanker(model=tiny_vlm, schedule=SCHEDULE, scoring="generate")
        output = ranker.run(query="a red shirt", documents=documents(5))["documents"]
        assert [found.score for found in output] == [pytest.approx(1 / rank) for rank in range(1, 6)]
        assert all(found.meta["radical"]["fallback"] for found in output)  # 4 random tokens name no 5 candidates

    def test_run_prompt_template_reaches_the_model(self, tiny_vlm: str, ranker: RadicalRanker) -> None:
        other = RadicalRanker(
            model=tiny_vlm, schedule=SCHEDULE, keep_ratio=0.3, prompt_template=PromptTemplate(system="Other words.")
        )
        scores = [
            [found.score for found in each.run(query="a red shirt", documents=documents(4))["documents"]]
            for each in (ranker, other)
        ]
        assert scores[0] != pytest.approx(scores[1], abs=1e-6)

    def test_run_max_pixels_reaches_the_model(self, tiny_vlm: str, ranker: RadicalRanker) -> None:
        small = RadicalRanker(model=tiny_vlm, schedule=SCHEDULE, max_pixels=16 * 16)
        totals = [
            max(
                found.meta["radical"]["total_tokens"]
                for found in each.run(query="red", documents=documents(4))["documents"]
            )
            for each in (ranker, small)
        ]
        assert totals[0] > 4
        assert totals[1] <= 2

    def test_run_model_without_schedule_measures_itself(
        self, tiny_vlm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # another test may have measured this model
        ranker = RadicalRanker(model=tiny_vlm, num_pruning_layers=2, keep_ratio=0.3)
        states = []
        for _ in range(6):
            output = ranker.run(query="a red shirt", documents=documents(4))["documents"]
            states.append(output[0].meta["radical"]["calibrating"])
        assert states[0] is True
        assert states[-1] is False

    def test_run_in_a_pipeline(self, ranker: RadicalRanker) -> None:
        pipeline = Pipeline()
        pipeline.add_component("ranker", RadicalRanker.from_dict(ranker.to_dict()))
        output = Pipeline.loads(pipeline.dumps()).run({"ranker": {"query": "a red shirt", "documents": documents(5)}})
        assert ids(output["ranker"]) == ids(ranker.run(query="a red shirt", documents=documents(5)))

    def test_run_async_agrees_with_run(self, ranker: RadicalRanker) -> None:
        async def both() -> list[dict[str, list[Document]]]:
            queries = ("a red shirt", "a blue dress")
            return await asyncio.gather(*(ranker.run_async(query=q, documents=documents(5)) for q in queries))

        results = asyncio.run(both())
        for query, result in zip(("a red shirt", "a blue dress"), results, strict=True):
            assert result == ranker.run(query=query, documents=documents(5))


class TestUnreadableImages:
    def broken(self) -> list[Document]:
        return [
            document(0, score=0.9),
            Document(id="text-only", content="no image", score=0.8),
            document(1, score=0.7),
            Document(id="damaged", blob=ByteStream(png(picture(2))[:40], mime_type="image/png"), score=0.6),
            document(3, score=0.5),
        ]

    def test_run_unreadable_images_are_ranked_last(
        self, ranker: RadicalRanker, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, logger="radical_haystack"):
            output = ranker.run(query="a red shirt", documents=self.broken())["documents"]
        assert {found.id for found in output[:3]} == {"doc-0", "doc-1", "doc-3"}
        assert [found.id for found in output[3:]] == ["text-only", "damaged"]
        assert [found.score for found in output[3:]] == [None, None]
        assert [found.meta["radical"]["rank"] for found in output] == [1, 2, 3, 4, 5]
        assert output[3].meta["radical"]["error"].startswith("Document 'text-only' has no image")
        assert output[4].meta["radical"]["error"].startswith("Document 'damaged' cannot be read")
        assert output[4].meta["radical"]["first_stage_rank"] == 4
        assert output[4].meta["radical"]["first_stage_score"] == 0.6
        warnings = [record for record in caplog.records if record.name.startswith("radical_haystack")]
        assert len(warnings) == 1
        assert "text-only" in caplog.text
        assert "damaged" in caplog.text

    def test_run_readable_ones_rank_as_if_alone(self, ranker: RadicalRanker) -> None:
        output = ranker.run(query="a red shirt", documents=self.broken())
        alone = ranker.run(query="a red shirt", documents=[document(number) for number in (0, 1, 3)])
        assert ids(output)[:3] == ids(alone)

    def test_run_nothing_readable(self, tmp_path: Path) -> None:
        ranker = RadicalRanker(model=str(tmp_path / "is-not-loaded"))
        output = ranker.run(query="a red shirt", documents=[Document(id="a"), Document(id="b", content="text")])
        assert ids(output) == ["a", "b"]
        assert all("has no image" in found.meta["radical"]["error"] for found in output["documents"])

    def test_run_raise_on_failure_names_the_document(self, tmp_path: Path) -> None:
        ranker = RadicalRanker(model=str(tmp_path / "is-not-loaded"), raise_on_failure=True)
        with pytest.raises(ImageReadError, match="Document 'text-only' has no image"):
            ranker.run(query="a red shirt", documents=self.broken())

    def test_run_path_outside_the_root(self, tmp_path: Path) -> None:
        picture(0).save(tmp_path / "secret.png")
        (tmp_path / "root").mkdir()
        ranker = RadicalRanker(root_path=str(tmp_path / "root"), raise_on_failure=True)
        with pytest.raises(ImageReadError, match="Document 'd' .*outside the root"):
            ranker.run(query="red", documents=[Document(id="d", meta={"file_path": "../secret.png"})])


class TestReferenceImage:
    def test_run_reference_image_of_any_kind(self, ranker: RadicalRanker, tiny_vlm: str, tmp_path: Path) -> None:
        reference = picture(9)
        vlm = ListwiseVLM.load(tiny_vlm, device="cpu", schedule=SCHEDULE)
        images = [picture(number) for number in range(5)]
        expected = vlm.rank("is blue", images, reference_image=reference, keep_ratio=0.3)
        reference.save(tmp_path / "reference.png")
        for source in (reference, tmp_path / "reference.png", ByteStream(png(reference)), document(9)):
            output = ranker.run(query="is blue", documents=documents(5), reference_image=source)["documents"]
            assert [found.meta["number"] for found in output] == list(expected.order)
            scores = [found.score for found in sorted(output, key=lambda found: found.meta["number"])]
            assert scores == pytest.approx(list(expected.scores), abs=1e-5)
        without = ranker.run(query="is blue", documents=documents(5))["documents"]
        assert [found.score for found in without] != pytest.approx([found.score for found in output], abs=1e-5)

    def test_run_unreadable_reference_is_an_error(self, ranker: RadicalRanker) -> None:
        with pytest.raises(ImageReadError, match="ByteStream' cannot be read"):
            ranker.run(query="is blue", documents=documents(2), reference_image=ByteStream(b"nothing"))
