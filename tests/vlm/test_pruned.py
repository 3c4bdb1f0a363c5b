# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What must be true of any pruned pass (method.md, invariants 1-6), and that the model is left as it was."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import DynamicCache, StaticCache

from radical_haystack.pruning import DecoderShape, PruningSchedule, RadicalPruner, prefill_cost
from radical_haystack.pruning.pruners.base import CandidateTokens, LayerObservation, Pruner
from radical_haystack.vlm.families import family_of
from radical_haystack.vlm.prompt import PromptLayout
from radical_haystack.vlm.pruned import prune

pytestmark = pytest.mark.filterwarnings("ignore:`past_key_values` is deprecated:FutureWarning")

TOLERANCE = 1e-4
SCHEDULES = ((0,), (1,), (2,), (0, 1, 2), (1, 3), (2, 4), (4,), (5,))
"""Pruning before, between and after the two DeepStack injections, and at the very last layer."""


def radical(layers: tuple[int, ...], keep_ratio: float, alpha: float = 0.5) -> RadicalPruner:
    return RadicalPruner(PruningSchedule(layers, (alpha,) * len(layers), keep_ratio))


def hooks(model: torch.nn.Module) -> int:
    names = ("_forward_hooks", "_forward_pre_hooks")
    return sum(len(getattr(module, name)) for module in model.modules() for name in names)


class Everything(Pruner):
    """Keeps all tokens and remembers what it saw."""

    def __init__(self, layers: tuple[int, ...]) -> None:
        self._layers = layers
        self.seen: dict[int, SimpleNamespace] = {}

    @property
    def layers(self) -> tuple[int, ...]:
        return self._layers

    def select(self, observation: LayerObservation) -> torch.Tensor:
        self.seen[observation.layer] = SimpleNamespace(
            text=observation.attention("text"), last=observation.attention("last"), keys=observation.keys()
        )
        return torch.arange(observation.active.numel())


