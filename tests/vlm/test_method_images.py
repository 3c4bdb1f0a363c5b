# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""LowRes and DynRes, which resize images, against plain loops and the processor's own inputs."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor

from radical_haystack.pruning import DynResDTIPruner, DynResQRelPruner, LowResPruner
from radical_haystack.pruning.pruners import CandidateImages, CandidateTokens, build_pruner
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.images import smaller_grids
from radical_haystack.vlm.pruned import prune

QUERY = "a red shirt"
sizes = st.lists(st.integers(1, 300), min_size=1, max_size=12)
ratios = st.floats(0.02, 1)


def candidate_images(sizes: list[int], seed: int = 0) -> CandidateImages:
    generator = torch.Generator().manual_seed(seed)
    words = torch.randn(3, 8, generator=generator)
    tokens = CandidateTokens(
        tokens=torch.randn(sum(sizes), 8, generator=generator) + words.mean(0),
        candidate_index=torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes)),
        query_embedding=words.mean(0),
        query_tokens=words,
        sizes=tuple(sizes),
    )
    return CandidateImages(tuple(sizes), lambda: tokens)


def cosine(one: Tensor, other: Tensor) -> float:
    return float(one @ other) / math.sqrt(float(one @ one) * float(other @ other))


def slow_scores(tokens: CandidateTokens, signal: str) -> list[float]:
    """The mean of QRel or DTI over each candidate's tokens, one token after the other."""
    relevance = [max(cosine(token, tokens.query_embedding), 0) for token in tokens.tokens]
    values = relevance
    if signal == "dti" and len(tokens.sizes) > 1:
        prototype = tokens.tokens.mean(0)
        values = [(1 - cosine(token, prototype)) * score for token, score in zip(tokens.tokens, relevance, strict=True)]
    index = tokens.candidate_index.tolist()
    return [
        sum(value for value, owner in zip(values, index, strict=True) if owner == k) / size
        for k, size in enumerate(tokens.sizes)
    ]


class TestTargets:
    @given(sizes, ratios)
    def test_lowres(self, sizes: list[int], keep_ratio: float) -> None:
        def never() -> CandidateTokens:
            raise AssertionError("LowRes must not encode images at full size.")

        targets = LowResPruner(keep_ratio).token_targets(CandidateImages(tuple(sizes), never))
        assert targets == pytest.approx([keep_ratio * size for size in sizes])

    @pytest.mark.parametrize(("signal", "method"), [("qrel", DynResQRelPruner), ("dti", DynResDTIPruner)])
    @given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6), keep_ratio=ratios, seed=st.integers(0, 99))
    def test_dynres(self, signal: str, method: Any, sizes: list[int], keep_ratio: float, seed: int) -> None:
        images = candidate_images(sizes, seed)
        targets = method(keep_ratio).token_targets(images)
        assert sum(targets) == pytest.approx(keep_ratio * sum(sizes))
        ratio = [target / size for target, size in zip(targets, sizes, strict=True)]
        assert all(keep_ratio / 2 - 1e-9 <= value <= 1 + 1e-9 for value in ratio)

        # Linear in the candidates' scores: all lie on one line through the lowest and the highest.
        scores = slow_scores(images.encode(), signal)
        low, high = min(scores), max(scores)
        if high - low > 1e-3:
            slope = (max(ratio) - min(ratio)) / (high - low)
            expected = [min(ratio) + slope * (score - low) for score in scores]
            assert ratio == pytest.approx(expected, abs=2e-3)
            at_a_bound = min(ratio) <= keep_ratio / 2 + 1e-6 or max(ratio) >= 1 - 1e-6
            assert at_a_bound
        if len(sizes) == 1:
            assert ratio == pytest.approx([keep_ratio])

    def test_equal_candidates_are_treated_equally(self) -> None:
        equal = candidate_images([10, 20])
        tokens = equal.encode()
        alike = replace(tokens, tokens=tokens.tokens[:1].expand(30, -1))
        targets = DynResQRelPruner(0.3).token_targets(CandidateImages((10, 20), lambda: alike))
        assert targets == pytest.approx([3, 6])


