# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What must be true of every method, whatever it does (method.md, invariants 1, 2, 4 and 6). One line per method."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils._python_dispatch import TorchDispatchMode

from radical_haystack.pruning import PRUNERS, ImagePruner, InputPruner, PruningSchedule, build_pruner
from radical_haystack.pruning.pruners import BEFORE_DECODER, Pruner
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.families import family_of
from radical_haystack.vlm.pruned import prune

METHODS = [
    "dart",
    "dense",
    "dynres-dti",
    "dynres-qrel",
    "fastv",
    "lowres",
    "pyramiddrop",
    "qi-ei",
    "radical",
    "random",
    "sparsevlm",
    "visionzip",
]
RESIZING = [name for name in METHODS if issubclass(PRUNERS[name], ImagePruner)]
IN_THE_MODEL = [name for name in METHODS if name not in RESIZING]
PRUNING = [name for name in IN_THE_MODEL if name != "dense"]
DROPPING = [name for name in PRUNING if name != "visionzip"]
"""Methods that only leave tokens out, so that the dense model with those masked is the same."""

QUERY = "a red shirt"
SCHEDULE = PruningSchedule((1, 3, 4), (0.8, 0.3, 0.0), 0.2)
RAGGED = ((64, 64), (20, 60), (64, 16), (36, 64), (64, 50), (44, 44), (64, 64), (30, 64))


def of(name: str, keep_ratio: float) -> Pruner:
    return build_pruner(name, SCHEDULE, keep_ratio=keep_ratio, depth=6)


def received(tiny: SimpleNamespace, example: Any) -> torch.Tensor:
    family, inputs = family_of(tiny.model()), example.inputs
    encoded = family.encode(tiny.model(), inputs["pixel_values"], inputs["image_grid_thw"], attention=True)
    return torch.cat([image.attention for image in encoded[: example.prompt.layout.candidates]])


@pytest.fixture
def vlm(tiny: SimpleNamespace) -> ListwiseVLM:
    return ListwiseVLM(tiny.model(), tiny.processor(), schedule=SCHEDULE)


@pytest.fixture
def images(tiny: SimpleNamespace) -> list[Image.Image]:
    return [tiny.noise(*size, seed=number) for number, size in enumerate(RAGGED)]


def test_every_method_is_here() -> None:
    assert sorted(PRUNERS) == METHODS