class TestNothingPruned:
    """Invariant 1: bit-identical to the untouched model."""

    @pytest.mark.parametrize("reference", [None, (32, 48)])
    @pytest.mark.parametrize("pruner", [None, Everything(()), radical((0, 1, 3), 1.0), Everything((0, 1, 2, 3, 4, 5))])
    @torch.inference_mode()
    def test_forward(self, tiny: SimpleNamespace, pruner: Any, reference: Any) -> None:
        model, example = tiny.model(), tiny.example(reference=reference)
        expected = model(**example.inputs)
        with prune(model, pruner, example.prompt.layout) as trace:
            output = model(**example.inputs)
        assert torch.equal(output.logits, expected.logits)
        for layer, untouched in zip(output.cache.layers, expected.cache.layers, strict=True):
            assert torch.equal(layer.keys, untouched.keys)
            assert torch.equal(layer.values, untouched.values)
        assert trace.kept_per_candidate == trace.total_per_candidate == example.prompt.layout.tokens_per_candidate

    @torch.inference_mode()
    def test_generate(self, tiny: SimpleNamespace) -> None:
        model, example = tiny.model(), tiny.example()
        settings = {"max_new_tokens": 6, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
        expected = model.generate(**example.inputs, **settings)
        with prune(model, radical((0, 2), 1.0), example.prompt.layout):
            output = model.generate(**example.inputs, **settings)
        assert torch.equal(output.sequences, expected.sequences)
        assert torch.equal(torch.stack(output.logits), torch.stack(expected.logits))


class TestPrunedIsMasked:
    """Invariant 2: as the dense pass in which dropped tokens are masked from the next layer on."""

    @pytest.mark.parametrize("attention", ["sdpa", "eager"])
    @pytest.mark.parametrize("layers", SCHEDULES)
    @torch.inference_mode()
    def test_forward(self, tiny: SimpleNamespace, layers: tuple[int, ...], attention: str) -> None:
        model, example = tiny.model(attention=attention), tiny.example(reference=(32, 48))
        with prune(model, tiny.KeepPositions(dict.fromkeys(layers, 0.6)), example.prompt.layout) as trace:
            output = model(**example.inputs)
        rows = tiny.kept_rows(trace, example.prompt.layout)
        expected, _ = tiny.slow_reference(example, tiny.dropped_by(trace, example.prompt.layout))
        assert len(rows) < example.prompt.layout.length
        assert output.logits.shape[1] == len(rows)
        assert (output.logits[0] - expected[rows]).abs().max() <= TOLERANCE

    @pytest.mark.parametrize("attention", ["sdpa", "eager"])
    @pytest.mark.parametrize("layers", SCHEDULES)
    @torch.inference_mode()
    def test_generate(self, tiny: SimpleNamespace, layers: tuple[int, ...], attention: str) -> None:
        model, example = tiny.model(attention=attention), tiny.example(reference=(32, 48))
        layout = example.prompt.layout
        with prune(model, tiny.KeepPositions(dict.fromkeys(layers, 0.6)), layout) as trace:
            output = model.generate(
                **example.inputs, max_new_tokens=5, do_sample=False, output_logits=True, return_dict_in_generate=True
            )
        new = output.sequences[0, layout.length :].tolist()
        expected, _ = tiny.slow_reference(example, tiny.dropped_by(trace, layout), new)
        assert len(new) == 5
        assert (torch.cat(output.logits) - expected[layout.length - 1 : -1]).abs().max() <= TOLERANCE

    @torch.inference_mode()
    def test_the_tolerance_tells_pruned_from_dense(self, tiny: SimpleNamespace) -> None:
        model, example = tiny.model(), tiny.example()
        dense = model(**example.inputs).logits[0, -1]
        for layer in range(5):
            with prune(model, tiny.KeepPositions({layer: 0.6}), example.prompt.layout):
                assert (model(**example.inputs).logits[0, -1] - dense).abs().max() > 100 * TOLERANCE

    @torch.inference_mode()
    def test_the_last_layer_changes_only_its_cache(self, tiny: SimpleNamespace) -> None:
        model, example = tiny.model(), tiny.example()
        dense = model(**example.inputs).logits[0, -1]
        with prune(model, tiny.KeepPositions({5: 0.5}), example.prompt.layout) as trace:
            output = model(**example.inputs)
        assert (output.logits[0, -1] - dense).abs().max() <= TOLERANCE
        lengths = [layer.keys.shape[-2] for layer in output.cache.layers]
        assert lengths == [example.prompt.layout.length] * 5 + [len(tiny.kept_rows(trace, example.prompt.layout))]

    @pytest.mark.parametrize("layers", [(0, 3), (2, 4)])
    @pytest.mark.parametrize("spelling", ["cache", "past_key_values"])
    @torch.inference_mode()
    def test_a_loop_of_forward_calls(self, tiny: SimpleNamespace, spelling: str, layers: tuple[int, ...]) -> None:
        model, example = tiny.model(), tiny.example()
        layout, cache = example.prompt.layout, DynamicCache()
        new = [65, 66, 67]
        with prune(model, tiny.KeepPositions(dict.fromkeys(layers, 0.6)), layout) as trace:
            logits = [model(**example.inputs, **{spelling: cache}).logits[0, -1]]
            for token in new:
                step = {"input_ids": torch.tensor([[token]]), spelling: cache}
                logits.append(model(**step).logits[0, -1])
        expected, _ = tiny.slow_reference(example, tiny.dropped_by(trace, layout), new)
        assert (torch.stack(logits) - expected[layout.length - 1 :]).abs().max() <= TOLERANCE

    @pytest.mark.parametrize("spelling", ["cache", "past_key_values"])
    @torch.inference_mode()
    def test_the_decoder_itself_takes_both_spellings(self, tiny: SimpleNamespace, spelling: str) -> None:
        # Called directly, the decoder's hooks see whichever name the caller used, as in older versions of transformers.
        model, layout = tiny.model(), tiny.example().prompt.layout
        embeds = torch.randn(1, layout.length + 1, 64, generator=torch.Generator().manual_seed(0))
        outputs = []
        for name in ("cache", spelling):
            cache = DynamicCache()
            with prune(model, tiny.KeepPositions({0: 0.5, 3: 0.5}), layout):
                for part in (embeds[:, :-1], embeds[:, -1:]):
                    output = model.model.language_model(inputs_embeds=part, **{name: cache})
            outputs.append(output.last_hidden_state)
        assert torch.equal(*outputs)
        assert 0 < cache.get_seq_length(0) < layout.length

    @torch.inference_mode()
    def test_a_prompt_may_come_again(self, tiny: SimpleNamespace) -> None:
        model, example = tiny.model(), tiny.example()
        with prune(model, radical((1, 3), 0.3), example.prompt.layout) as trace:
            first = model(**example.inputs).logits
            model.generate(**example.inputs, max_new_tokens=2, do_sample=False)
            assert torch.equal(model(**example.inputs).logits, first)
            assert len(trace.stages) == 2

    @torch.inference_mode()
    def test_a_mask_of_ones_changes_nothing(self, tiny: SimpleNamespace) -> None:
        model, example = tiny.model(), tiny.example()
        with prune(model, radical((1, 3), 0.3), example.prompt.layout):
            plain = model(**example.inputs).logits
            masked = model(**example.inputs, attention_mask=torch.ones_like(example.prompt.input_ids)).logits
        assert torch.equal(plain, masked)

    def test_gradients_pass(self, tiny: SimpleNamespace) -> None:
        model, example = tiny.model(), tiny.example()
        with prune(model, radical((1, 3), 0.3), example.prompt.layout):
            (gradient,) = torch.autograd.grad(model(**example.inputs).logits.sum(), model.lm_head.weight)
        assert gradient.abs().sum() > 0


class TestAttention:
    """The rows beside SDPA against the full matrices of eager attention."""

    @pytest.mark.parametrize("reference", [None, (32, 48)])
    @torch.inference_mode()
    def test_unpruned(self, tiny: SimpleNamespace, reference: Any) -> None:
        example = tiny.example(reference=reference)
        layout, probe = example.prompt.layout, Everything(tuple(range(6)))
        with prune(tiny.model(), probe, layout):
            tiny.model()(**example.inputs)
        _, weights = tiny.slow_reference(example, {})
        for layer, seen in probe.seen.items():
            rows = weights[layer][:, layout.candidate_positions]
            assert seen.text.dtype == torch.float32
            assert (seen.text - rows[layout.text_positions]).abs().max() < 1e-6
            assert (seen.last - rows[-1:]).abs().max() < 1e-6

    @torch.inference_mode()
    def test_after_pruning(self, tiny: SimpleNamespace) -> None:
        example = tiny.example(reference=(32, 48))
        layout, seen = example.prompt.layout, {}

        class Watching(tiny.KeepPositions):
            def score(self, observation: LayerObservation) -> torch.Tensor:
                seen[observation.layer] = observation.active, observation.attention("text")
                return super().score(observation)

        with prune(tiny.model(), Watching({0: 0.7, 1: 0.7, 3: 0.7, 5: 0.7}), layout) as trace:
            tiny.model()(**example.inputs)
        _, weights = tiny.slow_reference(example, tiny.dropped_by(trace, layout))
        for layer, (active, attention) in seen.items():
            expected = weights[layer][layout.text_positions][:, layout.candidate_positions[active]]
            assert (attention - expected).abs().max() < 1e-6

    @torch.inference_mode()
    def test_many_rows_are_computed_in_parts(self, tiny: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
        example, probes = tiny.example(), [Everything((1,)), Everything((1,))]
        for probe in probes:
            with prune(tiny.model(), probe, example.prompt.layout), LargestTensor() as mode:
                tiny.model().model.language_model(inputs_embeds=torch.ones(1, example.prompt.layout.length, 64))
            largest = mode.numel
            monkeypatch.setattr("radical_haystack.vlm.attention._MAX_WEIGHTS", 7 * 4 * example.prompt.layout.length)
        assert largest < 4 * example.prompt.layout.text_positions.numel() * example.prompt.layout.length
        assert (probes[0].seen[1].text - probes[1].seen[1].text).abs().max() < 1e-6

    @torch.inference_mode()
    def test_keys_are_those_of_the_cache(self, tiny: SimpleNamespace) -> None:
        example, probe = tiny.example(), Everything((0, 4))
        with prune(tiny.model(), probe, example.prompt.layout):
            cache = tiny.model()(**example.inputs).cache
        for layer, seen in probe.seen.items():
            assert torch.equal(seen.keys, cache.layers[layer].keys[0][:, example.prompt.layout.candidate_positions])

    @torch.inference_mode()
    def test_no_square_matrix(self, tiny: SimpleNamespace) -> None:
        # Invariant 6. The eager model shows that the test would see one.
        example = tiny.example(sizes=((64, 64),) * 12)
        length = example.prompt.layout.length
        largest = {}
        for attention in ("sdpa", "eager"):
            model = tiny.model(attention=attention)
            encoded = model.get_image_features(example.inputs["pixel_values"], example.inputs["image_grid_thw"])
            inputs = {k: v for k, v in example.inputs.items() if k != "pixel_values"}
            with prune(model, radical((0, 2, 4), 0.2), example.prompt.layout), LargestTensor() as mode:
                model(**inputs, mm_encoder_outputs={"image": encoded}, logits_to_keep=1)
            largest[attention] = mode.numel
        assert largest["sdpa"] < length**2 / 2
        assert largest["eager"] >= length**2


class LargestTensor(TorchDispatchMode):
    """Remembers the size of the largest tensor any operation returns."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        for item in output if isinstance(output, tuple | list) else [output]:
            if isinstance(item, torch.Tensor):
                self.numel = max(self.numel, item.numel())
        return output


class TestCandidatesAndReference:
    @pytest.mark.parametrize("own_query", [False, True])
    @torch.inference_mode()
    def test_what_a_pruner_is_told(self, tiny: SimpleNamespace, own_query: bool) -> None:
        model, example = tiny.model(), tiny.example(reference=(32, 48))
        layout, told = example.prompt.layout, []

        class Listening(Everything):
            def prior(self, candidates: CandidateTokens) -> None:
                told.append(candidates)

        query = torch.randn(64) if own_query else None
        with prune(model, Listening((2,)), layout, query_embedding=query):
            model(**example.inputs)
        encoded = model.get_image_features(example.inputs["pixel_values"], example.inputs["image_grid_thw"])
        assert torch.equal(told[0].tokens, torch.cat(encoded.pooler_output[:5]))
        assert told[0].candidate_index.tolist() == [0] * 12 + [1] + [2] * 8 + [3] * 3 + [4] * 4
        ids = tiny.processor().tokenizer(" a red shirt", add_special_tokens=False, return_tensors="pt")["input_ids"]
        words = model.get_input_embeddings()(ids)[0].mean(0)
        expected = query if own_query else words / words.norm()
        assert (told[0].query_embedding - expected).abs().max() < 1e-6

    @given(order=st.permutations(range(5)), ratio=st.sampled_from([0.2, 0.5, 0.8]))
    @settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.generate])
    def test_the_order_of_candidates_does_not_change_what_dti_keeps(
        self, tiny: SimpleNamespace, order: list[int], ratio: float
    ) -> None:
        # Invariant 3: alpha = 1 is DTI alone. With the mean token as the query no relevance is cut off at 0: irrelevant
        # tokens would tie, and ties go by position.
        model, example = tiny.model(), tiny.example()
        family = family_of(model)
        with torch.inference_mode():
            encoded = family.encode(model, example.inputs["pixel_values"], example.inputs["image_grid_thw"])
            query = torch.cat([image.tokens for image in encoded]).mean(0)
        kept = {}
        for name, candidates in (("given", range(5)), ("permuted", order)):
            images = [encoded[candidate] for candidate in candidates]
            prompt = tiny.prompts().build("a red shirt", [len(image.tokens) for image in images])
            inputs = {"input_ids": prompt.input_ids, **family.vision_inputs(images, prompt.token_types)}
            pruner = radical((2,), ratio, alpha=1.0)
            with torch.inference_mode(), prune(model, pruner, prompt.layout, query_embedding=query) as trace:
                model(**inputs)
            starts = torch.tensor([0, *prompt.layout.tokens_per_candidate]).cumsum(0)
            index = prompt.layout.candidate_index[trace.kept]
            within = trace.kept - starts[index]
            kept[name] = {(candidates[k], t) for k, t in zip(index.tolist(), within.tolist(), strict=True)}
        assert kept["permuted"] == kept["given"]

    @torch.inference_mode()
    def test_the_reference_is_protected(self, tiny: SimpleNamespace) -> None:
        # Invariant 4, read from the rotations that the last layer is given.
        model, example = tiny.model(), tiny.example(reference=(48, 64))
        layout, seen = example.prompt.layout, []
        hook = model.model.language_model.layers[-1].self_attn.register_forward_pre_hook(
            lambda module, args, kwargs: seen.append(kwargs["position_embeddings"][0][0]), with_kwargs=True
        )
        model(**example.inputs)
        with prune(model, radical((0, 1, 2, 3), 0.05), layout) as trace:
            model(**example.inputs)
        hook.remove()
        dense, pruned = seen
        assert layout.reference_positions.numel() == 12
        assert len(trace.kept) < 5
        assert torch.equal(pruned, dense[tiny.kept_rows(trace, layout)])
        assert set(layout.reference_positions.tolist()) <= set(tiny.kept_rows(trace, layout))


class TestCounts:
    @given(
        sizes=st.lists(st.tuples(st.integers(10, 70), st.integers(10, 70)), min_size=1, max_size=8),
        reference=st.none() | st.just((32, 32)),
        layers=st.sets(st.integers(0, 5), min_size=1, max_size=4),
        ratio=st.floats(0.02, 1.0),
        alpha=st.floats(0, 1),
        seed=st.integers(0, 3),
    )
    @settings(max_examples=40, deadline=None)
    def test_kept_is_what_the_formula_says(
        self, tiny: SimpleNamespace, sizes: Any, reference: Any, layers: set[int], ratio: float, alpha: float, seed: int
    ) -> None:
        model = tiny.seeded_model(seed)
        example = tiny.example(sizes=tuple(sizes), reference=reference)
        layout, ordered = example.prompt.layout, tuple(sorted(layers))
        with prune(model, radical(ordered, ratio, alpha), layout) as trace, torch.inference_mode():
            output = model(**example.inputs)
        total = layout.candidate_positions.numel()
        lengths = []
        for stage in trace.stages:
            left = math.ceil(total * ratio ** (1 / len(ordered)) - 1e-8)
            assert (stage.before, stage.kept.numel()) == (total, left)
            assert sum(stage.kept_per_candidate) == left
            assert stage.kept.tolist() == sorted(set(stage.kept.tolist()))
            total = left
            lengths.append(layout.length - layout.candidate_positions.numel() + left)
        assert [output.cache.layers[layer].keys.shape[-2] for layer in ordered] == lengths
        assert output.logits.shape[1] == lengths[-1]
        assert output.logits.isfinite().all()

    @pytest.mark.parametrize("ratio", [0.1, 0.2, 1.0])
    @torch.inference_mode()
    def test_flops_are_those_of_the_analytic_model(self, tiny: SimpleNamespace, ratio: float) -> None:
        # Invariant 5, on the decoder and its output head: the vision encoder's outputs are passed in.
        # Eager attention, because the counter does not know SDPA's operation on a CPU.
        model, example = tiny.model(attention="eager"), tiny.example(sizes=((64, 64),) * 20)
        layout = example.prompt.layout
        inputs = {k: v for k, v in example.inputs.items() if k != "pixel_values"}
        encoded = model.get_image_features(example.inputs["pixel_values"], example.inputs["image_grid_thw"])
        pruner = radical((2, 4), ratio)
        with prune(model, pruner, layout), FlopCounterMode(display=False) as counter:
            model(**inputs, mm_encoder_outputs={"image": encoded}, logits_to_keep=1)
        visual, config = layout.candidate_positions.numel(), model.config.text_config
        shape = DecoderShape(
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            intermediate=config.intermediate_size,
            vocab=config.vocab_size,
        )
        rows = layout.text_positions.numel()
        cost = prefill_cost(shape, visual, layout.length - visual, pruner.schedule, scoring_rows=rows)
        assert counter.get_total_flops() == pytest.approx(cost.flops, rel=0.01)


class TestTrace:
    @torch.inference_mode()
    def test_figures(self, tiny: SimpleNamespace) -> None:
        model, example = tiny.model(), tiny.example()
        with prune(model, radical((2, 4), 0.25, alpha=0.3), example.prompt.layout) as trace:
            model(**example.inputs)
        first, last = trace.stages
        assert (first.layer, first.before, last.layer) == (2, 28, 4)
        assert first.kept.numel() == last.before == 14
        assert all(0 < stage.entropy < 1 and stage.alpha == pytest.approx(0.3) for stage in trace.stages)
        assert trace.total_per_candidate == (12, 1, 8, 3, 4)
        index = example.prompt.layout.candidate_index
        assert trace.kept_per_candidate == tuple(int((index[trace.kept] == k).sum()) for k in range(5))
        assert "28 -> 7 visual tokens; layer 2: 28 -> 14" in repr(trace)
        assert "entropy 0." in repr(trace)
        assert 0 < trace.timings["select"] + trace.timings["prior"] < trace.timings["decoder"]

    def test_before_any_pass(self, tiny: SimpleNamespace) -> None:
        with prune(tiny.model(), radical((2,), 0.5), tiny.example().prompt.layout) as trace:
            assert trace.stages == ()
            assert repr(trace) == "PruningTrace(28 -> 28 visual tokens)"


class TestHygiene:
    """The model is left as it was, and misuse is named."""

    @pytest.mark.parametrize("where", ["body", "prior", "select"])
    def test_hooks_go_after_an_error(self, tiny: SimpleNamespace, where: str) -> None:
        model, example = tiny.model(), tiny.example()
        before = hooks(model)
        expected = model(**example.inputs).logits

        class Failing(Everything):
            def prior(self, candidates: Any) -> None:
                if where == "prior":
                    raise ArithmeticError(where)

            def select(self, observation: Any) -> torch.Tensor:
                if where == "select":
                    raise ArithmeticError(where)
                return super().select(observation)

        with pytest.raises(ArithmeticError, match=where), prune(model, Failing((3,)), example.prompt.layout):  # noqa: PT012
            assert hooks(model) > before
            model(**example.inputs)
            raise ArithmeticError(where)
        assert hooks(model) == before
        assert torch.equal(model(**example.inputs).logits, expected)

    def test_no_hooks_without_pruning(self, tiny: SimpleNamespace) -> None:
        before = hooks(tiny.model())
        with prune(tiny.model(), Everything(()), tiny.example().prompt.layout):
            assert hooks(tiny.model()) == before

    def test_one_context_at_a_time(self, tiny: SimpleNamespace) -> None:
        layout = tiny.example().prompt.layout
        with prune(tiny.model(), radical((2,), 0.5), layout):
            before = hooks(tiny.model())
            with (
                pytest.raises(RuntimeError, match="already being pruned"),
                prune(tiny.model(), radical((2,), 0.5), layout),
            ):
                pass
            assert hooks(tiny.model()) == before
        with prune(tiny.model(), radical((2,), 0.5), layout):
            pass

    def test_layers_must_exist(self, tiny: SimpleNamespace) -> None:
        with (
            pytest.raises(ValueError, match=r"\[6\] do not exist: the model has layers 0 to 5"),
            prune(tiny.model(), radical((2, 6), 0.5), tiny.example().prompt.layout),
        ):
            pass

    def test_unsupported_family(self, tiny: SimpleNamespace) -> None:
        with (
            pytest.raises(ValueError, match="'Linear' are not supported; supported: qwen3_vl"),
            prune(torch.nn.Linear(1, 1), radical((0,), 0.5), tiny.example().prompt.layout),
        ):
            pass

    @torch.inference_mode()
    def test_misuse_is_named(self, tiny: SimpleNamespace) -> None:
        model, example, other = tiny.model(), tiny.example(), tiny.example("another query")
        two = {key: torch.cat([value, value]) for key, value in example.inputs.items()}
        padding = torch.ones_like(example.prompt.input_ids)
        padding[0, 0] = 0
        static = StaticCache(config=model.config, max_cache_len=400)
        with prune(model, radical((2,), 0.5), example.prompt.layout):
            with pytest.raises(ValueError, match="batch size 1"):
                model(**two)
            with pytest.raises(ValueError, match=r"prompt has \d+ tokens, but the layout"):
                model(**other.inputs)
            with pytest.raises(ValueError, match="without padding"):
                model(**example.inputs, attention_mask=padding)
            with pytest.raises(ValueError, match="use DynamicCache"):
                model(**example.inputs, cache=static)
            cache = model(**example.inputs).cache
            with pytest.raises(ValueError, match="one new token per decoding step, got 2"):
                model(input_ids=torch.tensor([[65, 66]]), cache=cache)
        with (
            prune(model, radical((2,), 0.5), example.prompt.layout),
            pytest.raises(ValueError, match="starts with an empty cache"),
        ):
            model(input_ids=torch.tensor([[65]]), cache=cache)
        with prune(model, radical((2,), 0.5), example.prompt.layout), pytest.raises(ValueError, match="no beam search"):
            model.generate(**example.inputs, num_beams=2, max_new_tokens=2)


class TestLayoutOfAnyPrompt:
    def test_found_from_token_ids(self, tiny: SimpleNamespace) -> None:
        example = tiny.example(reference=(32, 48))
        built, tokenizer = example.prompt.layout, tiny.processor().tokenizer
        found = PromptLayout.from_input_ids(
            example.prompt.input_ids,
            tokenizer.convert_tokens_to_ids("<|image_pad|>"),
            candidates=5,
            query_positions=built.query_positions,
            marker_ids=tokenizer.convert_tokens_to_ids(["<|vision_start|>", "<|vision_end|>"]),
        )
        for name in ("candidate_positions", "candidate_index", "text_positions", "reference_positions"):
            assert torch.equal(getattr(found, name), getattr(built, name))

    def test_impossible_prompts(self) -> None:
        with pytest.raises(ValueError, match="holds 1 images; 2 candidates"):
            PromptLayout.from_input_ids(torch.tensor([1, 9, 9, 1]), 9, candidates=2)
        with pytest.raises(ValueError, match="no text after its last candidate"):
            PromptLayout.from_input_ids(torch.tensor([1, 9, 9]), 9)
