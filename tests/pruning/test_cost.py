# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The analytic cost against the paper's table and against FLOPs counted on a decoder that really runs."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from radical_haystack.pruning import DecoderShape, PruningSchedule, prefill_cost
from radical_haystack.pruning.pruners import keep_count

QWEN3_VL_4B = {"layers": 36, "hidden": 2560, "heads": 32, "kv_heads": 8, "head_dim": 128, "intermediate": 9728}
QWEN3_VL_4B_VOCAB = 151936
DENSE_TFLOPS = 18.68
VISUAL_SHARE = 0.924
METHODS = {
    "radical": PruningSchedule.published("Qwen/Qwen3-VL-4B-Instruct", keep_ratio=0.2),
    "pyramiddrop": {7: 0.5, 15: 0.5, 23: 0.8},
    "fastv": {2: 0.2},
    "dart": {1: 0.2},
}
FLOPS_SAVED = {"radical": 43.8, "pyramiddrop": 53.3, "fastv": 70.8, "dart": 73.4}
KV_SAVED = {"radical": 39.0, "pyramiddrop": 50.1, "fastv": 67.4, "dart": 70.0}
"""The analytic table of arXiv 2609.00667 for Flickr30k and Qwen3-VL-4B at R = 0.2."""

SMALL = DecoderShape(layers=4, hidden=24, heads=4, kv_heads=2, head_dim=8, intermediate=40, vocab=50)


def prompt_length(shape, **options):
    """The sequence length at which the dense pass costs what the paper says."""
    low, high = 1, 20_000
    while low < high:
        middle = (low + high) // 2
        if prefill_cost(shape, middle, 0, **options).flops < DENSE_TFLOPS * 1e12:
            low = middle + 1
        else:
            high = middle
    return low


def published_setting(vocab, **options):
    """Decoder shape, visual tokens and text tokens of the paper's table."""
    shape = DecoderShape(**QWEN3_VL_4B, vocab=vocab)
    length = prompt_length(shape, **options)
    visual = round(VISUAL_SHARE * length)
    return shape, visual, length - visual


@pytest.mark.parametrize("method", METHODS)
def test_published_savings_with_logits_at_every_position(method):
    shape, visual, text = published_setting(QWEN3_VL_4B_VOCAB, logits_to_keep=0)
    dense = prefill_cost(shape, visual, text, logits_to_keep=0)
    pruned = prefill_cost(shape, visual, text, METHODS[method], logits_to_keep=0)
    assert pruned.flops_saved_pct(dense) == pytest.approx(FLOPS_SAVED[method], abs=2.5)
    assert pruned.kv_saved_pct(dense) == pytest.approx(KV_SAVED[method], abs=2.5)


@pytest.mark.parametrize("method", METHODS)
def test_published_savings_of_the_decoder_layers_alone(method):
    shape, visual, text = published_setting(vocab=0)
    dense = prefill_cost(shape, visual, text)
    pruned = prefill_cost(shape, visual, text, METHODS[method], pruned_from="input")
    assert pruned.flops_saved_pct(dense) == pytest.approx(FLOPS_SAVED[method], abs=2.5)
    assert pruned.kv_saved_pct(dense) == pytest.approx(KV_SAVED[method], abs=2.5)


class Layer(nn.Module):
    """A decoder layer with grouped-query attention and a gated MLP, without norms and positions."""

    def __init__(self, shape):
        super().__init__()
        width, kv_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.head_dim = shape.head_dim
        self.q, self.k, self.v, self.o = (
            nn.Linear(*sizes, bias=False)
            for sizes in (
                (shape.hidden, width),
                (shape.hidden, kv_width),
                (shape.hidden, kv_width),
                (width, shape.hidden),
            )
        )
        self.gate, self.up = (nn.Linear(shape.hidden, shape.intermediate, bias=False) for _ in range(2))
        self.down = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for part in (self.q, self.k, self.v))
        groups = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.gate(x)) * self.up(x)), q, k


