# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The signals against slow loops over plain floats, and the properties the paper promises."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from radical_haystack.pruning.signals import (
    attention_info,
    cross_candidate_uniqueness,
    discriminative_token_importance,
    normalized_entropy,
    query_relevance,
    saliency,
    signed_attention_info,
    text_to_visual_distribution,
)

seeds = st.integers(0, 2**31)
counts = st.lists(st.integers(1, 6), min_size=2, max_size=5)


def candidates(seed, sizes, d=8):
    """Random tokens of ragged candidates with a common direction, as vision encoders give them, and a query."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randn(sum(sizes), d, generator=generator) + torch.randn(d, generator=generator)
    index = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return tokens, index, torch.randn(d, generator=generator)


def distribution(seed, size, sharpness=1.0):
    logits = sharpness * torch.randn(size, generator=torch.Generator().manual_seed(seed))
    return logits.double().softmax(0).float()


def slow_cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def slow_min_max(values):
    return [(value - min(values)) / (max(values) - min(values)) for value in values]


class LargestTensor(TorchDispatchMode):
    """Records the size of the largest tensor any operation returns."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for item in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(item, torch.Tensor):
                self.numel = max(self.numel, item.numel())
        return result


@given(seeds, counts)
def test_prototype_uniqueness_equals_a_slow_loop(seed, sizes):
    tokens, _, _ = candidates(seed, sizes)
    rows = tokens.tolist()
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    expected = torch.tensor([1 - slow_cosine(row, mean) for row in rows])
    torch.testing.assert_close(cross_candidate_uniqueness(tokens), expected, atol=1e-5, rtol=0)


@given(seeds, counts, st.integers(1, 9))
def test_exact_uniqueness_equals_a_slow_loop(seed, sizes, chunk):
    tokens, index, _ = candidates(seed, sizes)
    rows, owners = tokens.tolist(), index.tolist()
    expected = [
        1 - max(slow_cosine(row, other) for other, o in zip(rows, owners, strict=True) if o != owner)
        for row, owner in zip(rows, owners, strict=True)
    ]
    result = cross_candidate_uniqueness(tokens, index, method="exact", chunk=chunk)
    torch.testing.assert_close(result, torch.tensor(expected), atol=1e-5, rtol=0)


def test_exact_uniqueness_ignores_twins_within_the_same_candidate():
    tokens = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    result = cross_candidate_uniqueness(tokens, torch.tensor([0, 0, 1]), method="exact")
    torch.testing.assert_close(result, torch.ones(3))


def test_exact_uniqueness_holds_no_more_than_a_chunk_of_the_square():
    tokens, index, _ = candidates(0, [100] * 6, d=4)
    with LargestTensor() as largest:
        cross_candidate_uniqueness(tokens, index, method="exact", chunk=16)
    assert largest.numel == 600 * 16


def test_exact_uniqueness_of_a_single_candidate_is_one_everywhere():
    tokens, _, _ = candidates(0, [5])
    index = torch.zeros(5, dtype=torch.long)
    assert cross_candidate_uniqueness(tokens, index, method="exact").tolist() == [1.0] * 5


@given(seeds, counts)
def test_query_relevance_equals_a_slow_loop(seed, sizes):
    tokens, _, query = candidates(seed, sizes)
    expected = [max(slow_cosine(row, query.tolist()), 0.0) for row in tokens.tolist()]
    torch.testing.assert_close(query_relevance(tokens, query), torch.tensor(expected), atol=1e-5, rtol=0)


@given(seeds, counts, st.sampled_from(["prototype", "exact"]))
def test_dti_is_the_min_maxed_product(seed, sizes, uniqueness):
    tokens, index, query = candidates(seed, sizes)
    unique = cross_candidate_uniqueness(tokens, index, method=uniqueness).tolist()
    product = [u * q for u, q in zip(unique, query_relevance(tokens, query).tolist(), strict=True)]
    dti = discriminative_token_importance(tokens, query, uniqueness=uniqueness, candidate_index=index)
    expected = slow_min_max(product) if max(product) - min(product) > 1e-6 else [1.0] * len(product)
    torch.testing.assert_close(dti, torch.tensor(expected), atol=1e-5, rtol=0)


