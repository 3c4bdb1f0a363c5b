# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Other pruning layers for the same model, from its own measured profile."""

from types import SimpleNamespace

import pytest

from radical_haystack.pruning import ABLATIONS, STRATEGIES, PruningSchedule, choose_layers, trust_coefficients
from radical_haystack.vlm import ListwiseVLM

QUERY = "a red shirt"


@pytest.fixture
def vlm(tiny: SimpleNamespace) -> ListwiseVLM:
    vlm = ListwiseVLM(tiny.model(), tiny.processor(), num_pruning_layers=2, layer_gap=1)
    images = [tiny.noise(20 + 7 * number, 60 - 5 * number, seed=number) for number in range(4)]
    vlm.calibrate([(QUERY, images), ("blue", images)])
    return vlm


def test_every_strategy_chooses_from_the_complete_layers(vlm: ListwiseVLM) -> None:
    own = vlm.schedule(0.3)
    assert own is not None
    assert own.entropies is not None
    alphas = trust_coefficients(own.entropies)
    for strategy in STRATEGIES:
        for k, gap in ((1, 2), (2, 1), (3, 2)):
            other = vlm.alternative_schedule(strategy, keep_ratio=0.3, k=k, gap=gap, seed=5)
            # DeepStack ends at layer 1, and the last layer never counts.
            eligible = {layer: alphas[layer] for layer in range(1, 5)}
            assert list(other.layers) == choose_layers(strategy, eligible, k, gap, 5)
            assert other.alphas == tuple(alphas[layer] for layer in other.layers)
            assert (other.keep_ratio, other.entropies) == (0.3, own.entropies)
    assert vlm.alternative_schedule(keep_ratio=0.3) == own


def test_ablations_run_on_a_model(tiny: SimpleNamespace, vlm: ListwiseVLM) -> None:
    images = [tiny.noise(48, 64, seed=number) for number in range(6)]
    kept = {}
    for name, variant in ABLATIONS.items():
        pruner = variant.build(vlm.alternative_schedule(variant.strategy, keep_ratio=0.3))
        ranking = vlm.rank(QUERY, images, pruner=pruner)
        assert sum(ranking.kept_tokens) == pytest.approx(0.3 * sum(ranking.total_tokens), abs=2)
        kept[name] = ranking.traces[0].kept.tolist()
    assert kept["dti-only"] != kept["without-dti"]
    assert kept["full"] != kept["without-token-scoring"]


def test_an_unmeasured_model_is_named(tiny: SimpleNamespace) -> None:
    schedule = PruningSchedule((1, 3), (0.5, 0.0), 0.2)
    for given in (None, schedule):
        with pytest.raises(LookupError, match="entropy profile of .* is not known; calibrate the model first"):
            ListwiseVLM(tiny.model(), tiny.processor(), schedule=given).alternative_schedule("even")
