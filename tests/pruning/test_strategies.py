# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The layer strategies: what all of them promise, a slow reference for each, and examples drawn by hand."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from radical_haystack.pruning import STRATEGIES, PruningSchedule, alpha_maximin, choose_layers
from radical_haystack.pruning.strategies import (
    alpha_quantile,
    cumulative_information,
    deep_only,
    even,
    local_extrema,
    max_gradient,
    random_layers,
)

PUBLISHED_ALPHAS = {
    4: 0.63, 7: 0.84, 12: 0.83, 14: 0.82, 15: 0.67, 17: 0.50, 21: 0.50, 22: 0.43,
    24: 0.22, 25: 0.18, 26: 0.03, 27: 0.04, 29: 0.00, 30: 0.20, 33: 0.10, 34: 0.39,
}  # fmt: skip

# Whole hundredths, so that ties in the slow references are exact.
profiles = st.dictionaries(st.integers(0, 40), st.integers(0, 100), min_size=1, max_size=16)
names = st.sampled_from(sorted(STRATEGIES))
APART = ("alpha-maximin", "local-extrema", "max-gradient")


def alphas_of(hundredths):
    return {layer: value / 100 for layer, value in hundredths.items()}


@given(names, profiles, st.integers(1, 6), st.integers(1, 4), st.integers(0, 9))
def test_every_strategy_gives_k_of_the_layers_in_order(name, hundredths, k, gap, seed):
    alphas = alphas_of(hundredths)
    layers = choose_layers(name, alphas, k, gap, seed)
    assert layers == sorted(set(layers))
    assert set(layers) <= set(alphas)
    assert len(layers) == min(k, len(alphas))
    assert choose_layers(name, dict(reversed(alphas.items())), k, gap, seed) == layers


@given(names, profiles, st.integers(1, 6), st.floats(0.1, 3), st.floats(-1, 1))
def test_only_the_shape_of_the_profile_matters(name, hundredths, k, scale, offset):
    """Trust coefficients and entropies differ by scale and offset; where 1 - alpha is summed, that is not free."""
    assume(name != "cumulative-information")
    alphas = alphas_of(hundredths)
    moved = {layer: round(offset, 1) + round(scale, 1) * alpha for layer, alpha in alphas.items()}
    assert choose_layers(name, moved, k) == choose_layers(name, alphas, k)


@given(st.sampled_from(APART), st.lists(st.integers(0, 100), min_size=12, max_size=30), st.integers(1, 4))
def test_layers_are_apart(name, hundredths, k):
    # A pick takes at most three layers from the next ones, so that four always find room.
    layers = choose_layers(name, [value / 100 for value in hundredths], k, 2)
    assert all(later - earlier >= 2 for earlier, later in pairwise(layers))


@given(profiles, st.integers(1, 6))
def test_even_layers_are_the_middles_of_equal_parts(hundredths, k):
    layers = sorted(hundredths)
    count = min(k, len(layers))
    middles = [(Fraction(part, count) + Fraction(part + 1, count)) / 2 * len(layers) for part in range(count)]
    assert even(alphas_of(hundredths), k) == [layers[math.floor(middle)] for middle in middles]


@given(profiles, st.integers(1, 6))
def test_cumulative_information_counts_up_to_the_middle_of_each_part(hundredths, k):
    layers = sorted(hundredths)
    count, total = min(k, len(layers)), sum(100 - hundredths[layer] for layer in layers)
    assume(total > 0)
    expected, start = [], 0
    for part in range(count):
        middle, place, information = Fraction(2 * part + 1, 2 * count) * total, 0, 100 - hundredths[layers[0]]
        while information < middle:
            place += 1
            information += 100 - hundredths[layers[place]]
        place = min(max(place, start), len(layers) - count + part)
        expected.append(layers[place])
        start = place + 1
    assert cumulative_information(alphas_of(hundredths), k) == expected


def greedily_apart(ranks, k, gap):
    chosen = []
    while len(chosen) < min(k, len(ranks)):
        free = [layer for layer in sorted(ranks) if layer not in chosen]
        apart = [layer for layer in free if all(abs(layer - other) >= gap for other in chosen)]
        best = None
        for layer in apart or free:
            if best is None or ranks[layer] > ranks[best]:
                best = layer
        chosen.append(best)
    return sorted(chosen)


