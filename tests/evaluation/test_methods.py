# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Methods by the names users write, and the pruners they become."""

import json

import pytest

from radical_haystack.evaluation import Method, parse_methods
from radical_haystack.pruning import ABLATIONS, PRUNERS, PruningSchedule, RadicalPruner, trust_coefficients
from radical_haystack.vlm import ListwiseVLM
from tests.vlm.conftest import noise

ENTROPIES = (0.9, 0.8, 0.5, 0.95, 0.7, 0.6)
PROFILE = PruningSchedule.from_entropies(ENTROPIES, keep_ratio=0.5, k=2, first_layer=1)


@pytest.fixture(scope="module")
def vlm(tiny_vlm: str) -> ListwiseVLM:
    return ListwiseVLM.load(tiny_vlm, device="cpu", schedule=PROFILE, num_pruning_layers=2)


@pytest.mark.parametrize("name", PRUNERS)
def test_a_name_is_what_rank_makes_of_it(vlm: ListwiseVLM, name: str) -> None:
    images = [noise(48, 48, seed) for seed in range(4)]
    by_name = vlm.rank("a red shirt", images, pruner=name, keep_ratio=0.4)
    built = vlm.rank("a red shirt", images, pruner=Method.parse(name).build(vlm, 0.4))
    assert (built.order, built.scores, built.kept_tokens) == (by_name.order, by_name.scores, by_name.kept_tokens)


@pytest.mark.parametrize("name", ABLATIONS)
def test_ablations_are_those_of_the_paper(vlm: ListwiseVLM, name: str) -> None:
    strategy = ABLATIONS[name].strategy
    expected = ABLATIONS[name].build(vlm.alternative_schedule(strategy, keep_ratio=0.3))
    built = Method.parse(name).build(vlm, 0.3)
    assert type(built) is type(expected)
    assert built.layers == expected.layers
    if isinstance(built, RadicalPruner):
        assert isinstance(expected, RadicalPruner)
        assert (built.alpha, built.mean, built.uniqueness, built.relevance) == (
            expected.alpha,
            expected.mean,
            expected.uniqueness,
            expected.relevance,
        )
        assert built.schedule.keep_ratio == 0.3


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("radical", (2, 4)),
        ("radical:k=1", (2,)),
        ("radical:gap=1", (2, 3)),
        ("radical:k=3:gap=1", (2, 3, 4)),
        ("radical:strategy=even", (2, 4)),
        ("radical:strategy=even:k=4", (1, 2, 3, 4)),
        ("radical:layers=1+4", (1, 4)),
        ("dti-only:layers=3", (3,)),
        ("random:layers=0+3+5", (0, 3, 5)),
    ],
)
def test_layers_as_written(vlm: ListwiseVLM, text: str, layers: tuple[int, ...]) -> None:
    assert Method.parse(text).build(vlm, 0.5).layers == layers


def test_trust_at_chosen_layers_is_the_profile_s(vlm: ListwiseVLM) -> None:
    schedule = Method.parse("radical:layers=0+3").schedule(vlm, 0.25)
    assert schedule is not None
    alphas = trust_coefficients(ENTROPIES)
    assert schedule.alphas == (alphas[0], alphas[3])
    assert schedule.keep_ratio == 0.25


@pytest.mark.parametrize("text", [*PRUNERS, *ABLATIONS, "radical:k=3:gap=1", "random:layers=0+3", "full:strategy=even"])
def test_json_brings_it_back(text: str) -> None:
    method = Method.parse(text)
    assert method.name == text
    assert Method.from_dict(json.loads(json.dumps(method.to_dict()))) == method


def test_lists() -> None:
    names = [method.name for method in parse_methods(["dense, radical", "all", "radical:k=2", "radical"])]
    assert names[:2] == ["dense", "radical"]
    assert sorted(names) == sorted([*PRUNERS, "radical:k=2"])
    assert [method.name for method in parse_methods(["ablations"])] == list(ABLATIONS)


def test_random_is_random_and_nothing_else(vlm: ListwiseVLM) -> None:
    random_ones = [method.name for method in parse_methods(["all", "ablations"]) if method.is_random]
    assert random_ones == ["random", "without-token-scoring"]
    layers = Method.parse("radical:strategy=random:k=1")
    assert layers.is_random
    assert len({layers.build(vlm, 0.5, seed=seed).layers for seed in range(20)}) > 1
    assert Method.parse("random").build(vlm, 0.5, seed=3).seed == 3
    assert Method.parse("random").build(vlm, 0.5, seed=3, noise=4).seed == 4
    assert Method("r", "random", {"seed": 5}).build(vlm, 0.5, seed=3, noise=4).seed == 5


def test_what_a_method_needs() -> None:
    needs = {method.name: (method.needs_schedule, method.needs_profile) for method in parse_methods(["all"])}
    assert needs == {name: (name in ("radical", "random"), False) for name in PRUNERS}
    assert Method.parse("radical:gap=1").needs_profile
    assert Method.parse("without-alpha-maximin").needs_profile
    assert Method.parse("visionzip").needs_encoder_attention
    assert not Method.parse("radical").needs_encoder_attention


def test_a_schedule_without_a_profile_cannot_be_moved(tiny_vlm: str) -> None:
    vlm = ListwiseVLM.load(tiny_vlm, device="cpu", schedule=PruningSchedule((1, 3), (0.5, 0.0), 0.5))
    assert Method.parse("radical").build(vlm, 0.5).layers == (1, 3)
    for text in ("radical:k=1", "radical:layers=2"):
        with pytest.raises(LookupError, match="calibrate"):
            Method.parse(text).build(vlm, 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("magic", "Unknown method 'magic': choose among all, ablations, radical"),
        ("radical:k=x", "cannot be read at 'k=x'"),
        ("radical:depth=3", "cannot be read at 'depth=3'"),
        ("radical:", "cannot be read at ''"),
        ("radical:layers=", "cannot be read at 'layers='"),
        ("radical:strategy=deepest", "unknown layer strategy 'deepest'"),
        ("radical:layers=5+3", "ascending"),
        ("radical:layers=3:k=2", "not both"),
        ("fastv:k=2", "'fastv' has its own"),
        ("", "Unknown method"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Method.parse(text)


def test_layers_that_the_model_has_not(vlm: ListwiseVLM) -> None:
    with pytest.raises(ValueError, match=r"layers \[6\] do not exist: the model has layers 0 to 5"):
        Method.parse("radical:layers=2+6").build(vlm, 0.5)


def test_no_methods() -> None:
    with pytest.raises(ValueError, match="At least one method"):
        parse_methods([" , "])