class TestGrids:
    @given(
        st.lists(st.tuples(st.integers(1, 25), st.integers(1, 25)), min_size=1, max_size=20),
        st.lists(st.floats(0.05, 1), min_size=20, max_size=20),
    )
    def test_the_total_is_met(self, grids: list[tuple[int, int]], ratios: list[float]) -> None:
        wanted = [rows * columns * ratio for (rows, columns), ratio in zip(grids, ratios, strict=False)]
        chosen = smaller_grids(grids, wanted)
        for (rows, columns), (own_rows, own_columns), tokens in zip(chosen, grids, wanted, strict=True):
            assert 1 <= rows <= own_rows
            assert 1 <= columns <= own_columns
            if tokens == own_rows * own_columns:
                assert (rows, columns) == (own_rows, own_columns)
        # Images that must have a whole token may leave the total above, but never below by more than one image's step.
        got = sum(rows * columns for rows, columns in chosen)
        assert got >= sum(wanted) - max(5, 0.15 * max(wanted))
        if min(wanted) >= 6:
            assert got <= sum(wanted) + max(5, 0.15 * max(wanted))

    @pytest.mark.parametrize(
        ("grid", "tokens", "expected"),
        [
            ((10, 10), 20, (4, 5)),
            ((20, 10), 50, (10, 5)),
            ((7, 3), 21, (7, 3)),
            ((1, 50), 10, (1, 10)),
            ((9, 9), 0.1, (1, 1)),
        ],
    )
    def test_examples(self, grid: tuple[int, int], tokens: float, expected: tuple[int, int]) -> None:
        assert smaller_grids([grid], [tokens]) == [expected]

    def test_equal_small_images_meet_the_ratio_together(self) -> None:
        chosen = smaller_grids([(4, 4)] * 20, [3.2] * 20)
        assert sum(rows * columns for rows, columns in chosen) == pytest.approx(64, abs=1)


