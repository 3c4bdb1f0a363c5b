# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Reliability against slow references, noise and perfect signals; profiles compared across data."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import stats

from radical_haystack.evaluation import load_catalogue
from radical_haystack.evaluation.diagnostics import (
    BASELINES,
    CandidateSignals,
    calibration_sets,
    measure_profile,
    measure_reliability,
    measure_signals,
    permutation_z,
    profile_correlations,
    reliability_of,
)
from radical_haystack.vlm import EntropyProfile, ListwiseVLM
from radical_haystack.vlm.prompt import PromptBuilder
from tests.vlm.conftest import RAGGED, example, noise, shared_model, shared_processor, slow_reference

QUERY = "a red shirt"


@pytest.fixture(scope="module")
def vlm() -> ListwiseVLM:
    return ListwiseVLM(shared_model(), shared_processor())


def pictures(sizes: Sequence[tuple[int, int]] = RAGGED) -> list[Image.Image]:
    return [noise(*size, seed=number) for number, size in enumerate(sizes)]


def drawn_signals(seed: int, layers: int = 3, candidates: int = 8) -> CandidateSignals:
    rng = np.random.default_rng(seed)
    return CandidateSignals(
        contributions=tuple(rng.normal(size=candidates)),
        attention=tuple(map(tuple, rng.dirichlet(np.ones(candidates), size=layers))),
        baselines={name: tuple(rng.random(candidates)) for name in BASELINES},
        entropies=tuple(rng.random(layers)),
    )


# The statistic


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6), min_size=1, max_size=3),
    st.lists(st.integers(0, 4), min_size=6, max_size=6),
    st.integers(0, 99),
)
def test_the_slow_statistic(rows: list[list[int]], contributions: list[int], seed: int) -> None:
    """With ties of all kinds, one correlation at a time."""
    rho, z = permutation_z(np.array(rows, float), np.array(contributions, float), 20, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.repeat(np.array([contributions], float), 20, axis=0), axis=1)
    for row, found_rho, found_z in zip(rows, rho, z, strict=True):
        if len(set(row)) == 1 or len(set(contributions)) == 1:
            assert found_rho == found_z == 0
            continue
        expected = stats.spearmanr(row, contributions).statistic
        null = [stats.spearmanr(row, other).statistic for other in shuffled]
        assert found_rho == pytest.approx(expected, abs=1e-9)
        if np.std(null) > 1e-6:
            assert found_z == pytest.approx((expected - np.mean(null)) / np.std(null), abs=1e-6)


def test_the_null_is_that_of_all_permutations() -> None:
    rng = np.random.default_rng(5)
    row, contributions = rng.random(6), rng.random(6)
    rho, z = permutation_z(row[None], contributions, 20_000, rng)
    null = [stats.spearmanr(row, order).statistic for order in permutations(contributions)]
    assert np.mean(null) == pytest.approx(0, abs=1e-9)
    assert np.std(null) == pytest.approx(1 / 5**0.5)  # without ties 1 / sqrt(N - 1)
    assert z[0] == pytest.approx(rho[0] / np.std(null), abs=0.05)


def test_only_the_order_of_values_counts() -> None:
    signals = drawn_signals(1)
    curved = replace(
        signals,
        contributions=tuple(np.exp(signals.contributions)),
        attention=tuple(tuple(np.array(row) ** 3) for row in signals.attention),
    )
    assert reliability_of([curved]) == reliability_of([signals])


def test_the_order_of_candidates_does_not_count() -> None:
    signals, order = drawn_signals(2), [3, 1, 7, 0, 2, 6, 5, 4]
    moved = replace(
        signals,
        contributions=tuple(signals.contributions[k] for k in order),
        attention=tuple(tuple(row[k] for k in order) for row in signals.attention),
    )
    assert reliability_of([moved]).rho == pytest.approx(reliability_of([signals]).rho)
    assert reliability_of([moved], permutations=20_000).z == pytest.approx(reliability_of([signals]).z, abs=0.15)


def test_noise_is_at_chance() -> None:
    found = reliability_of([drawn_signals(seed) for seed in range(400)], permutations=200)
    assert found.errors == pytest.approx([0.05] * 3, abs=0.01)
    assert all(abs(z) < 4 * 0.05 for z in [*found.z, *found.baselines.values()])


