# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Trust coefficients and fusion."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.pruning.trust import fuse, trust_coefficients

unit = st.floats(0, 1)
signals = st.lists(st.tuples(unit, unit), min_size=1, max_size=20)


def both(pairs):
    return torch.tensor([a for a, _ in pairs]), torch.tensor([b for _, b in pairs])


@given(st.lists(unit, min_size=1, max_size=40))
def test_coefficients_follow_the_formula_within_range(entropies):
    alphas = trust_coefficients(entropies)
    low = min(entropies)
    assert all(0 <= alpha <= 1 for alpha in alphas)
    if low < 1 - 1e-6:
        assert alphas == pytest.approx([(h - low) / (1 - low) for h in entropies])
        assert alphas[entropies.index(low)] == 0


def test_sharpest_layer_gets_zero_and_uniform_attention_one():
    assert trust_coefficients([0.8, 1.0, 0.9]) == pytest.approx([0, 1, 0.5])


def test_a_profile_may_be_a_tensor():
    assert trust_coefficients(torch.tensor([0.5, 1.0])) == [0.0, 1.0]


def test_attention_that_is_uniform_everywhere_is_never_trusted():
    assert trust_coefficients([1.0, 1.0, 1 - 1e-9]) == [1.0, 1.0, 1.0]


def test_a_flat_profile_is_trusted_everywhere():
    assert trust_coefficients([0.7, 0.7]) == [0.0, 0.0]


@pytest.mark.parametrize("entropies", [[], [0.5, 1.1], [-0.1], [0.5, float("nan")]])
def test_impossible_entropies_are_refused(entropies):
    with pytest.raises(ValueError, match="entropy of"):
        trust_coefficients(entropies)


@given(signals, unit)
def test_fusion_is_the_weighted_geometric_mean(pairs, alpha):
    expected = [max(d, 1e-6) ** alpha * max(s, 1e-6) ** (1 - alpha) for d, s in pairs]
    torch.testing.assert_close(fuse(*both(pairs), alpha), torch.tensor(expected), rtol=1e-4, atol=0)


@given(signals)
def test_fusion_limits_are_the_signals_themselves(pairs):
    dti, saliency = both(pairs)
    torch.testing.assert_close(fuse(dti, saliency, 1.0), dti.clamp_min(1e-6), rtol=1e-5, atol=0)
    torch.testing.assert_close(fuse(dti, saliency, 0.0), saliency.clamp_min(1e-6), rtol=1e-5, atol=0)


def test_a_zero_in_one_signal_does_not_hide_the_other():
    fused = fuse(torch.tensor([0.2, 0.9]), torch.zeros(2), 0.5)
    assert 0 < fused[0] < fused[1]


def test_the_floor_is_a_parameter():
    fused = fuse(torch.zeros(1), torch.ones(1), 0.5, eps=1e-4)
    torch.testing.assert_close(fused, torch.tensor([1e-2]))


def test_half_precision_signals_are_fused_in_float32():
    assert fuse(torch.ones(2).bfloat16(), torch.ones(2).bfloat16(), 0.3).dtype == torch.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(2), torch.ones(3), 0.5), "saliency has"),
        ((torch.ones(2), torch.ones(2), 1.5), "alpha must be in"),
        ((torch.ones(2), torch.ones(2), float("nan")), "alpha must be in"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        fuse(*arguments)


def test_a_floor_of_zero_is_refused():
    with pytest.raises(ValueError, match="eps must be positive"):
        fuse(torch.ones(1), torch.ones(1), 0.5, eps=0.0)
