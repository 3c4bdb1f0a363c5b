# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""QI-EI and VisionZip, which act before the decoder, against slow references in explicit loops."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from radical_haystack.pruning import InputPruner, QIEIPruner, Reduction, VisionZipPruner
from radical_haystack.pruning.pruners import BEFORE_DECODER, split_count
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.families import ImageEncoding, family_of
from radical_haystack.vlm.pruned import prune

SIZES = ((64, 48), (16, 16), (32, 64), (48, 16), (40, 40), (64, 64))


def cosine(one: Tensor, other: Tensor) -> float:
    return float(one @ other) / math.sqrt(float(one @ one) * float(other @ other))


def best(scores: Sequence[float], count: int) -> list[int]:
    return sorted(sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:count])


def shares(keep_ratio: float, sizes: Sequence[int]) -> list[int]:
    """The largest remainder method, handing out one token after the other."""
    left = math.ceil(round(keep_ratio * sum(sizes), 9))
    wanted = [left * size / sum(sizes) for size in sizes]
    counts = [math.floor(round(share, 9)) for share in wanted]
    none_yet = {image for image, count in enumerate(counts) if count == 0}
    while sum(counts) < left:
        waiting = [image for image in range(len(sizes)) if counts[image] <= wanted[image] - 1e-9]
        first = [image for image in waiting if image in none_yet and counts[image] == 0] or waiting
        lucky = max(first, key=lambda image: round(wanted[image] % 1, 9))
        counts[lucky] += 1
        wanted[lucky] = 0
    return counts


def encoded(tiny: SimpleNamespace, example: Any, attention: bool = False) -> list[ImageEncoding]:
    model = tiny.model()
    with torch.inference_mode():
        return family_of(model).encode(
            model, example.inputs["pixel_values"], example.inputs["image_grid_thw"], attention=attention
        )


def quickly(tiny: SimpleNamespace, example: Any, pruner: InputPruner) -> tuple[list[int], Tensor]:
    received = torch.cat([image.attention for image in encoded(tiny, example, attention=True)[: len(SIZES)]])
    with (
        torch.inference_mode(),
        prune(tiny.model(), pruner, example.prompt.layout, encoder_attention=received) as trace,
    ):
        logits = tiny.model()(**example.inputs).logits[0]
    (stage,) = trace.stages
    assert (stage.layer, stage.before) == (BEFORE_DECODER, len(received))
    return stage.kept.tolist(), logits


def encoder_attention(tiny: SimpleNamespace, example: Any) -> list[list[float]]:
    """
    Attention received by each token of each image: one image at a time through the untouched encoder, whose last layer
    is then computed by hand, with the full matrix, patch by patch.
    """
    model, received = tiny.model(), []
    attention = model.model.visual.blocks[-1].attn
    start = 0
    for grid in example.inputs["image_grid_thw"]:
        patches, inside = int(grid.prod()), []
        hook = attention.register_forward_pre_hook(
            lambda module, args, kwargs, inside=inside: inside.append((args[0], kwargs["position_embeddings"])),
            with_kwargs=True,
        )
        with torch.inference_mode():
            model.get_image_features(example.inputs["pixel_values"][start : start + patches], grid[None])
        hook.remove()
        ((hidden, (cos, sin)),) = inside
        width = attention.dim
        with torch.inference_mode():
            queries, keys = attention.qkv(hidden)[:, :width], attention.qkv(hidden)[:, width : 2 * width]
        sums = [0.0] * patches
        for head in range(attention.num_heads):
            part = slice(head * attention.head_dim, (head + 1) * attention.head_dim)
            turned = []
            for vectors in (queries[:, part], keys[:, part]):
                half = attention.head_dim // 2
                swapped = torch.cat([-vectors[:, half:], vectors[:, :half]], dim=1)
                turned.append(vectors * cos + swapped * sin)
            for query in turned[0]:
                weights = torch.tensor([float(query @ key) for key in turned[1]]) / math.sqrt(attention.head_dim)
                for patch, weight in enumerate(weights.softmax(0).tolist()):
                    sums[patch] += weight / (patches * attention.num_heads)
        # Four patches in a row become one token.
        received.append([sum(sums[first : first + 4]) / 4 for first in range(0, patches, 4)])
        start += patches
    return received


