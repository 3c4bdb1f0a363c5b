# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
A composed query's reference image is protected from every pruning method: its tokens stay to the last layer, and they
are not in the DTI pool, not in the attention columns and not in V. Methods join by their line in `PRUNERS`.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor

from radical_haystack.pruning import PRUNERS, PruningSchedule
from radical_haystack.vlm import ListwiseVLM, listwise

QUERY = "is blue"
SCHEDULE = PruningSchedule((0, 2, 4), (0.5, 0.0, 0.9), 0.1)
SIZES = ((64, 48), (16, 16), (32, 64), (48, 16), (40, 40))
REFERENCES = {"one": ((48, 64), 90), "other pixels": ((48, 64), 91), "fewer tokens": ((32, 16), 92)}
"""Size and seed of reference images."""

every_pruner = pytest.mark.parametrize("pruner", sorted(PRUNERS))


@pytest.fixture(scope="module")
def vlm(tiny: SimpleNamespace) -> ListwiseVLM:
    return ListwiseVLM(tiny.model(), tiny.processor(), schedule=SCHEDULE)


@pytest.fixture(scope="module")
def candidates(tiny: SimpleNamespace) -> list[Image.Image]:
    return [tiny.noise(*size, seed=number) for number, size in enumerate(SIZES)]


@pytest.fixture(scope="module")
def references(tiny: SimpleNamespace) -> dict[str, Image.Image]:
    return {name: tiny.noise(*size, seed=seed) for name, (size, seed) in REFERENCES.items()}


@dataclass
class Seen:
    """What one layer's attention module was given."""

    module: Any
    hidden: Tensor
    cos: Tensor
    sin: Tensor

    @property
    def angles(self) -> Tensor:
        """One row per token; no two tokens of a prompt have the same position."""
        return torch.cat([self.cos, self.sin], dim=-1)


@dataclass
class SeenPass:
    """One pass over a prompt: what entered the decoder, and what each of its layers was given."""

    embeds: Tensor
    layers: list[Seen] = field(default_factory=list)


@contextmanager
def watched(vlm: ListwiseVLM) -> Iterator[list[SeenPass]]:
    passes: list[SeenPass] = []
    decoding = False

    def enter(module: Any, args: Any) -> None:
        nonlocal decoding
        decoding = args[0].shape[1] == 1
        if not decoding:
            passes.append(SeenPass(args[0][0]))

    def attend(module: Any, args: Any, kwargs: Any) -> None:
        if not decoding:
            cos, sin = kwargs["position_embeddings"]
            passes[-1].layers.append(Seen(module, kwargs["hidden_states"][0], cos[0], sin[0]))

    layers = vlm.model.model.language_model.layers
    handles = [layers[0].register_forward_pre_hook(enter)]
    handles += [layer.self_attn.register_forward_pre_hook(attend, with_kwargs=True) for layer in layers]
    try:
        yield passes
    finally:
        for handle in handles:
            handle.remove()


def places(rows: Tensor, among: Tensor) -> list[int]:
    """Where each row stands among others; every row must be there exactly once."""
    equal = (rows[:, None] == among[None]).all(-1)
    assert equal.sum(1).tolist() == [1] * len(rows)
    return equal.int().argmax(1).tolist()


def assert_protected(vlm: ListwiseVLM, one_pass: SeenPass, reference: Image.Image) -> None:
    """The reference's own vision outputs enter the decoder, and its tokens go through all layers, in order."""
    where = places(vlm.encode([reference])[0].tokens, one_pass.embeds)
    assert where == list(range(where[0], where[0] + len(where)))
    angles = one_pass.layers[0].angles[where]
    assert len(one_pass.layers) == 6
    for seen in one_pass.layers:
        found = places(angles, seen.angles)
        assert found == list(range(found[0], found[0] + len(found)))


