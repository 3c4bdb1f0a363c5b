# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
FastV, PyramidDrop, SparseVLM and DART against slow references: the full attention matrices of the eager model with the
tokens dropped so far masked out, and explicit loops over rows and tokens.
"""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from radical_haystack.pruning import (
    DARTPruner,
    FastVPruner,
    Pruner,
    PyramidDropPruner,
    Setting,
    SparseVLMPruner,
    build_pruner,
)
from radical_haystack.vlm.prompt import PromptLayout
from radical_haystack.vlm.pruned import prune

SIZES = ((64, 48), (16, 16), (32, 64), (48, 16), (40, 40), (64, 64))
Chooser = Callable[[Any, PromptLayout, list[int], int], tuple[list[float], int]]
"""From a layer's full attention matrix, the layout, the active tokens and the layer: their scores and how many stay."""


def best(scores: list[float], count: int) -> list[int]:
    return sorted(sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:count])


def slowly(tiny: SimpleNamespace, example: Any, layers: tuple[int, ...], choose: Chooser) -> list[list[int]]:
    """What is kept after each layer, by the dense model with everything dropped so far masked out."""
    layout = example.prompt.layout
    active, dropped, kept = list(range(layout.candidate_positions.numel())), {}, []
    for layer in layers:
        attention = tiny.slow_reference(example, dropped)[1][layer]
        scores, count = choose(attention, layout, active, layer)
        stays = [active[place] for place in best(scores, count)]
        dropped[layer] = [int(layout.candidate_positions[token]) for token in active if token not in stays]
        active = stays
        kept.append(stays)
    return kept


def quickly(tiny: SimpleNamespace, example: Any, pruner: Pruner, model: Any = None) -> list[list[int]]:
    model = model or tiny.model()
    with torch.inference_mode(), prune(model, pruner, example.prompt.layout) as trace:
        model(**example.inputs)
    return [stage.kept.tolist() for stage in trace.stages]


@pytest.fixture(scope="module")
def unequal_keys(tiny: SimpleNamespace) -> dict[str, Any]:
    """Models whose keys differ in length, as those of a trained model do: its normalisation has learnt weights."""
    models = {attention: tiny.build_model(attention=attention) for attention in ("sdpa", "eager")}
    for model in models.values():
        generator = torch.Generator().manual_seed(1)
        for layer in model.model.language_model.layers:
            torch.nn.init.uniform_(layer.self_attn.k_norm.weight, 0.2, 2.0, generator=generator)
    return models


def from_last_token(attention: Any, layout: PromptLayout, active: list[int]) -> list[float]:
    last = layout.length - 1
    return [float(attention[last, layout.candidate_positions[token]]) for token in active]


@pytest.mark.parametrize("query", ["a red shirt", "grey trousers with a stripe"])
@pytest.mark.parametrize("reference", [None, (32, 48)])
class TestSameTokens:
    @pytest.mark.parametrize("layer", [0, 1, 2, 4])
    def test_fastv(self, tiny: SimpleNamespace, layer: int, reference: Any, query: str) -> None:
        def choose(attention: Any, layout: PromptLayout, active: list[int], layer: int) -> tuple[list[float], int]:
            return from_last_token(attention, layout, active), math.ceil(0.3 * len(active))

        example = tiny.example(query, SIZES, reference)
        assert quickly(tiny, example, FastVPruner({layer: 0.3})) == slowly(tiny, example, (layer,), choose)

    def test_pyramiddrop(self, tiny: SimpleNamespace, reference: Any, query: str) -> None:
        stages = {1: 0.5, 2: 0.25, 4: 0.1}
        example = tiny.example(query, SIZES, reference)
        total = example.prompt.layout.candidate_positions.numel()

        def choose(attention: Any, layout: PromptLayout, active: list[int], layer: int) -> tuple[list[float], int]:
            return from_last_token(attention, layout, active), math.ceil(stages[layer] * total)

        assert quickly(tiny, example, PyramidDropPruner(stages)) == slowly(tiny, example, tuple(stages), choose)

    @pytest.mark.parametrize("layers", [(1,), (0, 2, 4), (1, 2, 3, 4)])
    @pytest.mark.parametrize("keep_ratio", [0.2, 0.6])
    def test_sparsevlm(
        self, tiny: SimpleNamespace, layers: tuple[int, ...], keep_ratio: float, reference: Any, query: str
    ) -> None:
        example = tiny.example(query, SIZES, reference)
        budget = math.ceil(keep_ratio * example.prompt.layout.candidate_positions.numel())

        def choose(attention: Any, layout: PromptLayout, active: list[int], layer: int) -> tuple[list[float], int]:
            rows = []
            for row in layout.text_positions.tolist():
                rows.append([float(attention[row, layout.candidate_positions[token]]) for token in active])
            average = sum(map(sum, rows)) / len(rows)
            raters = [row for row in rows if sum(row) > average]
            assert 0 < len(raters) < len(rows)
            scores = [sum(row[place] for row in raters) / len(raters) for place in range(len(active))]
            ahead = sum(later > layer for later in layers)
            redundancy = 1 - int(torch.linalg.matrix_rank(torch.tensor(raters))) / len(active)
            share = redundancy / (redundancy + ahead) if ahead else 1
            wanted = len(active) * (budget / len(active)) ** share
            return scores, math.ceil(round(wanted, 6))

        assert quickly(tiny, example, SparseVLMPruner(layers, keep_ratio)) == slowly(tiny, example, layers, choose)

    @pytest.mark.parametrize("layer", [0, 1, 2, 4])
    @pytest.mark.parametrize("keep_ratio", [0.05, 0.3])
    def test_dart(
        self,
        tiny: SimpleNamespace,
        unequal_keys: dict[str, Any],
        layer: int,
        keep_ratio: float,
        reference: Any,
        query: str,
    ) -> None:
        example = tiny.example(query, SIZES, reference)
        model, positions, entering = unequal_keys["eager"], example.prompt.layout.candidate_positions, []
        hook = model.model.language_model.layers[layer].register_forward_pre_hook(
            lambda module, args, kwargs: entering.append(args[0][0]), with_kwargs=True
        )
        with torch.inference_mode():
            keys = model(**example.inputs).cache.layers[layer].keys[0]
        hook.remove()
        lengths, vectors = [], []
        for position in positions.tolist():
            lengths.append(math.sqrt(sum(float(value) ** 2 for head in keys for value in head[position])))
            vector = entering[0][position]
            vectors.append(vector / math.sqrt(float(vector @ vector)))
        pivots = best(lengths, 8)
        scores = [-max(float(vector @ vectors[pivot]) for pivot in pivots) for vector in vectors]
        for pivot in pivots:
            scores[pivot] = 1 + lengths[pivot]
        expected = best(scores, math.ceil(keep_ratio * len(vectors)))
        assert quickly(tiny, example, DARTPruner({layer: keep_ratio}), unequal_keys["sdpa"]) == [expected]
        assert set(expected) < set(pivots) if len(expected) < 8 else set(pivots) < set(expected)


