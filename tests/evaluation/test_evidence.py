# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How much of the evidence is left, on drawn pictures and a tiny model."""

import json

import numpy as np
import pytest
import torch
from torch import Tensor

from radical_haystack.catalog import draw
from radical_haystack.evaluation import CatalogueDataset, DatasetQuery, load_catalogue
from radical_haystack.evaluation.evidence import evidence_retention
from radical_haystack.pruning import PRUNERS, LayerObservation, Pruner, PruningSchedule
from radical_haystack.vlm import ListwiseVLM, Ranking

SCHEDULE = PruningSchedule((2, 4), (0.6, 0.2), 0.3)


@pytest.fixture(scope="module")
def dataset() -> CatalogueDataset:
    return load_catalogue(queries=2, candidates=5, seed=3)


@pytest.fixture(scope="module")
def vlm(tiny_vlm: str) -> ListwiseVLM:
    return ListwiseVLM.load(tiny_vlm, schedule=SCHEDULE, max_pixels=96 * 96)


class KeepThese(Pruner):
    """Keeps given tokens of those that reach each of its layers."""

    def __init__(self, kept: dict[int, Tensor]) -> None:
        self.kept = kept

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(self.kept)

    def select(self, observation: LayerObservation) -> Tensor:
        return torch.isin(observation.active, self.kept[observation.layer]).nonzero().flatten()


def rank(vlm: ListwiseVLM, dataset: CatalogueDataset, query: DatasetQuery, **options) -> Ranking:
    images = [dataset.image(dataset.by_id[name]) for name in dataset.candidates[query.id]]
    reference = None if query.reference is None else dataset.image(query.reference)
    return vlm.rank(query.text, images, reference, **options)


def retention(vlm: ListwiseVLM, dataset: CatalogueDataset, query: DatasetQuery, **options):
    return evidence_retention(dataset, query, dataset.candidates[query.id], rank(vlm, dataset, query, **options))


def slow_truth(dataset: CatalogueDataset, query: DatasetQuery, rows: int, columns: int) -> list[list[bool]]:
    """Token by token and pixel by pixel: which show a queried garment or its pocket."""
    wanted, tokens = dataset.items[query.id].query, []
    for name in dataset.candidates[query.id]:
        outfit, scene = dataset.scenes[name]
        slots = {spec.slot for spec in wanted.wanted}
        labels = {
            label for g, item in enumerate(outfit.garments) if item.slot in slots for label in (2 * g + 1, 2 * g + 2)
        }
        masks = draw(outfit, scene).masks.tolist()
        side, flags = len(masks), []
        for row in range(rows):
            for column in range(columns):
                covered = total = 0
                for y in range(round(row * side / rows), round((row + 1) * side / rows)):
                    for x in range(round(column * side / columns), round((column + 1) * side / columns)):
                        covered += masks[y][x] in labels
                        total += 1
                flags.append(covered >= 0.3 * total)
        tokens.append(flags)
    return tokens


def test_dense_keeps_everything(vlm: ListwiseVLM, dataset: CatalogueDataset) -> None:
    for query in dataset.queries:
        for method in ("dense", None):
            found = retention(vlm, dataset, query, pruner=method)
            assert found.layers == {}
            assert (found.end.target, found.end.candidates, found.end.chance) == (1.0, 1.0, 1.0)
            assert 0 < found.target_tokens < found.candidate_tokens