@pytest.mark.parametrize("keep", [{}, {0: 0.5}, {1: 0.7, 2: 0.3}, {3: 0.1}])
@pytest.mark.parametrize("logits_to_keep", [0, 1, 5])
def test_flops_equal_those_of_a_decoder_that_runs(keep, logits_to_keep):
    visual, text, rows = 30, 7, 3
    layers = [Layer(SMALL) for _ in range(SMALL.layers)]
    head = nn.Linear(SMALL.hidden, SMALL.vocab, bias=False)
    active, lengths = visual, []
    # The counter does not know the CPU's fused attention kernel; the plain one is two matrix products.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        x = torch.randn(1, visual + text, SMALL.hidden)
        for index, layer in enumerate(layers):
            x, queries, keys = layer(x)
            if index in keep:
                queries[:, :, -rows:] @ keys.transpose(2, 3)
                active = keep_count(keep[index], active)
                x = torch.cat([x[:, :active], x[:, -text:]], dim=1)
            lengths.append(x.shape[1])
        head(x[:, -logits_to_keep:])
    cost = prefill_cost(SMALL, visual, text, keep, scoring_rows=rows, logits_to_keep=logits_to_keep, bytes_per_value=4)
    assert cost.flops == counter.get_total_flops()
    assert cost.kv_tokens_per_layer == tuple(lengths)
    assert cost.kv_bytes == sum(lengths) * 2 * SMALL.kv_heads * SMALL.head_dim * 4


def test_parts_of_a_cost_by_hand():
    shape = DecoderShape(layers=2, hidden=3, heads=2, kv_heads=1, head_dim=5, intermediate=7, vocab=11)
    cost = prefill_cost(shape, visual=4, text=2, schedule={0: 0.5}, scoring_rows=1)
    weights = 3 * 10 + 3 * 5 + 3 * 5 + 10 * 3 + 3 * 3 * 7
    assert cost.tokens_per_layer == (6, 4)
    assert cost.kv_tokens_per_layer == (4, 4)
    assert cost.linear_flops == 2 * weights * (6 + 4)
    assert cost.attention_flops == 2 * 2 * 10 * (36 + 16)
    assert cost.lm_head_flops == 2 * 3 * 11
    assert cost.scoring_flops == 2 * 10 * 1 * 6
    assert cost.kv_bytes == 2 * 5 * 2 * (4 + 4)


def test_scoring_defaults_to_all_text_rows():
    shape = DecoderShape(**QWEN3_VL_4B)
    schedule = METHODS["radical"]
    assert prefill_cost(shape, 2000, 160, schedule) == prefill_cost(shape, 2000, 160, schedule, scoring_rows=160)
    scoring = prefill_cost(shape, 2000, 160, schedule)
    assert 0 < scoring.scoring_flops < 0.001 * scoring.flops


@given(
    st.integers(0, 300),
    st.integers(1, 50),
    st.dictionaries(st.integers(0, 3), st.floats(0.01, 1), max_size=4),
    st.sampled_from(["output", "input"]),
)
def test_pruning_never_costs_more_than_its_scoring(visual, text, keep, pruned_from):
    dense = prefill_cost(SMALL, visual, text)
    pruned = prefill_cost(SMALL, visual, text, keep, pruned_from=pruned_from)
    assert pruned.flops - pruned.scoring_flops <= dense.flops
    assert pruned.kv_bytes <= dense.kv_bytes
    assert pruned.kv_saved_pct(dense) >= 0
    assert min(pruned.tokens_per_layer) >= text


def test_a_keep_ratio_of_one_saves_nothing_and_scoring_is_extra():
    schedule = PruningSchedule((1,), (0.5,), 1.0)
    dense, kept = prefill_cost(SMALL, 20, 5), prefill_cost(SMALL, 20, 5, schedule)
    assert kept.flops == dense.flops + kept.scoring_flops
    assert kept.kv_saved_pct(dense) == 0
    assert kept.flops_saved_pct(dense) < 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 3), "cannot have -1 visual"),
        ((0, 0), "cannot have 0 visual and 0 text"),
        ((3, 3, {4: 0.5}), "Pruning layer 4 is not one of the decoder's layers 0 to 3"),
        ((3, 3, {-1: 0.5}), "Pruning layer -1"),
        ((3, 3, {1: 0.0}), "keep ratio must be in"),
    ],
)
def test_impossible_prompts_and_schedules_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        prefill_cost(SMALL, *arguments)


def test_impossible_decoders_are_refused():
    with pytest.raises(ValueError, match="kv_heads must be positive, not 0"):
        DecoderShape(layers=4, hidden=24, heads=4, kv_heads=0, head_dim=8, intermediate=40)