class TestSparseVLM:
    @torch.inference_mode()
    def test_redundant_layers_prune_more(self, tiny: SimpleNamespace) -> None:
        """Fewer raters have a lower rank: of two prompts with equal images, that with more text prunes less early."""
        kept = []
        for query in ("a red shirt", "a red shirt with long sleeves, and blue trousers, and a hat, and a scarf"):
            example = tiny.example(query, SIZES)
            with prune(tiny.model(), SparseVLMPruner((1, 2, 4), 0.3), example.prompt.layout) as trace:
                tiny.model()(**example.inputs)
            first, _, last = trace.stages
            assert 0 < first.figures["rank"] <= first.figures["raters"] < example.prompt.layout.text_positions.numel()
            assert last.kept.numel() == math.ceil(0.3 * first.before)
            kept.append(first.kept.numel())
        assert math.ceil(0.3 ** (1 / 3) * 44) < kept[0] < kept[1]


class TestAsConfigured:
    """The table of methods: layers and ratios on 36 layers, and at the same relative depth elsewhere."""

    def test_layers(self) -> None:
        def layers(depth: int) -> dict[str, tuple[int, ...]]:
            names = ("fastv", "pyramiddrop", "sparsevlm", "dart")
            return {name: build_pruner(name, keep_ratio=0.2, depth=depth).layers for name in names}

        assert layers(36) == {"fastv": (2,), "pyramiddrop": (7, 15, 23), "sparsevlm": (3, 8, 18), "dart": (1,)}
        assert layers(12) == {"fastv": (1,), "pyramiddrop": (2, 5, 8), "sparsevlm": (1, 3, 6), "dart": (0,)}
        assert layers(28) == {"fastv": (2,), "pyramiddrop": (5, 12, 18), "sparsevlm": (2, 6, 14), "dart": (1,)}
        assert layers(2) == {"fastv": (0,), "pyramiddrop": (0,), "sparsevlm": (0,), "dart": (0,)}

    @pytest.mark.parametrize(("keep_ratio", "shares"), [(0.1, [0.5, 0.25, 0.1]), (0.4, [0.5, 0.4, 0.4]), (1, [1] * 3)])
    def test_pyramiddrop_leaves_no_stage_less_than_the_budget(self, keep_ratio: float, shares: list[float]) -> None:
        pruner = PyramidDropPruner.for_model(Setting(keep_ratio, 36))
        assert pruner.stages == dict(zip((7, 15, 23), shares, strict=True))
        assert math.prod(map(pruner.keep_ratio_at, pruner.layers)) == pytest.approx(keep_ratio)

    def test_stages_that_fall_together_keep_the_later_share(self) -> None:
        assert PyramidDropPruner.for_model(Setting(0.1, 2)).stages == {0: 0.1}

    @pytest.mark.parametrize("name", ["fastv", "pyramiddrop", "sparsevlm", "dart"])
    def test_what_is_missing_is_named(self, name: str) -> None:
        with pytest.raises(ValueError, match="number of decoder layers"):
            build_pruner(name, keep_ratio=0.2)
        with pytest.raises(ValueError, match=f"{name!r} needs a keep ratio"):
            build_pruner(name, depth=36)
        with pytest.raises(ValueError, match=r"keep ratio must be in \(0, 1\]"):
            build_pruner(name, keep_ratio=0, depth=36)

    def test_shares_must_not_grow(self) -> None:
        with pytest.raises(ValueError, match="must not grow from layer to layer"):
            FastVPruner({1: 0.2, 2: 0.5})
        with pytest.raises(ValueError, match="ascending"):
            FastVPruner({2: 0.5, 1: 0.5})