@pytest.mark.parametrize("number", [0, 2])  # a text query and a composed one
def test_the_slow_truth(vlm: ListwiseVLM, dataset: CatalogueDataset, number: int) -> None:
    query = dataset.queries[number]
    truth = slow_truth(dataset, query, 6, 6)
    flat = torch.tensor([flag for flags in truth for flag in flags])
    target = dataset.items[query.id].target_index
    evidence, rest = flat.nonzero().flatten(), (~flat).nonzero().flatten()

    found = retention(vlm, dataset, query, pruner=KeepThese({3: evidence}))
    assert (found.end.target, found.end.candidates) == (1.0, 1.0)
    assert found.end.chance == pytest.approx(len(evidence) / len(flat))
    assert (found.target_tokens, found.candidate_tokens) == (sum(truth[target]), len(evidence))
    assert found.layers == {3: found.end}

    nothing = retention(vlm, dataset, query, pruner=KeepThese({3: rest}))
    assert (nothing.end.target, nothing.end.candidates) == (0.0, 0.0)

    # Of two layers: first half of everybody's evidence goes, then all of the target's.
    half, own = evidence[::2], flat.clone()
    own[: 36 * target], own[36 * (target + 1) :] = False, False
    left = half[~torch.isin(half, own.nonzero().flatten())]
    two = retention(vlm, dataset, query, pruner=KeepThese({1: half, 4: left}))
    assert list(two.layers) == [1, 4]
    assert two.layers[1].candidates == pytest.approx(len(half) / len(evidence))
    assert two.layers[1].target == pytest.approx(int(own[half].sum()) / int(own.sum()))
    assert two.layers[4] == two.end
    assert (two.end.target, two.end.candidates) == (0.0, pytest.approx(len(left) / len(evidence)))


@pytest.mark.parametrize("name", sorted(PRUNERS))
def test_every_method(vlm: ListwiseVLM, dataset: CatalogueDataset, name: str) -> None:
    query = dataset.queries[1]
    found = retention(vlm, dataset, query, pruner=name, keep_ratio=0.3)
    if name in ("lowres", "dynres-qrel", "dynres-dti"):
        assert found is None
        return
    assert 0 <= found.end.target <= 1
    assert found.end.chance == (1.0 if name == "dense" else pytest.approx(0.3, abs=0.02))
    shares = [shares.candidates for shares in found.layers.values()]
    assert shares == sorted(shares, reverse=True)
    data = json.loads(json.dumps(found.to_dict()))
    assert [entry["layer"] for entry in data["layers"]] == list(found.layers)
    assert data["end"] == {"target": found.end.target, "candidates": found.end.candidates, "chance": found.end.chance}


def test_images_that_a_method_leaves_as_they_are_count(vlm: ListwiseVLM, dataset: CatalogueDataset) -> None:
    assert retention(vlm, dataset, dataset.queries[0], pruner="lowres", keep_ratio=1.0).end.target == 1.0


def test_windows_count_each_candidates_last_pass(vlm: ListwiseVLM, dataset: CatalogueDataset) -> None:
    query = dataset.queries[0]
    ranking = rank(vlm, dataset, query, pruner="random", keep_ratio=0.3, window_size=3, window_step=2)
    assert len(ranking.traces) == 2
    found = evidence_retention(dataset, query, dataset.candidates[query.id], ranking)
    assert found.end.chance == pytest.approx(sum(ranking.kept_tokens) / sum(ranking.total_tokens))


def test_candidates_may_come_in_any_order_and_lack_the_target(vlm: ListwiseVLM, dataset: CatalogueDataset) -> None:
    query = dataset.queries[0]
    names = list(dataset.candidates[query.id])
    target = names[dataset.items[query.id].target_index]
    for wanted in (names[::-1], [name for name in names if name != target]):
        images = [dataset.image(dataset.by_id[name]) for name in wanted]
        found = evidence_retention(dataset, query, wanted, vlm.rank(query.text, images, pruner="fastv"))
        assert (found.end.target is None) == (target not in wanted)
        truth = {name: np.sum(flags) for name, flags in zip(names, slow_truth(dataset, query, 6, 6), strict=True)}
        assert found.candidate_tokens == sum(truth[name] for name in wanted)
        assert found.target_tokens == (truth[target] if target in wanted else 0)


def test_ids_must_be_the_candidates(vlm: ListwiseVLM, dataset: CatalogueDataset) -> None:
    query = dataset.queries[0]
    ranking = rank(vlm, dataset, query, pruner=None)
    with pytest.raises(ValueError, match="5 candidates, but 2 ids"):
        evidence_retention(dataset, query, dataset.candidates[query.id][:2], ranking)
    ranking.traces[0].patch_grids = None
    with pytest.raises(ValueError, match="token grids"):
        evidence_retention(dataset, query, dataset.candidates[query.id], ranking)
