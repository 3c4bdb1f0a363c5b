# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How alike candidates are, and what reranking makes of those of several first stages."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from radical_haystack.components import ImageReadError
from radical_haystack.evaluation import (
    FirstStageComparison,
    compare_first_stages,
    jaccard_index,
    load_catalogue,
    load_fashioniq,
    rank_biased_overlap,
)
from radical_haystack.evaluation.datasets import CatalogueDataset
from radical_haystack.pipelines import FirstStage
from radical_haystack.pruning import PruningSchedule
from radical_haystack.vlm import ListwiseVLM

SCHEDULE = PruningSchedule(layers=(1, 3), alphas=(0.6, 0.1), keep_ratio=0.5)


def slow_overlap(first: list[str], second: list[str], p: float) -> float:
    """The infinite sum, the agreement beyond the lists' end being that at their end."""
    total = 0.0
    for depth in range(1, 3000):
        seen = min(depth, len(first))
        agreement = len(set(first[:seen]) & set(second[:seen])) / seen
        total += (1 - p) * p ** (depth - 1) * agreement
    return total


@st.composite
def two_rankings(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    depth = draw(st.integers(1, 12))
    names = [f"d{number}" for number in range(16)]
    first, second = (draw(st.permutations(names))[:depth] for _ in range(2))
    return first, second


probabilities = st.floats(0.05, 0.98)


class TestRankBiasedOverlap:
    @given(two_rankings(), probabilities)
    def test_is_the_infinite_sum(self, rankings: tuple[list[str], list[str]], p: float) -> None:
        assert rank_biased_overlap(*rankings, p) == pytest.approx(slow_overlap(*rankings, p), abs=1e-9)

    @given(two_rankings(), probabilities)
    def test_is_symmetric_and_a_share(self, rankings: tuple[list[str], list[str]], p: float) -> None:
        first, second = rankings
        value = rank_biased_overlap(first, second, p)
        assert value == pytest.approx(rank_biased_overlap(second, first, p), abs=1e-12)
        assert -1e-12 <= value <= 1 + 1e-12

    @given(two_rankings(), probabilities)
    def test_same_order_is_one_and_nothing_in_common_is_zero(
        self, rankings: tuple[list[str], list[str]], p: float
    ) -> None:
        first, _ = rankings
        assert rank_biased_overlap(first, first, p) == pytest.approx(1)
        assert rank_biased_overlap(first, [f"other-{name}" for name in first], p) == 0

    @given(st.integers(3, 20), st.data())
    def test_a_swap_at_the_top_costs_more_than_one_below(self, depth: int, data: st.DataObject) -> None:
        names = [str(number) for number in range(depth)]
        place = data.draw(st.integers(1, depth - 2))

        def swapped(at: int) -> list[str]:
            return [*names[:at], names[at + 1], names[at], *names[at + 2 :]]

        assert rank_biased_overlap(names, swapped(0)) < rank_biased_overlap(names, swapped(place))

    def test_by_hand(self) -> None:
        # Agreement 0 at rank 1, 1 at rank 2: (1 - p) p + p^2.
        assert rank_biased_overlap(["a", "b"], ["b", "a"], 0.9) == pytest.approx(0.1 * 0.9 + 0.81)
        assert rank_biased_overlap([], []) == 1

    @pytest.mark.parametrize(
        ("first", "second", "p", "message"),
        [
            (["a"], ["a", "b"], 0.9, "same length"),
            (["a", "a"], ["a", "b"], 0.9, "nothing comes twice"),
            (["a", "b"], ["b", "b"], 0.9, "nothing comes twice"),
            (["a"], ["a"], 1.0, "p must be in"),
            (["a"], ["a"], 0.0, "p must be in"),
        ],
    )
    def test_bad_input(self, first: list[str], second: list[str], p: float, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            rank_biased_overlap(first, second, p)


def test_jaccard_index() -> None:
    assert jaccard_index(["a", "b", "c"], ["c", "d", "b"]) == 0.5
    assert jaccard_index(["a"], ["b"]) == 0
    assert jaccard_index(["a", "b"], ["b", "a"]) == 1
    assert jaccard_index([], []) == 1


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> CatalogueDataset:
    return load_catalogue(tmp_path_factory.mktemp("catalogue"), queries=3, candidates=5)


@pytest.fixture
def vlm(tiny_vlm: str) -> ListwiseVLM:
    return ListwiseVLM.load(tiny_vlm, device="cpu", schedule=SCHEDULE)


@pytest.fixture
def comparison(catalogue: CatalogueDataset, vlm: ListwiseVLM, tiny_siglip: str) -> FirstStageComparison:
    stages = ["bundled", FirstStage("again", "catalog-siglip-tiny"), FirstStage("random", tiny_siglip)]
    return compare_first_stages(catalogue, stages, vlm, qrels=catalogue.gallery_qrels(), candidates=6, keep_ratio=0.5)


def test_figures(comparison: FirstStageComparison) -> None:
    assert (comparison.queries, comparison.candidates, comparison.keep_ratio) == (6, 6, 0.5)
    assert list(comparison.pools) == ["bundled", "again", "random"]
    for pool in comparison.pools.values():
        assert max(pool.first_stage, pool.dense, pool.radical) <= pool.pool_recall
    assert comparison.pools["again"] == comparison.pools["bundled"]
    assert comparison.pools["bundled"].pool_recall > 0.5  # a trained one against one that is not
    assert comparison.pools["bundled"].first_stage > comparison.pools["random"].first_stage


def test_overlaps(comparison: FirstStageComparison) -> None:
    names = [(overlap.first, overlap.second) for overlap in comparison.overlaps]
    assert names == [("bundled", "again"), ("bundled", "random"), ("again", "random")]
    same, different, _ = comparison.overlaps
    assert (same.jaccard, same.rbo) == (1, pytest.approx(1))
    assert 0 < different.jaccard < 1
    assert 0 < different.rbo < 1


def test_table_and_json(comparison: FirstStageComparison) -> None:
    output = io.StringIO()
    Console(file=output, width=140).print(comparison)
    for text in ("RaDiCal, R = 0.5", "Jaccard@6", "RBO (p = 0.9)", "6 queries of catalogue", "random"):
        assert text in output.getvalue()
    data = json.loads(json.dumps(comparison.to_dict()))
    assert data["pools"]["bundled"]["dense"] == comparison.pools["bundled"].dense
    assert data["overlaps"][0] == {"first": "bundled", "second": "again", "jaccard": 1.0, "rbo": pytest.approx(1)}


def test_reference_is_no_candidate(fashioniq: Path, vlm: ListwiseVLM, tiny_siglip: str) -> None:
    """Every query of FashionIQ has its reference in the gallery."""
    dataset = load_fashioniq(fashioniq).of_category("dress")
    everything = len(dataset.documents) - 1
    comparison = compare_first_stages(dataset, [tiny_siglip], vlm, candidates=everything, keep_ratio=0.5)
    assert comparison.pools[tiny_siglip].pool_recall == 1
    assert comparison.overlaps == ()


def test_missing_reference_is_named(fashioniq: Path, vlm: ListwiseVLM, tiny_siglip: str) -> None:
    dataset = load_fashioniq(fashioniq)
    (query, *_) = dataset.queries
    assert query.reference is not None
    gone = replace(query, reference=replace(query.reference, meta={**query.reference.meta, "file_path": "gone.png"}))
    with pytest.raises(ImageReadError, match="gone.png"):
        compare_first_stages(replace(dataset, queries=(gone,)), [tiny_siglip], vlm)


@pytest.mark.parametrize(
    ("stages", "candidates", "message"),
    [
        ([], 20, "names of their own, not none"),
        (["bundled", "bundled"], 20, "names of their own, not bundled, bundled"),
        (["bundled"], 0, "At least 1 candidate is needed, not 0"),
        (["jina-embeddings-v4"], 20, "trust_remote_code=True"),
    ],
)
def test_bad_input(
    catalogue: CatalogueDataset, vlm: ListwiseVLM, stages: list[str], candidates: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compare_first_stages(catalogue, stages, vlm, candidates=candidates)
