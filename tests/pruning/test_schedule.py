# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""alpha-Maximin and the schedule: the published ones, a slow reference, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.pruning import PruningSchedule, alpha_maximin, trust_coefficients
from radical_haystack.pruning.schedule import equal_keep

PUBLISHED_ALPHAS = {
    4: 0.63, 7: 0.84, 12: 0.83, 14: 0.82, 15: 0.67, 17: 0.50, 21: 0.50, 22: 0.43,
    24: 0.22, 25: 0.18, 26: 0.03, 27: 0.04, 29: 0.00, 30: 0.20, 33: 0.10, 34: 0.39,
}  # fmt: skip
"""The coefficients of Qwen3-VL-4B the paper gives."""

hundredths = st.integers(0, 100)
keep_ratios = st.floats(0.01, 1)


def slow_maximin(hundredths, k, gap):
    """The rule word by word, in whole hundredths so that ties are exact."""
    chosen = [min(sorted(hundredths), key=lambda layer: (hundredths[layer], layer))]
    while len(chosen) < k and len(chosen) < len(hundredths):
        free = [layer for layer in hundredths if layer not in chosen]
        if any(min(abs(layer - c) for c in chosen) >= gap for layer in free):
            free = [layer for layer in free if min(abs(layer - c) for c in chosen) >= gap]
        best = None
        for layer in sorted(free):
            distance = min(abs(hundredths[layer] - hundredths[c]) for c in chosen)
            if best is None or distance > best[0]:
                best = (distance, layer)
        chosen.append(best[1])
    return sorted(chosen)


@pytest.mark.parametrize(
    ("k", "gap", "layers"),
    [
        (4, 1, [7, 22, 24, 29]),
        (4, 2, [7, 22, 24, 29]),
        (4, 3, [4, 7, 22, 29]),
        (3, 2, [7, 22, 29]),
    ],
)
def test_published_schedules_follow_from_the_published_coefficients(k, gap, layers):
    assert alpha_maximin(PUBLISHED_ALPHAS, k, gap) == layers


@given(st.lists(hundredths, min_size=1, max_size=14), st.integers(1, 6), st.integers(0, 4))
def test_maximin_equals_a_slow_reference(values, k, gap):
    alphas = [value / 100 for value in values]
    assert alpha_maximin(alphas, k, gap) == slow_maximin(dict(enumerate(values)), k, gap)


@given(st.dictionaries(st.integers(0, 40), hundredths, min_size=1, max_size=12), st.integers(1, 5))
def test_a_mapping_may_list_its_layers_in_any_order(values, k):
    alphas = {layer: value / 100 for layer, value in values.items()}
    assert alpha_maximin(alphas, k) == slow_maximin(values, k, 2)


def test_ties_go_to_the_shallower_layer():
    assert alpha_maximin([0.5, 0.5, 0.5], k=1) == [0]
    # From 0.4 both 0.2 and 0.6 are 0.2 away, though not in binary fractions; 0.0 and 0.8 came first.
    assert alpha_maximin({0: 0.6, 10: 0.0, 20: 0.2, 30: 0.4, 40: 0.8}, k=4, gap=2) == [0, 10, 30, 40]


def test_the_gap_is_dropped_only_for_a_pick_that_has_no_layer_left():
    # Layer 1 is the most different one, but next to layer 0; then nothing is left at a distance.
    assert alpha_maximin([0.0, 1.0, 0.3], k=2, gap=2) == [0, 2]
    assert alpha_maximin([0.0, 1.0, 0.3], k=3, gap=2) == [0, 1, 2]


def test_a_model_with_few_layers_uses_them_all():
    assert alpha_maximin([0.1, 0.2], k=4) == [0, 1]


@pytest.mark.parametrize(
    ("alphas", "k", "message"),
    [([], 4, "at least one layer"), ([0.1], 0, "at least 1"), ([0.1, float("nan")], 4, "layer 1 must be a finite")],
)
def test_maximin_refuses_what_it_cannot_choose_from(alphas, k, message):
    with pytest.raises(ValueError, match=message):
        alpha_maximin(alphas, k)


@given(keep_ratios, st.integers(1, 8))
def test_equal_shares_multiply_to_the_keep_ratio(keep_ratio, k):
    shares = equal_keep(range(k), keep_ratio)
    product = 1.0
    for share in shares.values():
        product *= share
    assert product == pytest.approx(keep_ratio)
    assert len(set(shares.values())) == 1


def test_published_schedule_of_qwen3_vl_4b():
    schedule = PruningSchedule.published("Qwen/Qwen3-VL-4B-Instruct", keep_ratio=0.1)
    assert schedule.layers == (7, 22, 24, 29)
    assert schedule.alphas == tuple(PUBLISHED_ALPHAS[layer] for layer in schedule.layers)
    assert schedule.keep_ratio == 0.1
    assert schedule.per_layer_keep == pytest.approx(0.1**0.25)
    assert PruningSchedule.published("Qwen/Qwen3-VL-4B-Instruct").keep_ratio == 0.2


@pytest.mark.parametrize("name", ["/models/Qwen3-VL-4B-Instruct/", "qwen/qwen3-vl-4b-instruct"])
def test_published_schedule_is_found_by_the_last_part_of_the_name(name):
    assert PruningSchedule.published(name).layers == (7, 22, 24, 29)