@given(seeds, counts, st.sampled_from(["prototype", "exact", None]), st.randoms(use_true_random=False))
def test_permuted_candidates_give_permuted_dti(seed, sizes, uniqueness, random):
    tokens, index, query = candidates(seed, sizes)
    order = list(range(len(sizes)))
    random.shuffle(order)
    moved = torch.cat([(index == k).nonzero().flatten() for k in order])
    renamed = torch.tensor([order.index(k) for k in index[moved].tolist()])
    dti = discriminative_token_importance(tokens, query, uniqueness=uniqueness, candidate_index=index)
    permuted = discriminative_token_importance(tokens[moved], query, uniqueness=uniqueness, candidate_index=renamed)
    torch.testing.assert_close(permuted, dti[moved], atol=1e-5, rtol=0)


def test_dti_does_not_depend_on_the_length_of_the_embeddings():
    tokens, _, query = candidates(3, [4, 4])
    scaled = discriminative_token_importance(tokens * 1000, query * 1e-3)
    torch.testing.assert_close(scaled, discriminative_token_importance(tokens, query))


@pytest.mark.parametrize("uniqueness", ["prototype", "exact"])
def test_a_single_candidate_falls_back_to_relevance(uniqueness):
    tokens, index, query = candidates(1, [7])
    dti = discriminative_token_importance(tokens, query, uniqueness=uniqueness, candidate_index=index)
    torch.testing.assert_close(dti, discriminative_token_importance(tokens, query, uniqueness=None))
    assert dti.max() == 1 > dti.min()


@pytest.mark.parametrize("radius", [1.0, 0.01])
def test_constant_uniqueness_falls_back_to_relevance(radius):
    # Four tokens on a cone around the prototype: equally unique, not equally relevant.
    ring = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    tokens = torch.cat([radius * ring, torch.ones(4, 1)], dim=1)
    query = torch.tensor([1.0, 0.5, 0.1])
    dti = discriminative_token_importance(tokens, query)
    torch.testing.assert_close(dti, discriminative_token_importance(tokens, query, uniqueness=None))
    assert dti.max() == 1 > dti.min()


@pytest.mark.parametrize("uniqueness", ["prototype", "exact", None])
@pytest.mark.parametrize("size", [1, 2, 37, 1000])
def test_equal_tokens_give_no_preference(uniqueness, size):
    tokens = torch.randn(1, 64, generator=torch.Generator().manual_seed(size)).expand(size, -1)
    query = torch.randn(64, generator=torch.Generator().manual_seed(1))
    index = torch.arange(size)
    dti = discriminative_token_importance(tokens, query, uniqueness=uniqueness, candidate_index=index)
    assert dti.tolist() == [1.0] * size


@pytest.mark.parametrize("tokens", [torch.zeros(4, 3), torch.tensor([[1.0, 0, 0], [-1.0, 0, 0]])])
@pytest.mark.parametrize("query", [torch.zeros(3), torch.tensor([0.0, 1.0, 0.0])])
@pytest.mark.parametrize("uniqueness", ["prototype", "exact", None])
def test_dti_is_never_nan(tokens, query, uniqueness):
    index = torch.arange(len(tokens)) % 2
    dti = discriminative_token_importance(tokens, query, uniqueness=uniqueness, candidate_index=index)
    assert dti.isfinite().all()


def test_dti_without_tokens_is_empty():
    assert discriminative_token_importance(torch.zeros(0, 3), torch.ones(3)).shape == (0,)