def test_perfect_attention_is_far_above_chance_and_reversed_far_below() -> None:
    sets = []
    for seed in range(10):
        signals = drawn_signals(seed, candidates=20)
        mass = tuple(np.exp(signals.contributions) / np.exp(signals.contributions).sum())
        sets.append(replace(signals, attention=(mass, signals.attention[1], tuple(-np.array(mass)))))
    found = reliability_of(sets)
    assert found.rho[0] == pytest.approx(1)
    assert found.z[0] == pytest.approx(19**0.5, abs=0.15)
    assert found.z[2] == pytest.approx(-(19**0.5), abs=0.15)
    assert abs(found.z[1]) < 1.5


def test_sets_are_averaged_and_each_has_a_null_of_its_own() -> None:
    sets = [drawn_signals(seed) for seed in range(4)]
    whole = reliability_of(sets, model="m", seed=3)
    assert (whole.sets, whole.layers, whole.model, whole.seed) == (4, (0, 1, 2), "m", 3)
    assert whole.entropies == pytest.approx(np.mean([one.entropies for one in sets], axis=0))
    first, two = reliability_of(sets[:1], seed=3), reliability_of(sets[:2], seed=3)
    assert first.errors is None
    second = 2 * np.array(two.z) - np.array(first.z)
    assert two.errors == pytest.approx(np.abs(np.array(first.z) - second) / 2)
    rng = np.random.default_rng([3, 1])
    assert second == pytest.approx(
        permutation_z(np.array(sets[1].attention), np.array(sets[1].contributions), 1000, rng)[1]
    )
    slope = stats.pearsonr(whole.z, 1 - np.array(whole.entropies)).statistic
    assert whole.pearson == pytest.approx(slope)


def test_there_is_no_correlation_without_variation() -> None:
    signals = drawn_signals(1)
    flat = replace(signals, entropies=(0.5, 0.5, 0.5))
    assert reliability_of([flat]).pearson is None
    assert reliability_of([drawn_signals(1, layers=2)]).pearson is None
    json.dumps(reliability_of([flat]).to_dict(), allow_nan=False)


def test_the_same_seed_gives_the_same() -> None:
    sets = [drawn_signals(seed) for seed in range(3)]
    assert reliability_of(sets, seed=1) == reliability_of(sets, seed=1)
    assert reliability_of(sets, seed=1).z != reliability_of(sets, seed=2).z
    assert reliability_of(sets, seed=1).rho == reliability_of(sets, seed=2).rho


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        reliability_of([])
    with pytest.raises(ValueError, match="2 permutations, not 1"):
        reliability_of([drawn_signals(0)], permutations=1)


# The measurement


@pytest.mark.parametrize("reference", [None, (40, 40)])
def test_signals_against_full_attention_and_masked_passes(vlm: ListwiseVLM, reference: tuple[int, int] | None) -> None:
    made = example(QUERY, reference=reference)
    layout = made.prompt.layout
    image = None if reference is None else noise(*reference, seed=len(RAGGED))
    found = measure_signals(vlm, QUERY, pictures(), image)

    logits, attentions = slow_reference(made, {})
    index = layout.candidate_index.tolist()
    for layer, weights in enumerate(attentions):
        p = [0.0] * len(index)
        for row in layout.text_positions.tolist():
            columns = [float(weights[row, column]) for column in layout.candidate_positions.tolist()]
            p = [
                mean + value / sum(columns) / len(layout.text_positions) for mean, value in zip(p, columns, strict=True)
            ]
        mass = [sum(value for value, owner in zip(p, index, strict=True) if owner == k) for k in range(5)]
        assert found.attention[layer] == pytest.approx(mass, abs=1e-5)
        entropy = -sum(value * np.log(value) for value in p) / np.log(len(p))
        assert found.entropies[layer] == pytest.approx(entropy, abs=1e-5)

    identifiers = list(PromptBuilder(shared_processor()).identifier_ids[:5])
    dense = logits[-1, identifiers].log_softmax(-1)
    for k in range(5):
        gone = layout.candidate_positions[layout.candidate_index == k].tolist()
        without = slow_reference(made, {-1: gone})[0][-1, identifiers].log_softmax(-1)
        assert found.contributions[k] == pytest.approx(float(dense[k] - without[k]), abs=1e-4)