@pytest.mark.parametrize("name", ["Qwen/Qwen3-VL-8B-Instruct", "OpenGVLab/InternVL2_5-8B"])
def test_layers_published_without_coefficients_are_no_schedule(name):
    with pytest.raises(LookupError, match=r"only the pruning layers \[.*not their trust coefficients"):
        PruningSchedule.published(name)


def test_unknown_models_have_no_published_schedule():
    with pytest.raises(LookupError, match="No pruning schedule is published for acme/vlm"):
        PruningSchedule.published("acme/vlm")


@given(
    st.dictionaries(st.integers(0, 60), st.floats(0, 1), min_size=1, max_size=6),
    keep_ratios,
    st.none() | st.text(),
    st.none() | st.lists(st.floats(0, 1)),
)
def test_json_round_trip(alphas, keep_ratio, model, entropies):
    layers = sorted(alphas)
    schedule = PruningSchedule(layers, [alphas[layer] for layer in layers], keep_ratio, model, entropies)
    assert PruningSchedule.from_json(schedule.to_json()) == schedule
    assert hash(PruningSchedule.from_json(schedule.to_json())) == hash(schedule)


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "{}", '{"layers": [1], "alphas": [0.5], "keep_ratio": 0.2, "colour": 1}']
)
def test_other_json_is_refused(text):
    with pytest.raises(ValueError, match="JSON object with the fields layers, alphas, keep_ratio"):
        PruningSchedule.from_json(text)


def test_json_values_are_validated():
    text = json.dumps({"layers": [3, 1], "alphas": [0.5, 0.5], "keep_ratio": 0.2})
    with pytest.raises(ValueError, match="ascending"):
        PruningSchedule.from_json(text)


@pytest.mark.parametrize(
    ("layers", "alphas", "keep_ratio", "message"),
    [
        ((), (), 0.2, "at least one layer"),
        ((3, 1), (0.1, 0.2), 0.2, "ascending"),
        ((1, 1), (0.1, 0.2), 0.2, "without repeats"),
        ((-1,), (0.1,), 0.2, "non-negative"),
        ((1.5,), (0.1,), 0.2, "integers"),
        ((True,), (0.1,), 0.2, "integers"),
        ((1, 2), (0.1,), 0.2, "2 layers, but 1 coefficients"),
        ((1, 2), (0.1, 1.2), 0.2, "layer 2 must be in"),
        ((1,), (float("nan"),), 0.2, "layer 1 must be in"),
        ((1,), (0.1,), 0.0, "keep ratio"),
        ((1,), (0.1,), 1.01, "keep ratio"),
        ((1,), (0.1,), float("nan"), "keep ratio"),
    ],
)
def test_invalid_schedules_are_refused(layers, alphas, keep_ratio, message):
    with pytest.raises(ValueError, match=message):
        PruningSchedule(layers, alphas, keep_ratio)


def test_another_keep_ratio_changes_nothing_else():
    schedule = PruningSchedule((1, 3), (0.5, 0.0), 0.2, "m", (0.9, 0.8, 0.9, 0.7))
    other = schedule.with_keep_ratio(0.5)
    assert (other.layers, other.alphas, other.model, other.entropies) == ((1, 3), (0.5, 0.0), "m", (0.9, 0.8, 0.9, 0.7))
    assert (other.keep_ratio, schedule.keep_ratio) == (0.5, 0.2)
    with pytest.raises(ValueError, match="keep ratio"):
        schedule.with_keep_ratio(2)


@given(st.lists(hundredths, min_size=2, max_size=36), st.integers(0, 5), st.integers(1, 5), st.integers(1, 3))
def test_schedule_from_a_profile_keeps_to_the_eligible_layers(values, first_layer, k, gap):
    entropies = [value / 100 for value in values]
    last = len(entropies) - 1
    if first_layer >= last:
        with pytest.raises(ValueError, match=f"from layer {first_layer} on"):
            PruningSchedule.from_entropies(entropies, first_layer=first_layer)
        return
    schedule = PruningSchedule.from_entropies(entropies, keep_ratio=0.3, k=k, gap=gap, first_layer=first_layer)
    alphas = trust_coefficients(entropies)
    assert first_layer <= schedule.layers[0]
    assert schedule.layers[-1] < last
    assert len(schedule.layers) == min(k, last - first_layer)
    assert schedule.alphas == tuple(alphas[layer] for layer in schedule.layers)
    assert schedule.entropies == tuple(entropies)
    eligible = {layer: alphas[layer] for layer in range(first_layer, last)}
    assert list(schedule.layers) == alpha_maximin(eligible, k, gap)


def test_schedule_of_a_measured_profile():
    entropies = [0.991, 0.976, 0.968, 0.951, 0.991, 0.940, 0.994, 0.913, 0.979, 0.962, 0.976, 0.979]
    alphas = trust_coefficients(entropies)
    assert alpha_maximin({layer: alphas[layer] for layer in range(4, 12)}) == [4, 7, 9, 11]
    schedule = PruningSchedule.from_entropies(entropies, first_layer=4, model="prototype")
    assert schedule.layers == (4, 5, 7, 9)
    assert schedule.alphas == pytest.approx((0.897, 0.310, 0.0, 0.563), abs=1e-3)
    assert (schedule.keep_ratio, schedule.model) == (0.2, "prototype")
