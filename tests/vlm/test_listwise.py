# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""`ListwiseVLM`: from a query and images to an order, in one pass or in windows, and how it finds its schedule."""

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from transformers import LlamaConfig

from radical_haystack.pruning import PruningSchedule, RadicalPruner
from radical_haystack.vlm import EntropyProfile, ListwiseVLM, PromptTemplate
from radical_haystack.vlm.calibration import CALIBRATION_SETS, EntropyProbe, ProfileStore, cache_directory
from radical_haystack.vlm.listwise import windows
from radical_haystack.vlm.pruned import prune

QUERY = "a red shirt"
SCHEDULE = PruningSchedule((2, 4), (0.6, 0.2), 0.25)


@pytest.fixture
def make(tiny: SimpleNamespace) -> Callable[..., ListwiseVLM]:
    def build(**kwargs: Any) -> ListwiseVLM:
        return ListwiseVLM(tiny.model(), tiny.processor(), **{"schedule": SCHEDULE, **kwargs})

    return build


@pytest.fixture
def images(tiny: SimpleNamespace) -> list[Image.Image]:
    return [tiny.noise(20 + 7 * number, 60 - 5 * number, seed=number) for number in range(7)]


def plain_logits(tiny: SimpleNamespace, images: list[Image.Image], reference: Image.Image | None) -> torch.Tensor:
    """Identifier scores of the untouched model on the processor's own inputs."""
    text = tiny.prompts().render(QUERY, len(images), with_reference=reference is not None)
    every = [*images, *([] if reference is None else [reference])]
    inputs = tiny.processor()(text=[text], images=every, return_tensors="pt")
    with torch.inference_mode():
        logits = tiny.model()(**inputs).logits[0, -1]
    ids = [tiny.processor().tokenizer.convert_tokens_to_ids(letter) for letter in "ABCDEFGHIJ"[: len(images)]]
    return logits[ids].log_softmax(-1)