@pytest.mark.parametrize("name", METHODS)
class TestRanking:
    @pytest.mark.parametrize("composed", [False, True])
    @pytest.mark.parametrize("scoring", ["logits", "generate"])
    def test_keep_ratio_one_is_the_untouched_model(
        self,
        tiny: SimpleNamespace,
        vlm: ListwiseVLM,
        images: list[Image.Image],
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        scoring: Any,
        composed: bool,
    ) -> None:
        monkeypatch.setattr("radical_haystack.vlm.listwise.MAX_NEW_TOKENS", 4)
        reference = tiny.noise(48, 64, seed=99) if composed else None
        untouched = vlm.rank(QUERY, images, reference, pruner=None, scoring=scoring)
        ranking = vlm.rank(QUERY, images, reference, pruner=name, keep_ratio=1.0, scoring=scoring)
        assert ranking.scores == untouched.scores
        assert ranking.metadata.get("texts") == untouched.metadata.get("texts")
        assert ranking.kept_tokens == ranking.total_tokens == untouched.total_tokens

    @pytest.mark.parametrize("keep_ratio", [0.1, 0.2, 0.5])
    def test_holds_the_budget_over_ragged_images(
        self, vlm: ListwiseVLM, images: list[Image.Image], name: str, keep_ratio: float
    ) -> None:
        ranking = vlm.rank(QUERY, images, pruner=name, keep_ratio=keep_ratio)
        total, kept = sum(ranking.total_tokens), sum(ranking.kept_tokens)
        exact = total if name == "dense" else keep_ratio * total
        # Three cuts round up once each; an image's grid has whole rows and columns.
        tolerance = 2 if name in RESIZING else 3 if name in ("radical", "random") else 1
        assert abs(kept - exact) <= tolerance
        assert sorted(ranking.order) == list(range(len(images)))
        assert all(math.isfinite(score) for score in ranking.scores)
        assert ranking.metadata["pruner"] == name

    def test_is_deterministic(
        self, tiny: SimpleNamespace, vlm: ListwiseVLM, images: list[Image.Image], name: str
    ) -> None:
        first = vlm.rank(QUERY, images, pruner=name, keep_ratio=0.2)
        vlm.rank("other words", images[:3], pruner=name, keep_ratio=0.5)
        torch.rand(7)
        fresh = ListwiseVLM(tiny.model(), tiny.processor(), schedule=SCHEDULE)
        for again in (vlm, fresh):
            ranking = again.rank(QUERY, images, pruner=name, keep_ratio=0.2)
            assert ranking.scores == first.scores
            assert torch.equal(ranking.traces[0].kept, first.traces[0].kept)

    def test_writes_an_order(
        self, vlm: ListwiseVLM, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setattr("radical_haystack.vlm.listwise.MAX_NEW_TOKENS", 4)
        ranking = vlm.rank(QUERY, images, pruner=name, keep_ratio=0.2, scoring="generate", window_size=5, window_step=3)
        assert sorted(ranking.order) == list(range(len(images)))
        assert len(ranking.metadata["texts"]) == 2

    def test_needs_no_schedule_unless_it_says_so(
        self, tiny: SimpleNamespace, images: list[Image.Image], name: str
    ) -> None:
        ranking = ListwiseVLM(tiny.model(), tiny.processor()).rank(QUERY, images, pruner=name)
        assert ranking.metadata["calibrating"] == PRUNERS[name].needs_schedule == (name in ("radical", "random"))
        kept = sum(ranking.kept_tokens) / sum(ranking.total_tokens)
        assert kept == pytest.approx(1 if name == "dense" or ranking.metadata["calibrating"] else 0.2, abs=0.02)

    def test_a_single_tiny_image(self, tiny: SimpleNamespace, vlm: ListwiseVLM, name: str) -> None:
        ranking = vlm.rank(QUERY, [tiny.noise(16, 16)], pruner=name, keep_ratio=0.1)
        assert (ranking.order, ranking.kept_tokens) == ((0,), (1,))


@pytest.mark.parametrize("name", IN_THE_MODEL)
class TestPass:
    @torch.inference_mode()
    def test_keep_ratio_one_is_bit_identical(self, tiny: SimpleNamespace, name: str) -> None:
        model, example = tiny.model(), tiny.example(sizes=RAGGED, reference=(32, 48))
        expected = model(**example.inputs)
        attention = received(tiny, example)
        with prune(model, of(name, 1.0), example.prompt.layout, encoder_attention=attention):
            output = model(**example.inputs)
        assert torch.equal(output.logits, expected.logits)
        for layer, untouched in zip(output.cache.layers, expected.cache.layers, strict=True):
            assert torch.equal(layer.keys, untouched.keys)

    @torch.inference_mode()
    def test_the_reference_is_protected(self, tiny: SimpleNamespace, name: str) -> None:
        # Read from the rotations that the last layer is given.
        model, example = tiny.model(), tiny.example(sizes=RAGGED, reference=(48, 64))
        layout, seen = example.prompt.layout, []
        hook = model.model.language_model.layers[-1].self_attn.register_forward_pre_hook(
            lambda module, args, kwargs: seen.append(kwargs["position_embeddings"][0][0]), with_kwargs=True
        )
        model(**example.inputs)
        attention = received(tiny, example)
        with prune(model, of(name, 0.05), layout, encoder_attention=attention) as trace:
            model(**example.inputs)
        hook.remove()
        dense, pruned = seen
        rows = kept_rows(trace, layout)
        assert torch.equal(pruned, dense[rows])
        assert set(layout.reference_positions.tolist()) <= set(rows)
        assert name == "dense" or len(trace.kept) <= 0.05 * len(layout.candidate_index) + 3

    @torch.inference_mode()
    def test_no_square_matrix(self, tiny: SimpleNamespace, name: str) -> None:
        model, example = tiny.model(), tiny.example(sizes=((64, 64),) * 12)
        length = example.prompt.layout.length
        images = family_of(model).encode(
            model, example.inputs["pixel_values"], example.inputs["image_grid_thw"], attention=True
        )
        attention = torch.cat([image.attention for image in images])
        inputs = {
            "input_ids": example.prompt.input_ids,
            **family_of(model).vision_inputs(images, example.prompt.token_types),
        }
        with (
            prune(model, of(name, 0.2), example.prompt.layout, encoder_attention=attention),
            LargestTensor() as mode,
        ):
            model(**inputs, logits_to_keep=1)
        assert mode.numel < length**2 / 2


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", DROPPING)
class TestPrunedIsMasked:
    """As the dense pass in which dropped tokens are masked, also where DeepStack features are still to come."""

    @torch.inference_mode()
    def test_forward(self, tiny: SimpleNamespace, name: str, attention: str) -> None:
        model, example = tiny.model(attention=attention), tiny.example(sizes=RAGGED, reference=(32, 48))
        layout = example.prompt.layout
        with prune(model, of(name, 0.3), layout) as trace:
            output = model(**example.inputs)
        expected, _ = tiny.slow_reference(example, tiny.dropped_by(trace, layout))
        rows = kept_rows(trace, layout)
        assert output.logits.shape[1] == len(rows) < layout.length
        assert (output.logits[0] - expected[rows]).abs().max() <= 1e-4

    @torch.inference_mode()
    def test_generate(self, tiny: SimpleNamespace, name: str, attention: str) -> None:
        model, example = tiny.model(attention=attention), tiny.example(sizes=RAGGED, reference=(32, 48))
        layout = example.prompt.layout
        settings = {"max_new_tokens": 5, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
        with prune(model, of(name, 0.3), layout) as trace:
            output = model.generate(**example.inputs, **settings)
        new = output.sequences[0, layout.length :].tolist()
        expected, _ = tiny.slow_reference(example, tiny.dropped_by(trace, layout), new)
        assert (torch.cat(output.logits) - expected[layout.length - 1 : -1]).abs().max() <= 1e-4


@torch.inference_mode()
def test_generation_continues_on_merged_tokens(tiny: SimpleNamespace) -> None:
    """VisionZip has no masked twin: decoding step by step must agree with one pass over all that was written."""
    model, example = tiny.model(), tiny.example(sizes=RAGGED, reference=(32, 48))
    layout, attention = example.prompt.layout, received(tiny, example)
    settings = {"max_new_tokens": 5, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
    with prune(model, of("visionzip", 0.3), layout, encoder_attention=attention):
        output = model.generate(**example.inputs, **settings)
    new = output.sequences[:, layout.length :]
    longer = replace_layout(layout, layout.length + new.shape[1])
    inputs = {
        **example.inputs,
        "input_ids": output.sequences,
        "mm_token_type_ids": torch.cat([example.prompt.token_types, torch.zeros_like(new)], dim=1),
    }
    with prune(model, of("visionzip", 0.3), longer, encoder_attention=attention):
        expected = model(**inputs).logits[0]
    assert (torch.cat(output.logits) - expected[-6:-1]).abs().max() <= 1e-4


@pytest.mark.parametrize("name", [name for name in PRUNING if issubclass(PRUNERS[name], InputPruner)])
@torch.inference_mode()
def test_what_acts_before_the_decoder_shortens_all_of_it(tiny: SimpleNamespace, name: str) -> None:
    model, example = tiny.model(), tiny.example(sizes=RAGGED)
    attention = received(tiny, example)
    with prune(model, of(name, 0.3), example.prompt.layout, encoder_attention=attention) as trace:
        output = model(**example.inputs)
    (stage,) = trace.stages
    assert stage.layer == BEFORE_DECODER
    assert f"input: {stage.before} -> {stage.kept.numel()}" in repr(trace)
    lengths = {layer.keys.shape[-2] for layer in output.cache.layers}
    assert lengths == {len(kept_rows(trace, example.prompt.layout))}


def kept_rows(trace: Any, layout: Any) -> list[int]:
    gone = set(range(len(layout.candidate_index))) - set(trace.kept.tolist())
    dropped = {int(layout.candidate_positions[token]) for token in gone}
    return [position for position in range(layout.length) if position not in dropped]


def replace_layout(layout: Any, length: int) -> Any:
    return type(layout)(**{**vars(layout), "length": length})


class LargestTensor(TorchDispatchMode):
    """Remembers the size of the largest tensor any operation returns."""

    numel = 0

    def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        for item in output if isinstance(output, tuple | list) else [output]:
            if isinstance(item, torch.Tensor):
                self.numel = max(self.numel, item.numel())
        return output