class TestFromOutside:
    @pytest.fixture
    def vlm(self, tiny: SimpleNamespace) -> ListwiseVLM:
        return ListwiseVLM(tiny.model(), tiny.processor())

    @pytest.fixture
    def images(self, tiny: SimpleNamespace) -> list[Image.Image]:
        shapes = ((64, 48), (64, 64), (32, 64), (60, 44), (50, 64), (64, 33))
        return [tiny.noise(*shape, seed=number) for number, shape in enumerate(shapes)]

    def by_hand(self, tiny: SimpleNamespace, vlm: ListwiseVLM, images: list[Image.Image], targets: list[float]) -> Any:
        """The images resized beforehand, then the processor and the untouched model."""
        own = [(round(image.height / 16), round(image.width / 16)) for image in images]
        grids = smaller_grids(own, targets)
        small = [
            image if grid == before else image.resize((16 * grid[1], 16 * grid[0]), Image.Resampling.BICUBIC)
            for image, grid, before in zip(images, grids, own, strict=True)
        ]
        text = tiny.prompts().render(QUERY, len(images), with_reference=False)
        processor = tiny.build_processor()
        processor.image_processor.size = {"shortest_edge": 1, "longest_edge": 64 * 64}
        inputs = processor(text=[text], images=small, return_tensors="pt")
        with torch.inference_mode():
            logits = tiny.model()(**inputs).logits[0, -1]
        ids = processor.tokenizer.convert_tokens_to_ids(list("ABCDEF"))
        return logits[ids].log_softmax(-1).tolist(), tuple(rows * columns for rows, columns in grids)

    @pytest.mark.parametrize("keep_ratio", [0.2, 0.5])
    def test_lowres(
        self, tiny: SimpleNamespace, vlm: ListwiseVLM, images: list[Image.Image], keep_ratio: float
    ) -> None:
        full = vlm.rank(QUERY, images, pruner="dense")
        ranking = vlm.rank(QUERY, images, pruner="lowres", keep_ratio=keep_ratio)
        targets = [keep_ratio * size for size in full.total_tokens]
        scores, kept = self.by_hand(tiny, vlm, images, targets)
        assert ranking.scores == pytest.approx(scores, abs=1e-4)
        assert ranking.scores != pytest.approx(full.scores, abs=1e-3)
        assert ranking.kept_tokens == kept
        assert ranking.total_tokens == full.total_tokens
        assert ranking.traces[0].total_per_candidate == kept

    @pytest.mark.parametrize(("signal", "name"), [("qrel", "dynres-qrel"), ("dti", "dynres-dti")])
    def test_dynres(
        self, tiny: SimpleNamespace, vlm: ListwiseVLM, images: list[Image.Image], signal: str, name: str
    ) -> None:
        encodings = vlm.encode(images)
        sizes = tuple(len(encoding.tokens) for encoding in encodings)
        ids = tiny.processor().tokenizer(f" {QUERY}", add_special_tokens=False, return_tensors="pt")["input_ids"]
        words = tiny.model().get_input_embeddings()(ids)[0].detach()
        told = CandidateTokens(
            tokens=torch.cat([encoding.tokens for encoding in encodings]),
            candidate_index=torch.repeat_interleave(torch.arange(6), torch.tensor(sizes)),
            query_embedding=words.mean(0) / words.mean(0).norm(),
            query_tokens=words,
            sizes=sizes,
        )
        targets = build_pruner(name, keep_ratio=0.4).token_targets(CandidateImages(sizes, lambda: told))
        assert max(targets[k] / sizes[k] for k in range(6)) > 1.3 * min(targets[k] / sizes[k] for k in range(6))
        scores, kept = self.by_hand(tiny, vlm, images, targets)
        ranking = vlm.rank(QUERY, images, pruner=name, keep_ratio=0.4)
        assert ranking.scores == pytest.approx(scores, abs=1e-4)
        assert ranking.kept_tokens == kept

    def test_lowres_never_encodes_at_full_size(
        self, tiny: SimpleNamespace, vlm: ListwiseVLM, images: list[Image.Image]
    ) -> None:
        patches = []
        hook = tiny.model().model.visual.register_forward_pre_hook(
            lambda module, args, kwargs: patches.append(int(kwargs["grid_thw"].prod(-1).sum())), with_kwargs=True
        )
        ranking = vlm.rank(QUERY, images, pruner="lowres", keep_ratio=0.3)
        hook.remove()
        assert sum(patches) == 4 * sum(ranking.kept_tokens)

    @pytest.mark.parametrize("name", ["lowres", "dynres-dti"])
    def test_the_reference_keeps_its_size_and_windows_work(
        self, tiny: SimpleNamespace, vlm: ListwiseVLM, images: list[Image.Image], name: str
    ) -> None:
        lengths = []
        hook = tiny.model().model.language_model.register_forward_pre_hook(
            lambda module, args, kwargs: lengths.append(kwargs["inputs_embeds"].shape[1]), with_kwargs=True
        )
        options = {"keep_ratio": 0.3, "window_size": 4, "window_step": 2}
        alone = vlm.rank(QUERY, images, pruner=name, **options)
        composed = vlm.rank(QUERY, images, tiny.noise(64, 64, seed=9), pruner=name, **options)
        hook.remove()
        assert sorted(composed.order) == list(range(6))
        assert len(composed.traces) == len(alone.traces) == 2
        text = len("Reference: \n") + 2
        # The first window holds the same candidates in both, resized in the same way.
        assert lengths[2] - lengths[0] == 16 + text
        assert composed.timings["encode"] + composed.timings["rank"] == pytest.approx(composed.timings["total"])

    def test_the_processor_s_least_size_does_not_bind(self, tiny: SimpleNamespace) -> None:
        processor = tiny.build_processor()
        processor.image_processor.size = {"shortest_edge": 48 * 48, "longest_edge": 64 * 64}
        vlm = ListwiseVLM(tiny.model(), processor)
        images = [tiny.noise(64, 64, seed=number) for number in range(3)]
        ranking = vlm.rank(QUERY, images, pruner="lowres", keep_ratio=0.25)
        assert (ranking.kept_tokens, ranking.total_tokens) == ((4, 4, 4), (16, 16, 16))

    def test_prune_sees_no_images(self, tiny: SimpleNamespace) -> None:
        with (
            pytest.raises(ValueError, match="LowResPruner resizes images, which prune.. does not see"),
            prune(tiny.model(), LowResPruner(0.5), tiny.example().prompt.layout),
        ):
            pass