def test_baselines_token_by_token(vlm: ListwiseVLM) -> None:
    found = measure_signals(vlm, QUERY, pictures())
    layout = example(QUERY).prompt.layout
    words = example(QUERY).prompt.input_ids[0, layout.query_positions]
    query = F.normalize(shared_model().get_input_embeddings()(words).detach().mean(0), dim=0)
    encoded = [encoding.tokens for encoding in vlm.encode(pictures())]
    prototype = F.normalize(torch.cat(encoded).mean(0), dim=0)
    ccu = [[1 - float(F.normalize(token, dim=0) @ prototype) for token in tokens] for tokens in encoded]
    qrel = [[max(0.0, float(F.normalize(token, dim=0) @ query)) for token in tokens] for tokens in encoded]
    dti = [[u * q for u, q in zip(*pair, strict=True)] for pair in zip(ccu, qrel, strict=True)]
    low, high = min(map(min, dti)), max(map(max, dti))
    dti = [[(value - low) / (high - low) for value in values] for values in dti]
    for name, expected in zip(BASELINES, (ccu, qrel, dti), strict=True):
        assert found.baselines[name] == pytest.approx([np.mean(values) for values in expected], abs=1e-5)


def test_measuring_counts_its_passes_and_repeats(vlm: ListwiseVLM) -> None:
    sets = [(QUERY, pictures()), ("a blue skirt", pictures(RAGGED[:3]), noise(32, 32, seed=9))]
    seen: list[tuple[int, int]] = []
    found = measure_reliability(vlm, sets, permutations=50, progress=lambda *at: seen.append(at))
    assert seen == [(passes, 10) for passes in range(1, 11)]
    assert (found.sets, found.layers) == (2, tuple(range(6)))
    lazy: list[tuple[int, int]] = []
    again = measure_reliability(vlm, iter(sets), permutations=50, progress=lambda *at: lazy.append(at))
    assert again == found
    assert lazy[-1] == (10, 0)
    signals = [measure_signals(vlm, *one) for one in sets]
    assert found == reliability_of(signals, model=found.model, permutations=50)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["z"] == list(found.z)
    assert set(data["baselines"]) == {"U", "Q", "UxQ"}


def test_too_few_candidates_are_refused(vlm: ListwiseVLM) -> None:
    with pytest.raises(ValueError, match="3 candidates per query, not 2"):
        measure_signals(vlm, QUERY, pictures(RAGGED[:2]))


def test_sets_of_a_data_set() -> None:
    dataset = load_catalogue(queries=1, candidates=3, seed=5)
    text, composed = calibration_sets(dataset)
    for query, made in zip(dataset.queries, (text, composed), strict=True):
        assert made[0] == query.text
        names = dataset.draw_candidates(query)
        assert [image.tobytes() for image in made[1]] == [
            dataset.image(dataset.by_id[name]).tobytes() for name in names
        ]
    assert text[2] is None
    assert composed[2].tobytes() == dataset.image(dataset.queries[1].reference).tobytes()


# Profiles


def test_a_profile_is_measured_without_being_used(vlm: ListwiseVLM) -> None:
    sets = [(QUERY, pictures()), ("a blue skirt", pictures(RAGGED[:2]), noise(32, 32))]
    done: list[tuple[int, int]] = []
    profile = measure_profile(vlm, sets, progress=lambda *at: done.append(at))
    assert vlm.schedule() is None
    assert done == [(1, 2), (2, 2)]
    first = measure_signals(vlm, QUERY, pictures()).entropies
    second = measure_profile(vlm, sets[1:]).entropies
    assert profile.entropies == pytest.approx(np.mean([first, second], axis=0))
    with pytest.raises(ValueError, match="at least one"):
        measure_profile(vlm, [])


def test_profiles_are_compared_in_pairs() -> None:
    rng = np.random.default_rng(0)
    values = {name: tuple(rng.random(7)) for name in "abc"}
    profiles = {**values, "a": EntropyProfile("m", values["a"], 3, True)}
    found = profile_correlations(profiles)
    assert found.names == ("a", "b", "c")
    for row, one in enumerate("abc"):
        for column, other in enumerate("abc"):
            expected = stats.pearsonr(values[one], values[other]).statistic
            assert found.matrix[row][column] == pytest.approx(expected)
    assert found.lowest == min(found.matrix[1][0], found.matrix[2][0], found.matrix[2][1])
    assert json.loads(json.dumps(found.to_dict()))["names"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("profiles", "reason"),
    [
        ({"a": (0.1, 0.2)}, "At least two"),
        ({"a": (0.1, 0.2), "b": (0.1, 0.2, 0.3)}, "a: 2, b: 3"),
        ({"a": (0.1, 0.2), "b": (0.3, 0.3)}, "'b' is the same"),
    ],
)
def test_profiles_that_cannot_be_compared(profiles: dict[str, tuple[float, ...]], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        profile_correlations(profiles)