@given(profiles, st.integers(1, 6), st.integers(1, 4))
def test_max_gradient_takes_the_largest_steps(hundredths, k, gap):
    layers = sorted(hundredths)
    steps = {layers[0]: 0}
    for before, layer in pairwise(layers):
        steps[layer] = abs(hundredths[layer] - hundredths[before])
    assert max_gradient(alphas_of(hundredths), k, gap) == greedily_apart(steps, k, gap)


@given(profiles, st.integers(1, 6), st.integers(1, 4))
def test_local_extrema_come_first(hundredths, k, gap):
    layers = sorted(hundredths)
    ranks = dict.fromkeys(layers, (False, 0))
    for before, layer, after in zip(layers, layers[1:], layers[2:], strict=False):
        one, here, other = hundredths[before], hundredths[layer], hundredths[after]
        extreme = here > max(one, other) or here < min(one, other)
        ranks[layer] = (extreme, abs(2 * here - one - other))
    assert local_extrema(alphas_of(hundredths), k, gap) == greedily_apart(ranks, k, gap)


@given(profiles, st.integers(2, 6))
def test_quantiles_reach_from_the_sharpest_to_the_flattest_layer(hundredths, k):
    ranked = sorted(hundredths, key=lambda layer: (hundredths[layer], layer))
    layers = alpha_quantile(alphas_of(hundredths), k)
    assert ranked[0] in layers
    assert ranked[-1] in layers
    places = sorted(ranked.index(layer) for layer in layers)
    steps = [later - earlier for earlier, later in pairwise(places)]
    assert not steps or max(steps) - min(steps) <= 1


@given(profiles, st.integers(1, 6), st.integers(1, 4))
def test_deep_only_is_maximin_on_the_deeper_half(hundredths, k, gap):
    alphas = alphas_of(hundredths)
    layers = sorted(alphas)
    deep = layers[len(layers) // 2 :]
    if len(deep) < k:
        deep = layers[-k:]
    assert deep_only(alphas, k, gap) == alpha_maximin({layer: alphas[layer] for layer in deep}, k, gap)


def test_examples():
    ramp = [1.0, 0.9, 0.9, 0.2, 0.2, 0.6, 0.1, 0.1]
    assert even(ramp, 4) == [1, 3, 5, 7]
    assert even(ramp, 2) == [2, 6]
    assert max_gradient(ramp, 2) == [3, 6]
    assert max_gradient(ramp, 3) == [1, 3, 6]
    assert local_extrema(ramp, 1) == [5]
    assert cumulative_information(ramp, 2) == [3, 6]
    assert alpha_quantile(ramp, 1) == [6]
    assert alpha_quantile(ramp, 2) == [0, 6]


def test_uniform_attention_everywhere_has_no_information_to_split():
    assert cumulative_information([1.0] * 8, 4) == [1, 3, 5, 7]


def test_random_layers_depend_on_the_seed_alone():
    drawn = {tuple(random_layers([0.5] * 30, 4, seed)) for seed in range(20)}
    assert len(drawn) > 15
    assert random_layers([0.1] * 30, 4, 3) == random_layers(range(30), 4, 3)


def test_on_the_published_coefficients():
    assert choose_layers("alpha-maximin", PUBLISHED_ALPHAS) == [7, 22, 24, 29]
    assert all(layer > 22 for layer in choose_layers("deep-only", PUBLISHED_ALPHAS))


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_what_cannot_be_chosen_from_is_refused(name):
    for alphas, k, message in (([], 4, "at least one layer"), ([0.1], 0, "at least 1"), ([math.nan], 1, "layer 0")):
        with pytest.raises(ValueError, match=message):
            choose_layers(name, alphas, k)


def test_unknown_strategies_are_named():
    with pytest.raises(ValueError, match="Unknown layer strategy 'best': choose one of alpha-maximin, alpha-quantile"):
        choose_layers("best", [0.1])


@given(names, st.lists(st.floats(0, 1), min_size=8, max_size=20), st.integers(0, 3), st.integers(1, 5))
def test_a_schedule_by_any_strategy_stays_inside_the_candidate_layers(name, entropies, first, k):
    schedule = PruningSchedule.from_entropies(entropies, k=k, first_layer=first, strategy=name, seed=1)
    assert len(schedule.layers) == min(k, len(entropies) - 1 - first)
    assert first <= schedule.layers[0]
    assert schedule.layers[-1] < len(entropies) - 1
    assert all(0 <= alpha <= 1 for alpha in schedule.alphas)