class TestScores:
    @pytest.mark.parametrize("composed", [False, True])
    def test_dense_is_the_untouched_model(
        self, tiny: SimpleNamespace, make: Callable[..., ListwiseVLM], images: list[Image.Image], composed: bool
    ) -> None:
        reference = tiny.noise(48, 64, seed=99) if composed else None
        ranking = make().rank(QUERY, images, reference, pruner=None)
        expected = plain_logits(tiny, images, reference)
        assert torch.tensor(ranking.scores) == pytest.approx(expected, abs=1e-4)
        assert ranking.order == tuple(expected.argsort(descending=True).tolist())
        assert ranking.score_kind == "log_probability"
        assert sum(torch.tensor(ranking.scores).exp()) == pytest.approx(1)
        assert ranking.kept_tokens == ranking.total_tokens
        assert ranking.metadata == {"scoring": "logits", "windows": 1, "pruner": None, "calibrating": False}
        assert not ranking.fallback

    @pytest.mark.parametrize("pruner", ["radical", "random", RadicalPruner(SCHEDULE)])
    def test_pruned(self, make: Callable[..., ListwiseVLM], images: list[Image.Image], pruner: Any) -> None:
        ranking = make().rank(QUERY, images, pruner=pruner)
        total = sum(ranking.total_tokens)
        half = -(-total // 2)
        assert sum(ranking.kept_tokens) == -(-half // 2)
        assert [stage.kept.numel() for stage in ranking.traces[0].stages] == [half, sum(ranking.kept_tokens)]
        assert ranking.traces[0].total_per_candidate == ranking.total_tokens
        assert list(ranking.order) == sorted(range(7), key=lambda k: -ranking.scores[k])
        assert ranking.timings["total"] == pytest.approx(ranking.timings["encode"] + ranking.timings["rank"])

    def test_the_same_twice_and_from_the_cache(
        self, make: Callable[..., ListwiseVLM], images: list[Image.Image]
    ) -> None:
        vlm = make()
        first = vlm.rank(QUERY, images)
        assert vlm.rank(QUERY, images).scores == first.scores
        assert make(vision_cache_bytes=0).rank(QUERY, images).scores == pytest.approx(first.scores, abs=1e-4)

    def test_a_duplicate_image_is_encoded_once(
        self, tiny: SimpleNamespace, make: Callable[..., ListwiseVLM], images: list[Image.Image]
    ) -> None:
        seen = []
        hook = tiny.model().model.visual.register_forward_pre_hook(
            lambda module, args, kwargs: seen.append(len(kwargs["grid_thw"])), with_kwargs=True
        )
        vlm = make()
        vlm.rank(QUERY, [images[0], images[1], images[0].copy()], reference_image=images[0])
        vlm.rank("another", images[:4])
        hook.remove()
        assert seen == [2, 2]

    def test_several_threads(self, make: Callable[..., ListwiseVLM], images: list[Image.Image]) -> None:
        vlm, queries = make(), ["red", "blue", "a green hat"]
        expected = [make().rank(query, images).scores for query in queries]
        with ThreadPoolExecutor(3) as pool:
            rankings = list(pool.map(lambda query: vlm.rank(query, images), queries * 2))
        for ranking, scores in zip(rankings, expected * 2, strict=True):
            assert ranking.scores == pytest.approx(scores, abs=1e-4)

    def test_keep_ratio(self, make: Callable[..., ListwiseVLM], images: list[Image.Image]) -> None:
        kept = {
            ratio: sum(make().rank(QUERY, images, keep_ratio=ratio).kept_tokens) for ratio in (None, 0.1, 0.25, 1.0)
        }
        assert kept[0.1] < kept[0.25] == kept[None] < kept[1.0]
        full = make().rank(QUERY, images, keep_ratio=1.0)
        assert full.scores == make().rank(QUERY, images, pruner=None).scores

    def test_written(
        self, make: Callable[..., ListwiseVLM], images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The random model writes nonsense without end: most candidates are missing and keep their order, visibly.
        monkeypatch.setattr("radical_haystack.vlm.listwise.MAX_NEW_TOKENS", 8)
        ranking = make().rank(QUERY, images[:3], scoring="generate")
        assert sorted(ranking.order) == [0, 1, 2]
        assert [ranking.scores[k] for k in ranking.order] == pytest.approx([1, 1 / 2, 1 / 3])
        assert ranking.score_kind == "reciprocal_rank"
        assert ranking.fallback == (ranking.metadata["missing"] > 0)
        assert len(ranking.metadata["texts"]) == 1
        assert sum(ranking.kept_tokens) < sum(ranking.total_tokens)

    def test_a_written_order_is_followed(
        self, tiny: SimpleNamespace, make: Callable[..., ListwiseVLM], images: list[Image.Image]
    ) -> None:
        model, tokenizer = tiny.build_model(), tiny.processor().tokenizer
        answer = tokenizer("B > C", add_special_tokens=False)["input_ids"]
        end = tokenizer.convert_tokens_to_ids("<|im_end|>")
        model.generation_config.eos_token_id = end
        script = iter([*answer, end])

        def dictate(module: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot(torch.tensor([[next(script)]]), output.shape[-1]).float()

        model.lm_head.register_forward_hook(dictate)
        ranking = ListwiseVLM(model, tiny.processor(), schedule=SCHEDULE).rank(QUERY, images[:4], scoring="generate")
        assert ranking.order == (1, 2, 0, 3)
        assert ranking.fallback
        assert ranking.metadata["missing"] == 2
        assert ranking.metadata["texts"] == ["B > C"]

    def test_small_lists(self, make: Callable[..., ListwiseVLM], images: list[Image.Image]) -> None:
        empty = make().rank(QUERY, [])
        assert (empty.order, empty.scores, empty.kept_tokens, empty.traces) == ((), (), (), ())
        one = make().rank(QUERY, images[:1])
        assert (one.order, one.scores) == ((0,), (0.0,))

    def test_odd_images(self, make: Callable[..., ListwiseVLM]) -> None:
        odd = [
            Image.new("RGB", (1, 900)),
            Image.new("L", (3, 3)),
            Image.new("RGBA", (2000, 8)),
            Image.new("P", (50, 50)),
        ]
        assert sorted(make().rank(QUERY, odd).order) == [0, 1, 2, 3]

    def test_max_pixels(self, tiny: SimpleNamespace, make: Callable[..., ListwiseVLM]) -> None:
        image = tiny.noise(64, 64)
        tokens = {
            pixels: make(max_pixels=pixels).rank(QUERY, [image]).total_tokens[0] for pixels in (None, 32 * 32, 100)
        }
        assert tokens == {None: 16, 32 * 32: 4, 100: 1}
        assert make(max_pixels=128 * 128).rank(QUERY, [tiny.noise(128, 128)]).total_tokens == (64,)

    def test_many_pixels_are_encoded_in_batches(
        self, tiny: SimpleNamespace, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = ListwiseVLM(tiny.model(), tiny.processor()).encode(images)
        monkeypatch.setattr("radical_haystack.vlm.listwise._PIXELS_PER_BATCH", 3000)
        parts = ListwiseVLM(tiny.model(), tiny.processor()).encode(images)
        for one, other in zip(whole, parts, strict=True):
            assert torch.equal(one.grid, other.grid)
            assert one.tokens.sub(other.tokens).abs().max() < 1e-5

    def test_template(self, make: Callable[..., ListwiseVLM], images: list[Image.Image]) -> None:
        plain = make().rank(QUERY, images)
        assert make(template=PromptTemplate(query="Find {query}")).rank(QUERY, images).scores != plain.scores

    def test_misuse_is_named(self, make: Callable[..., ListwiseVLM], images: list[Image.Image]) -> None:
        with pytest.raises(ValueError, match="query is blank"):
            make().rank(" ", images)
        with pytest.raises(ValueError, match="Unknown scoring 'text': choose one of logits, generate"):
            make().rank(QUERY, images, scoring="text")
        with pytest.raises(ValueError, match="Unknown pruner 'sharp'"):
            make().rank(QUERY, images, pruner="sharp")
        for schedule in (SCHEDULE, None):
            with pytest.raises(ValueError, match=r"keep ratio must be in \(0, 1\]"):
                make(schedule=schedule).rank(QUERY, images, keep_ratio=0)
        with pytest.raises(ValueError, match="max_pixels must be positive, got 0"):
            make(max_pixels=0)


class TestWindows:
    @given(count=st.integers(0, 300), size=st.integers(1, 52), data=st.data())
    def test_spans(self, count: int, size: int, data: st.DataObject) -> None:
        step = data.draw(st.integers(1, size))
        spans = windows(count, size, step)
        if count == 0:
            assert spans == []
            return
        assert spans[0][1] == count
        assert spans[-1][0] == 0
        assert all(0 < end - start <= size for start, end in spans)
        for (start, end), (next_start, next_end) in pairwise(spans):
            assert next_end == end - step
            assert next_start < start <= next_end
        if count <= size:
            assert spans == [(0, count)]

    def test_as_in_rankgpt(self) -> None:
        assert windows(40, 20, 10) == [(20, 40), (10, 30), (0, 20)]
        assert windows(25, 20, 10) == [(5, 25), (0, 15)]

    @pytest.mark.parametrize(("size", "step"), [(0, 1), (53, 1), (4, 0), (4, 5)])
    def test_out_of_range(self, size: int, step: int) -> None:
        with pytest.raises(ValueError, match="The window"):
            windows(10, size, step)

    def test_rank_in_windows(self, make: Callable[..., ListwiseVLM], images: list[Image.Image]) -> None:
        vlm = make()
        ranking = vlm.rank(QUERY, images, window_size=3, window_step=2)
        order = list(range(7))
        for start, end in ((4, 7), (2, 5), (0, 3)):
            members = order[start:end]
            local = vlm.rank(QUERY, [images[member] for member in members])
            order[start:end] = [members[position] for position in local.order]
        assert ranking.order == tuple(order)
        assert ranking.score_kind == "reciprocal_rank"
        assert [ranking.scores[k] for k in order] == pytest.approx([1 / rank for rank in range(1, 8)])
        assert ranking.metadata["windows"] == len(ranking.traces) == 3
        assert all(kept <= total for kept, total in zip(ranking.kept_tokens, ranking.total_tokens, strict=True))
        assert sum(ranking.kept_tokens) < sum(ranking.total_tokens)

    def test_a_window_larger_than_the_list(self, make: Callable[..., ListwiseVLM], images: list[Image.Image]) -> None:
        whole = make().rank(QUERY, images)
        assert make().rank(QUERY, images, window_size=52, window_step=1).scores == whole.scores


def measured(tiny: SimpleNamespace, query: str, images: list[Image.Image]) -> list[float]:
    """H_norm by layer, from the full matrices of eager attention."""
    example = tiny.example(query, sizes=tuple(image.size for image in images))
    _, weights = tiny.slow_reference(example, {})
    layout, values = example.prompt.layout, []
    for layer in weights:
        rows = layer[layout.text_positions][:, layout.candidate_positions].double()
        p = (rows / rows.sum(1, keepdim=True)).mean(0)
        values.append(float(-(p * p.log()).sum() / torch.tensor(len(p)).double().log()))
    return values


class TestCalibration:
    def test_profile_is_the_mean_entropy(self, tiny: SimpleNamespace, tmp_path: Path) -> None:
        vlm = ListwiseVLM.load(tiny.save(tmp_path))
        # `example` draws its images as `noise(size, seed=position)`.
        sets = [
            (query, [tiny.noise(*size, seed=number) for number, size in enumerate(sizes)])
            for query, sizes in ((QUERY, tiny.sizes), ("blue", tiny.sizes[:3]))
        ]
        schedule = vlm.calibrate(sets)
        expected = [sum(pair) / 2 for pair in zip(*(measured(tiny, *one) for one in sets), strict=True)]
        assert schedule.entropies == pytest.approx(expected, abs=1e-5)
        assert schedule == PruningSchedule.from_entropies(
            schedule.entropies, keep_ratio=0.2, k=4, gap=2, first_layer=1, model=str(tmp_path)
        )
        assert min(schedule.layers) >= 1
        assert max(schedule.layers) < 5
        assert vlm.schedule() == schedule
        again = ListwiseVLM.load(str(tmp_path), num_pruning_layers=2, layer_gap=1)
        assert again.schedule(0.5).entropies == schedule.entropies
        assert len(again.schedule(0.5).layers) == 2
        assert again.schedule(0.5).keep_ratio == 0.5

    def test_the_probe_changes_nothing(self, tiny: SimpleNamespace) -> None:
        example = tiny.example()
        with torch.inference_mode():
            expected = tiny.model()(**example.inputs).logits
            with prune(tiny.model(), EntropyProbe(6), example.prompt.layout) as trace:
                assert torch.equal(tiny.model()(**example.inputs).logits, expected)
        assert len(EntropyProbe.entropies(trace)) == 6

    def test_needs_a_set(self, make: Callable[..., ListwiseVLM]) -> None:
        with pytest.raises(ValueError, match="at least one query-candidate set"):
            make().calibrate([])

    def test_a_new_model_measures_itself(
        self, tiny: SimpleNamespace, tmp_path: Path, images: list[Image.Image]
    ) -> None:
        folder = tiny.save(tmp_path)
        queries = [f"query {number}" for number in range(CALIBRATION_SETS + 1)]
        rankings = [ListwiseVLM.load(folder).rank(query, images) for query in queries]
        assert [ranking.metadata["calibrating"] for ranking in rankings] == [True] * CALIBRATION_SETS + [False]
        for query, ranking in zip(queries[:-1], rankings, strict=False):
            dense = ListwiseVLM.load(folder).rank(query, images, pruner=None)
            assert ranking.scores == dense.scores
            assert ranking.kept_tokens == ranking.total_tokens
        assert sum(rankings[-1].kept_tokens) < sum(rankings[-1].total_tokens)
        stored = ListwiseVLM.load(folder).schedule()
        explicit = ListwiseVLM(tiny.model(), tiny.processor()).calibrate([(query, images) for query in queries[:-1]])
        assert stored.entropies == pytest.approx(explicit.entropies, abs=1e-6)
        assert len(list((cache_directory() / "profiles").iterdir())) == 1

    def test_a_shipped_profile_comes_first(self, tiny: SimpleNamespace, tmp_path: Path) -> None:
        folder = tiny.save(tmp_path)
        store = ProfileStore(folder, tiny.model().config)
        store.save(EntropyProfile(folder, (0.9,) * 6, 3, True))
        shipped = EntropyProfile("bundled", (0.9, 0.8, 0.7, 0.6, 0.5, 0.4), 30, True)
        (tmp_path / "radical.json").write_text(shipped.to_json())
        assert ListwiseVLM.load(folder).schedule().entropies == shipped.entropies
        assert ListwiseVLM.load(folder, schedule=SCHEDULE).schedule() == SCHEDULE

    @pytest.mark.parametrize("content", ["{", "[]", '{"model": "x"}', "corrupt\x00", None])
    def test_a_corrupt_profile_is_measured_again(
        self,
        tiny: SimpleNamespace,
        tmp_path: Path,
        images: list[Image.Image],
        content: str | None,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        folder = tiny.save(tmp_path)
        vlm = ListwiseVLM.load(folder)
        store = ProfileStore(folder, vlm.model.config)
        store.save(EntropyProfile(folder, (0.5,) * 5, 1, True))  # Of another depth.
        if content is not None:
            store.path.write_text(content)
        with caplog.at_level(logging.WARNING):
            assert vlm.schedule() is None
        assert f"Ignoring the entropy profile {store.path}" in caplog.text
        assert vlm.rank(QUERY, images).metadata["calibrating"]
        assert len(json.loads(store.path.read_text())["entropies"]) == 6

    def test_a_folder_that_cannot_be_written_is_harmless(
        self,
        tiny: SimpleNamespace,
        tmp_path: Path,
        images: list[Image.Image],
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        ListwiseVLM.load(tiny.save(tmp_path / "model")).rank(QUERY, images)
        assert "could not be stored" in caplog.text

    def test_changed_weights_are_another_model(self, tiny: SimpleNamespace, tmp_path: Path) -> None:
        folder = tiny.save(tmp_path)
        first = ProfileStore(folder, tiny.model().config).path
        assert ProfileStore(folder, tiny.model().config).path == first
        weights = next(tmp_path.glob("*.safetensors"))
        weights.write_bytes(weights.read_bytes() + b" ")
        assert ProfileStore(folder, tiny.model().config).path != first

    def test_profile_out_of_range(self) -> None:
        for entropies, sets in (((), 1), ((1.1,), 1), ((float("nan"),), 1), ((0.5,), 0)):
            with pytest.raises(ValueError, match="entropy profile needs"):
                EntropyProfile("m", entropies, sets, True)

    def test_published(self, tiny: SimpleNamespace) -> None:
        model = tiny.build_model()
        model.config.name_or_path = "Qwen/Qwen3-VL-4B-Instruct"
        assert ListwiseVLM(model, tiny.processor()).schedule(0.1).layers == (7, 22, 24, 29)


class TestLoad:
    def test_a_folder(self, tiny: SimpleNamespace, tmp_path: Path, images: list[Image.Image]) -> None:
        vlm = ListwiseVLM.load(tiny.save(tmp_path), schedule=SCHEDULE, model_kwargs={"attn_implementation": "eager"})
        assert vlm.model.config._attn_implementation == "eager"
        assert vlm.model.dtype == torch.float32
        assert not vlm.model.training
        again = ListwiseVLM(tiny.model(), tiny.processor(), schedule=SCHEDULE)
        assert vlm.rank(QUERY, images).scores == pytest.approx(again.rank(QUERY, images).scores, abs=1e-4)

    def test_dtype(self, tiny: SimpleNamespace, tmp_path: Path) -> None:
        folder = tiny.save(tmp_path)
        assert ListwiseVLM.load(folder, device="cpu", dtype=torch.bfloat16).model.dtype == torch.bfloat16
        assert ListwiseVLM.load(folder, device="cpu").model.dtype == torch.float32

    def test_unsupported_type(self, tmp_path: Path) -> None:
        LlamaConfig().save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="a model of type 'llama'; supported types: qwen3_vl"):
            ListwiseVLM.load(str(tmp_path))