@pytest.mark.parametrize("reference", [None, (32, 48)])
class TestEncoderAttention:
    def test_is_that_of_the_full_matrix(self, tiny: SimpleNamespace, reference: Any) -> None:
        example = tiny.example(sizes=SIZES, reference=reference)
        for image, expected in zip(
            encoded(tiny, example, attention=True), encoder_attention(tiny, example), strict=True
        ):
            assert image.attention.tolist() == pytest.approx(expected, abs=1e-6)
            assert 4 * sum(expected) == pytest.approx(1, abs=1e-5)

    def test_changes_nothing_else(self, tiny: SimpleNamespace, reference: Any) -> None:
        example = tiny.example(sizes=SIZES, reference=reference)
        modules = list(tiny.model().modules())
        hooks = sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in modules)
        for with_it, without in zip(encoded(tiny, example, attention=True), encoded(tiny, example), strict=True):
            assert without.attention is None
            assert torch.equal(with_it.tokens, without.tokens)
            assert with_it.nbytes == without.nbytes + 4 * len(without.tokens)
        assert hooks == sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in modules)

    def test_is_computed_in_parts(self, tiny: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, reference: Any) -> None:
        example = tiny.example(sizes=SIZES, reference=reference)
        whole = encoded(tiny, example, attention=True)
        monkeypatch.setattr("radical_haystack.vlm.attention._MAX_WEIGHTS", 300)
        for one, other in zip(whole, encoded(tiny, example, attention=True), strict=True):
            assert one.attention.tolist() == pytest.approx(other.attention.tolist(), abs=1e-6)