class TestTokensStay:
    @every_pruner
    @pytest.mark.parametrize("scoring", ["logits", "generate"])
    def test_at_every_layer(
        self,
        vlm: ListwiseVLM,
        candidates: list[Image.Image],
        references: dict[str, Image.Image],
        pruner: str,
        scoring: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(listwise, "MAX_NEW_TOKENS", 2)
        with watched(vlm) as passes:
            ranking = vlm.rank(QUERY, candidates, references["one"], pruner=pruner, keep_ratio=0.1, scoring=scoring)
        (one_pass,) = passes
        assert_protected(vlm, one_pass, references["one"])
        # It is protected where there is something to be protected from.
        assert pruner == "dense" or sum(ranking.kept_tokens) < 0.5 * sum(ranking.total_tokens)

    @every_pruner
    def test_in_every_window(
        self, vlm: ListwiseVLM, candidates: list[Image.Image], references: dict[str, Image.Image], pruner: str
    ) -> None:
        with watched(vlm) as passes:
            vlm.rank(QUERY, candidates, references["one"], pruner=pruner, keep_ratio=0.1, window_size=3, window_step=1)
        assert len(passes) == 3
        for one_pass in passes:
            assert_protected(vlm, one_pass, references["one"])

    @every_pruner
    def test_even_if_it_is_a_candidate_as_well(
        self, vlm: ListwiseVLM, candidates: list[Image.Image], references: dict[str, Image.Image], pruner: str
    ) -> None:
        # Its tokens then enter the decoder twice; the last of them are the reference's.
        tokens = vlm.encode([references["one"]])[0].tokens
        with watched(vlm) as passes:
            vlm.rank(QUERY, [references["one"], *candidates], references["one"], pruner=pruner, keep_ratio=0.1)
        equal = (tokens[:, None] == passes[0].embeds[None]).all(-1)
        where = [int(row.nonzero()[-1]) for row in equal]
        assert where == list(range(where[0], where[0] + len(tokens)))
        for seen in passes[0].layers:
            places(passes[0].layers[0].angles[where], seen.angles)

    @given(
        sizes=st.lists(st.tuples(st.integers(10, 70), st.integers(10, 70)), min_size=1, max_size=6),
        reference=st.tuples(st.integers(10, 70), st.integers(10, 70)),
        pruner=st.sampled_from(sorted(PRUNERS)),
        ratio=st.floats(0.02, 1.0),
        layers=st.sets(st.integers(0, 5), min_size=1, max_size=3),
    )
    @settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
    def test_whatever_the_sizes(
        self, tiny: SimpleNamespace, sizes: Any, reference: Any, pruner: str, ratio: float, layers: set[int]
    ) -> None:
        schedule = PruningSchedule(tuple(sorted(layers)), (0.5,) * len(layers), 0.5)
        vlm = ListwiseVLM(tiny.model(), tiny.processor(), schedule=schedule)
        images = [tiny.noise(*size, seed=number) for number, size in enumerate(sizes)]
        protected = tiny.noise(*reference, seed=99)
        with watched(vlm) as passes:
            vlm.rank(QUERY, images, protected, pruner=pruner, keep_ratio=ratio)
        assert_protected(vlm, passes[0], protected)


@dataclass
class Told:
    """What a method was told about one prompt, and what it made of that."""

    calls: list[tuple[str, Any, Any]] = field(default_factory=list)

    def spy(self, pruner: Any) -> Any:
        for name in ("prior", "reduce", "token_targets", "select"):
            if hasattr(pruner, name):
                object.__setattr__(pruner, name, self._noting(name, getattr(pruner, name)))
        return pruner

    def _noting(self, name: str, method: Any) -> Any:
        def noting(given: Any) -> Any:
            answer = method(given)
            self.calls.append((name, self._observed(given) if name == "select" else given, answer))
            return answer

        return noting

    @staticmethod
    def _observed(observation: Any) -> SimpleNamespace:
        return SimpleNamespace(
            layer=observation.layer,
            active=observation.active,
            candidates=observation.candidates,
            attention=observation.attention("text"),
            last=observation.attention("last"),
            keys=observation.keys(),
        )

    def before_the_decoder(self) -> list[tuple[str, Any, Any]]:
        return [call for call in self.calls if call[0] != "select"]

    def observations(self) -> list[SimpleNamespace]:
        return [given for name, given, _ in self.calls if name == "select"]


@contextmanager
def overheard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    told, build = Told(), listwise.build_pruner
    with monkeypatch.context() as patch:
        patch.setattr(listwise, "build_pruner", lambda *args, **kwargs: told.spy(build(*args, **kwargs)))
        yield told


def plain(value: Any) -> Any:
    """Tensors and what holds them as lists, for an exact comparison; functions are called."""
    if isinstance(value, Tensor):
        return value.tolist()
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return plain(value()) if callable(value) else value


class TestNotAmongTheCandidates:
    @every_pruner
    def test_the_reference_changes_nothing_that_is_known_of_the_candidates(
        self,
        vlm: ListwiseVLM,
        candidates: list[Image.Image],
        references: dict[str, Image.Image],
        pruner: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        # V, the DTI pool and what a method makes of them, with other pixels, fewer tokens, or no reference at all.
        found = []
        for reference in (None, *references.values()):
            with overheard(monkeypatch) as told:
                ranking = vlm.rank(QUERY, candidates, reference, pruner=pruner, keep_ratio=0.3)
            first = [(seen.layer, seen.active.tolist()) for seen in told.observations()[:1]]
            found.append((plain(told.before_the_decoder()), first, ranking.total_tokens))
        assert found[1:] == found[:1] * len(references)

    @every_pruner
    @torch.inference_mode()
    def test_attention_columns_are_candidate_tokens_only(
        self,
        tiny: SimpleNamespace,
        vlm: ListwiseVLM,
        candidates: list[Image.Image],
        references: dict[str, Image.Image],
        pruner: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        with watched(vlm) as passes, overheard(monkeypatch) as told:
            vlm.rank(QUERY, candidates, references["one"], pruner=pruner, keep_ratio=0.3)
        prompt = plain_prompt(tiny, vlm, candidates, references["one"])
        for observed in told.observations():
            seen = passes[0].layers[observed.layer]
            alive = {position: row for row, position in enumerate(places(seen.angles, prompt.angles))}
            rows = [alive[position] for position in prompt.text]
            columns = [alive[prompt.columns[token]] for token in observed.active.tolist()]
            expected = slow_attention(seen)[:, columns]
            assert observed.attention.shape == (len(rows), len(columns))
            assert (observed.attention - expected[rows]).abs().max() < 1e-5
            assert (observed.last - expected[-1:]).abs().max() < 1e-5
            assert observed.keys.shape[1] == len(columns)

    def test_dti_pool_by_hand(
        self,
        vlm: ListwiseVLM,
        candidates: list[Image.Image],
        references: dict[str, Image.Image],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        with overheard(monkeypatch) as told:
            vlm.rank(QUERY, candidates, references["one"], pruner="radical", keep_ratio=0.3)
        (prior,) = (answer for name, _, answer in told.calls if name == "prior")
        tokens = torch.cat([encoding.tokens for encoding in vlm.encode(candidates)])
        words = vlm.processor.tokenizer(QUERY, add_special_tokens=False)["input_ids"]
        query = vlm.model.get_input_embeddings().weight[words].mean(0)
        assert prior.tolist() == pytest.approx(slow_dti(tokens.tolist(), query.tolist()), abs=1e-5)


@dataclass
class PlainPrompt:
    """The prompt as the processor makes it, read without this package's layout."""

    ids: list[int]
    runs: list[list[int]]
    """Positions of each image's tokens, the reference's last."""
    text: list[int]
    """Positions behind the last candidate, without images and the marks around them."""
    angles: Tensor
    """What tells each position from all others, from a pass without pruning."""

    @property
    def columns(self) -> list[int]:
        """Positions of the candidates' tokens."""
        return [position for run in self.runs[:-1] for position in run]


def plain_prompt(
    tiny: SimpleNamespace, vlm: ListwiseVLM, candidates: list[Image.Image], reference: Image.Image
) -> PlainPrompt:
    processor = tiny.processor()
    text = tiny.prompts().render(QUERY, len(candidates), with_reference=True)
    inputs = processor(text=[text], images=[*candidates, reference], return_tensors="pt")
    with watched(vlm) as passes, torch.inference_mode():
        vlm.model(**inputs)
    ids = inputs["input_ids"][0].tolist()
    runs: list[list[int]] = []
    for position, token in enumerate(ids):
        if token == processor.image_token_id:
            if ids[position - 1] != token:
                runs.append([])
            runs[-1].append(position)
    no_text = (processor.image_token_id, processor.vision_start_token_id, processor.vision_end_token_id)
    behind = range(runs[-2][-1] + 1, len(ids))
    return PlainPrompt(ids, runs, [place for place in behind if ids[place] not in no_text], passes[0].layers[0].angles)


def slow_attention(seen: Seen) -> Tensor:
    """Attention weights of all rows over all columns, averaged over heads, as the layer's own weights give them."""
    module, length = seen.module, len(seen.hidden)
    queries = module.q_norm(module.q_proj(seen.hidden).view(length, -1, module.head_dim))
    keys = module.k_norm(module.k_proj(seen.hidden).view(length, -1, module.head_dim))
    causal = torch.ones(length, length).tril().bool()
    total = torch.zeros(length, length)
    for head in range(queries.shape[1]):
        query = turned(queries[:, head], seen)
        key = turned(keys[:, head * keys.shape[1] // queries.shape[1]], seen)
        scores = query @ key.T / math.sqrt(module.head_dim)
        total += scores.masked_fill(~causal, -math.inf).softmax(-1)
    return total / queries.shape[1]


def turned(rows: Tensor, seen: Seen) -> Tensor:
    """Rows rotated by their positions."""
    first, second = rows.chunk(2, dim=-1)
    return rows * seen.cos + torch.cat([-second, first], dim=-1) * seen.sin


def slow_dti(tokens: list[list[float]], query: list[float]) -> list[float]:
    """Equation 3 and the min-max after it, token by token."""

    def cosine(a: list[float], b: list[float]) -> float:
        lengths = math.sqrt(sum(x * x for x in a) * sum(x * x for x in b))
        return sum(x * y for x, y in zip(a, b, strict=True)) / lengths

    prototype = [sum(column) / len(tokens) for column in zip(*tokens, strict=True)]
    importance = [(1 - cosine(token, prototype)) * max(cosine(token, query), 0) for token in tokens]
    least, most = min(importance), max(importance)
    return [(value - least) / (most - least) for value in importance]