def test_half_precision_tokens_are_scored_in_float32():
    tokens, _, query = candidates(5, [30, 30], d=64)
    half = tokens.bfloat16()
    dti = discriminative_token_importance(half, query.bfloat16())
    assert dti.dtype == torch.float32
    torch.testing.assert_close(dti, discriminative_token_importance(half.float(), query.bfloat16().float()))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, i, q: cross_candidate_uniqueness(t, i, method="fast"), "Unknown uniqueness method 'fast'"),
        (lambda t, i, q: cross_candidate_uniqueness(t, method="exact"), "needs candidate_index"),
        (lambda t, i, q: cross_candidate_uniqueness(t, i, method="exact", chunk=0), "chunk must be at least 1"),
        (lambda t, i, q: cross_candidate_uniqueness(t[0]), r"shape \(V, d\)"),
        (lambda t, i, q: cross_candidate_uniqueness(t, i[1:]), "each of the 4 tokens"),
        (lambda t, i, q: query_relevance(t, q[1:]), "8 dimensions"),
        (lambda t, i, q: text_to_visual_distribution(t[0]), r"shape \(rows, T\)"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(*candidates(0, [2, 2]))


@given(seeds, st.integers(1, 5), st.integers(1, 12))
def test_p_is_the_mean_of_renormalised_rows(seed, rows, size):
    attention = torch.rand(rows, size, generator=torch.Generator().manual_seed(seed)) * 1e-3
    p = text_to_visual_distribution(attention)
    expected = [sum(row[column] / sum(row) for row in attention.tolist()) / rows for column in range(size)]
    torch.testing.assert_close(p, torch.tensor(expected), atol=1e-6, rtol=1e-4)
    assert p.sum().item() == pytest.approx(1, abs=1e-5)


def test_rows_without_mass_are_left_out_of_p():
    attention = torch.tensor([[0.1, 0.3], [0.0, 0.0], [0.2, 0.2]])
    torch.testing.assert_close(text_to_visual_distribution(attention), torch.tensor([0.375, 0.625]))


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_p_is_uniform_if_no_row_looks_at_the_candidates(rows):
    assert text_to_visual_distribution(torch.zeros(rows, 4)).tolist() == [0.25] * 4


def test_p_survives_vanishing_attention():
    p = text_to_visual_distribution(torch.tensor([[3e-36, 1e-36], [0.5, 0.5]]))
    torch.testing.assert_close(p, torch.tensor([0.625, 0.375]))


@given(seeds, st.integers(2, 50), st.floats(0, 20))
def test_entropy_equals_a_slow_loop_and_stays_in_range(seed, size, sharpness):
    p = distribution(seed, size, sharpness)
    entropy = normalized_entropy(p)
    assert entropy.item() == pytest.approx(-sum(x * math.log(x) for x in p.tolist() if x) / math.log(size), abs=1e-5)
    assert 0 <= entropy <= 1


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_entropy_of_uniform_attention_is_one(size):
    assert normalized_entropy(torch.full((size,), 1 / size)).item() == pytest.approx(1, abs=1e-6)


def test_entropy_of_one_attended_token_is_zero():
    assert normalized_entropy(torch.tensor([0.0, 1.0, 0.0])) == 0


@given(seeds, st.integers(1, 200), st.floats(0, 10))
def test_signed_terms_sum_to_the_divergence_from_uniform(seed, size, sharpness):
    p = distribution(seed, size, sharpness)
    divergence = torch.nn.functional.kl_div(torch.full((size,), -math.log(size)), p, reduction="sum").item()
    terms = signed_attention_info(p).sum().item()
    assert terms == pytest.approx(divergence, abs=1e-4)
    assert terms == pytest.approx((1 - normalized_entropy(p).item()) * math.log(size), abs=1e-4)


@given(seeds, st.integers(1, 50), st.floats(0, 10))
def test_attention_info_is_positive_only_above_the_uniform_baseline(seed, size, sharpness):
    p = distribution(seed, size, sharpness)
    expected = [max(x * math.log(size * x), 0.0) if x else 0.0 for x in p.tolist()]
    torch.testing.assert_close(attention_info(p), torch.tensor(expected), atol=1e-6, rtol=1e-4)


@given(seeds, st.integers(2, 50), st.floats(0.1, 10))
def test_saliency_is_min_maxed_information(seed, size, sharpness):
    p = distribution(seed, size, sharpness)
    expected = torch.tensor(slow_min_max(attention_info(p).tolist()))
    torch.testing.assert_close(saliency(p), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000, 4999])
def test_saliency_of_uniform_attention_is_uniform(size):
    rows = torch.full((3, size), 0.1 / size)
    torch.testing.assert_close(saliency(text_to_visual_distribution(rows)), torch.full((size,), 1 / size))


def test_saliency_sees_a_faint_preference_among_many_tokens():
    p = torch.full((5000,), 1 / 5000)
    p[17] *= 1.001
    assert saliency(p / p.sum()).argmax() == 17
    assert saliency(p / p.sum())[17] == 1