@pytest.mark.parametrize("keep_ratio", [0.05, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("reference", [None, (32, 48)])
class TestSameTokens:
    @torch.inference_mode()
    def test_qi_ei(self, tiny: SimpleNamespace, reference: Any, keep_ratio: float) -> None:
        example = tiny.example(sizes=SIZES, reference=reference)
        layout = example.prompt.layout
        words = tiny.model().get_input_embeddings()(example.prompt.input_ids[0, layout.query_positions])
        expected, dropped, start = [], [], 0
        images = encoded(tiny, example)[: len(SIZES)]
        for image, count in zip(images, shares(keep_ratio, [len(image.tokens) for image in images]), strict=True):
            scores = [max(cosine(token, word) for word in words) for token in image.tokens]
            stays = best(scores, count)
            expected += [start + place for place in stays]
            dropped += [start + place for place in range(len(scores)) if place not in stays]
            start += len(scores)
        kept, logits = quickly(tiny, example, QIEIPruner(keep_ratio))
        assert kept == expected
        masked, _ = tiny.slow_reference(example, {BEFORE_DECODER: layout.candidate_positions[dropped].tolist()})
        gone = set(layout.candidate_positions[dropped].tolist())
        rows = [position for position in range(layout.length) if position not in gone]
        assert (logits - masked[rows]).abs().max() <= 1e-4

    @torch.inference_mode()
    def test_visionzip(self, tiny: SimpleNamespace, reference: Any, keep_ratio: float) -> None:
        example = tiny.example(sizes=SIZES, reference=reference)
        layout, images = example.prompt.layout, encoded(tiny, example)
        received = encoder_attention(tiny, example)
        expected, start, groups = [], 0, []
        counts = shares(keep_ratio, [len(image.tokens) for image in images[: len(SIZES)]])
        for image, attention, count in zip(images, received, counts, strict=False):
            contextual = 0 if count < 2 else max(1, round(count * 10 / 64))
            dominant = best(attention, count - contextual)
            others = [place for place in range(len(attention)) if place not in dominant]
            targets = [others[number * len(others) // contextual] for number in range(contextual)]
            members: dict[int, list[int]] = {place: [place] for place in dominant + targets}
            for place in others:
                if targets and place not in targets:
                    nearest = max(targets, key=lambda target: cosine(image.tokens[place], image.tokens[target]))
                    members[nearest].append(place)
            expected += [start + place for place in sorted(members)]
            groups.append(members)
            start += len(attention)
        kept, logits = quickly(tiny, example, VisionZipPruner(keep_ratio))
        assert kept == expected
        # Images that keep a single token have none to merge into.
        assert any(len(group) > 1 for members in groups for group in members.values()) == (keep_ratio > 0.1)

        # The merged tokens and features, put where the contextual tokens were, go through the dense model.
        for image, members in zip(images, groups, strict=False):
            for rows in (image.tokens, *image.deepstack):
                before = rows.clone()
                for place, group in members.items():
                    rows[place] = sum(before[member] for member in group) / len(group)
        vision = family_of(tiny.model()).vision_inputs(images, example.prompt.token_types)
        inputs = {"input_ids": example.prompt.input_ids, **vision}
        dropped = [token for token in range(len(layout.candidate_positions)) if token not in expected]
        gone = layout.candidate_positions[dropped].tolist()
        masked, _ = tiny.slow_reference(SimpleNamespace(prompt=example.prompt, inputs=inputs), {BEFORE_DECODER: gone})
        rows = [position for position in range(layout.length) if position not in set(gone)]
        assert (logits - masked[rows]).abs().max() <= 1e-4


class TestFromOutside:
    def test_the_vision_cache_carries_the_attention(self, tiny: SimpleNamespace) -> None:
        vlm = ListwiseVLM(tiny.model(), tiny.processor())
        images = [tiny.noise(*size, seed=number) for number, size in enumerate(SIZES)]
        calls = []
        hook = tiny.model().model.visual.register_forward_pre_hook(
            lambda module, args, kwargs: calls.append(len(kwargs["grid_thw"])), with_kwargs=True
        )
        plain = vlm.rank("a red shirt", images, pruner="dense")
        first = vlm.rank("a red shirt", images, pruner="visionzip")
        assert calls == [6, 6]
        assert vlm.rank("a red shirt", images, pruner="visionzip").scores == first.scores != plain.scores
        assert vlm.rank("a red shirt", images, pruner="dense").scores == pytest.approx(plain.scores, abs=1e-5)
        hook.remove()
        assert calls == [6, 6]

    def test_missing_attention_is_named(self, tiny: SimpleNamespace) -> None:
        with (
            pytest.raises(ValueError, match=r"VisionZipPruner needs the attention of the vision encoder"),
            prune(tiny.model(), VisionZipPruner(0.5), tiny.example().prompt.layout),
        ):
            pass

    @pytest.mark.parametrize("spelling", [None, 2, 3, 4])
    @torch.inference_mode()
    def test_positions_in_any_form(self, tiny: SimpleNamespace, spelling: int | None) -> None:
        """The decoder may be given no positions, plain ones, those of M-RoPE, or both; gaps are not several prompts."""
        example = tiny.example(sizes=SIZES)
        layout, decoder = example.prompt.layout, tiny.model().model.language_model
        embeds = torch.randn(1, layout.length, 64, generator=torch.Generator().manual_seed(0))
        plain = torch.arange(layout.length)[None]
        forms = {None: None, 2: plain, 3: plain.expand(3, 1, -1), 4: plain.expand(4, 1, -1)}
        outputs = []
        for positions in (forms[3], forms[spelling]):
            with prune(tiny.model(), QIEIPruner(0.3), layout) as trace:
                outputs.append(decoder(inputs_embeds=embeds, position_ids=positions, use_cache=False).last_hidden_state)
        assert torch.equal(*outputs)
        assert outputs[0].shape[1] == layout.length - len(layout.candidate_index) + len(trace.kept)


class TestReduction:
    def test_an_average_of_every_group(self) -> None:
        rows = torch.tensor([[1.0, 2], [3, 4], [5, 6], [7, 8]])
        reduced = Reduction(torch.tensor([1, 2]), torch.tensor([0, 0, 1, -1])).apply(rows)
        assert reduced.tolist() == [[2, 3], [5, 6]]
        assert Reduction(torch.tensor([0, 3])).apply(rows).tolist() == [[1, 2], [7, 8]]

    def test_a_token_alone_stays_to_the_last_bit(self) -> None:
        rows = torch.randn(50, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
        kept = torch.arange(50)
        assert torch.equal(Reduction(kept, kept).apply(rows), rows)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=30), st.floats(0.01, 1))
def test_a_budget_is_split_in_proportion(sizes: list[int], keep_ratio: float) -> None:
    count = math.ceil(keep_ratio * sum(sizes))
    counts = split_count(count, sizes)
    assert sum(counts) == count
    for size, share in zip(sizes, counts, strict=True):
        assert abs(share - count * size / sum(sizes)) <= 1
        assert 0 <= share <= size
    # No image goes without while one that has its whole share gets another token.
    if 0 in counts:
        assert all(share <= max(1, count * size // sum(sizes)) for size, share in zip(sizes, counts, strict=True))
    # Equal images are treated equally, whatever comes between, but for one token.
    for size in set(sizes):
        alike = [share for other, share in zip(sizes, counts, strict=True) if other == size]
        assert max(alike) - min(alike) <= 1


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.sampled_from([0.05, 0.1, 0.2, 0.5, 0.9, 1.0]))
def test_the_slow_split_agrees(sizes: list[int], keep_ratio: float) -> None:
    assert split_count(math.ceil(round(keep_ratio * sum(sizes), 9)), sizes) == shares(keep_ratio, sizes)
