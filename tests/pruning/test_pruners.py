# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The pruners on observations as a decoder would give them."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.pruning import (
    PRUNERS,
    CandidateTokens,
    DensePruner,
    LayerObservation,
    PruningSchedule,
    RadicalPruner,
    RandomPruner,
    build_pruner,
    discriminative_token_importance,
    fuse,
    normalized_entropy,
    saliency,
    text_to_visual_distribution,
)
from radical_haystack.pruning.pruners import keep_count, top_positions

SCHEDULE = PruningSchedule((1, 3, 4), (0.8, 0.3, 0.0), 0.2)
seeds = st.integers(0, 2**31)
sizes = st.lists(st.integers(1, 30), min_size=1, max_size=6)


def prompt(seed, sizes, d=8):
    """Random tokens around a common direction the query shares, so that nearly all of them are relevant."""
    generator = torch.Generator().manual_seed(seed)
    common = 2 * torch.randn(d, generator=generator)
    tokens = common + torch.randn(sum(sizes), d, generator=generator)
    index = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    words = common + torch.randn(3, d, generator=generator)
    return CandidateTokens(
        tokens, index, words.mean(0), words, tuple(sizes), torch.rand(sum(sizes), generator=generator)
    )


def decoder_pass(pruner, candidates, attention_seed=0):
    """What the decoder does with a pruner, without the decoder. Returns the stages: (observation, kept)."""
    active, stages = torch.arange(len(candidates.tokens)), []
    prior = pruner.prior(candidates)
    for layer in pruner.layers:
        generator = torch.Generator().manual_seed(attention_seed + layer)
        attention = torch.rand(5, len(active), generator=generator).pow(4) / len(active)
        observation = LayerObservation(
            layer,
            active,
            candidates,
            prior,
            attention=lambda rows, attention=attention: attention if rows == "text" else attention[-1:],
            keys=lambda generator=generator, active=active: torch.randn(2, len(active), 4, generator=generator),
            hidden=lambda active=active: candidates.tokens[active],
        )
        active = active[pruner.select(observation)]
        stages.append((observation, active))
    return stages


def exact_count(keep_ratio, k, total):
    """`ceil(R^(1/K) * total)` without floating point: the least n with n^K >= R * total^K."""
    ratio = Fraction(str(keep_ratio))
    return next(n for n in range(total + 1) if Fraction(n) ** k >= ratio * Fraction(total) ** k)


@given(seeds, sizes, st.integers(1, 100), st.integers(1, 6), st.sampled_from(["radical", "random"]))
def test_kept_tokens_are_exactly_what_the_formula_says(seed, sizes, percent, k, name):
    keep_ratio = percent / 100
    schedule = PruningSchedule(range(k), [0.5] * k, keep_ratio)
    total = sum(sizes)
    for _, kept in decoder_pass(build_pruner(name, schedule), prompt(seed, sizes)):
        total = exact_count(keep_ratio, k, total)
        assert kept.numel() == total >= 1


@given(seeds, sizes, st.sampled_from(sorted(PRUNERS)))
def test_kept_tokens_ascend_and_were_active(seed, sizes, name):
    active = set(range(sum(sizes)))
    for _, kept in decoder_pass(build_pruner(name, SCHEDULE, depth=6), prompt(seed, sizes)):
        assert kept.tolist() == sorted(set(kept.tolist()))
        assert set(kept.tolist()) <= active
        active = set(kept.tolist())


@given(seeds, sizes, st.sampled_from(sorted(PRUNERS)))
def test_a_pruner_remembers_no_prompt(seed, sizes, name):
    pruner = build_pruner(name, SCHEDULE, depth=6)
    first = [kept.tolist() for _, kept in decoder_pass(pruner, prompt(seed, sizes))]
    decoder_pass(pruner, prompt(seed + 1, [3, 9]))
    assert [kept.tolist() for _, kept in decoder_pass(pruner, prompt(seed, sizes))] == first


@given(seeds, sizes)
def test_keep_ratio_one_keeps_everything(seed, sizes):
    for _, kept in decoder_pass(RadicalPruner(SCHEDULE.with_keep_ratio(1.0)), prompt(seed, sizes)):
        assert kept.tolist() == list(range(sum(sizes)))


@given(seeds, sizes)
def test_radical_keeps_the_best_fused_scores_of_all_candidates_together(seed, sizes):
    candidates = prompt(seed, sizes)
    dti = discriminative_token_importance(
        candidates.tokens, candidates.query_embedding, candidate_index=candidates.candidate_index
    )
    for (observation, kept), alpha in zip(
        decoder_pass(RadicalPruner(SCHEDULE), candidates), SCHEDULE.alphas, strict=True
    ):
        active = observation.active.tolist()
        p = text_to_visual_distribution(observation.attention("text"))
        fused = fuse(dti[observation.active], saliency(p), alpha).tolist()
        best = sorted(range(len(active)), key=lambda position: (-fused[position], -p[position], position))
        best = best[: kept.numel()]
        assert kept.tolist() == sorted(active[position] for position in best)
        assert observation.record["alpha"] == alpha
        assert float(observation.record["entropy"]) == normalized_entropy(p)


def test_radical_at_alpha_one_ignores_attention_and_at_zero_the_tokens():
    trusting = RadicalPruner(PruningSchedule((1,), (0.0,), 0.3))
    doubting = RadicalPruner(PruningSchedule((1,), (1.0,), 0.3))

    def kept(pruner, token_seed, attention_seed):
        return decoder_pass(pruner, prompt(token_seed, [20, 20]), attention_seed)[-1][1].tolist()

    assert kept(doubting, 0, 0) == kept(doubting, 0, 1) != kept(doubting, 1, 0)
    assert kept(trusting, 0, 0) == kept(trusting, 1, 0) != kept(trusting, 0, 1)


def test_candidate_order_does_not_change_what_dti_keeps():
    candidates = prompt(0, [12, 7, 15])
    order = [2, 0, 1]
    moved = torch.cat([(candidates.candidate_index == k).nonzero().flatten() for k in order])
    index = torch.tensor([order.index(k) for k in candidates.candidate_index[moved].tolist()])
    permuted = replace(candidates, tokens=candidates.tokens[moved], candidate_index=index, sizes=(15, 12, 7))
    pruner = RadicalPruner(PruningSchedule((0, 2), (1.0, 1.0), 0.3))
    for (_, kept), (_, kept_permuted) in zip(
        decoder_pass(pruner, candidates), decoder_pass(pruner, permuted, attention_seed=9), strict=True
    ):
        assert sorted(moved[kept_permuted].tolist()) == kept.tolist()


def test_candidate_order_does_not_change_what_pure_attention_keeps():
    # Attention on a tenth of the tokens: the others are below the uniform baseline and equal in AttentionInfo.
    generator = torch.Generator().manual_seed(0)
    attention = torch.rand(1, 200, generator=generator) * 1e-3
    attention[0, torch.randperm(200, generator=generator)[:20]] = 1.0
    pruner, candidates = RadicalPruner(PruningSchedule((0,), (0.0,), 0.5)), prompt(0, [20] * 10)
    prior = pruner.prior(candidates)

    def kept(order):
        observation = LayerObservation(
            0, torch.arange(200), candidates, prior, lambda rows: attention[:, order], lambda: attention, lambda: order
        )
        return set(order[pruner.select(observation)].tolist())

    backwards = torch.arange(200).reshape(10, 20).flip(0).flatten()
    assert kept(torch.arange(200)) == kept(backwards)


def test_radical_can_use_the_exact_uniqueness_or_none():
    candidates = prompt(4, [9, 9])
    for uniqueness in ("prototype", "exact", None):
        expected = discriminative_token_importance(
            candidates.tokens,
            candidates.query_embedding,
            uniqueness=uniqueness,
            candidate_index=candidates.candidate_index,
        )
        assert torch.equal(RadicalPruner(SCHEDULE, uniqueness).prior(candidates), expected)


def test_radical_of_a_single_candidate_uses_relevance():
    candidates = prompt(4, [9])
    expected = discriminative_token_importance(candidates.tokens, candidates.query_embedding, uniqueness=None)
    assert torch.equal(RadicalPruner(SCHEDULE).prior(candidates), expected)


def test_random_pruning_depends_on_the_seed():
    one, two = (RandomPruner((1, 2), 0.3, seed=seed).prior(prompt(0, [40])) for seed in (1, 2))
    assert not torch.equal(one, two)


def test_random_pruning_has_no_favourite_place():
    kept = torch.zeros(20)
    for seed in range(400):
        kept[decoder_pass(RandomPruner((0, 1), 0.5, seed=seed), prompt(0, [20]))[-1][1]] += 1
    # Each token stays in half of 400 draws or slightly more; five standard deviations are 50.
    assert kept.min() > 150
    assert kept.max() < 270


@pytest.mark.parametrize(("layers", "keep_ratio"), [((3, 1), 0.5), ((1,), 0.0)])
def test_random_pruning_refuses_an_invalid_schedule(layers, keep_ratio):
    with pytest.raises(ValueError, match="Pruning layers must be|keep ratio must be"):
        RandomPruner(layers, keep_ratio)


def test_dense_has_no_layers_and_keeps_everything():
    pruner = build_pruner("dense", None)
    assert isinstance(pruner, DensePruner)
    assert pruner.layers == ()
    active = torch.tensor([2, 5, 6])
    attention = torch.ones(1, 3)
    observation = LayerObservation(
        0, active, prompt(0, [9]), None, lambda rows: attention, lambda: attention, lambda: attention
    )
    assert pruner.select(observation).tolist() == [0, 1, 2]


@pytest.mark.parametrize("pruner", [RadicalPruner(SCHEDULE), RandomPruner((1,), 0.5)])
def test_a_score_without_its_prior_is_refused(pruner):
    candidates = prompt(0, [4])
    attention = torch.ones(1, 4)
    observation = LayerObservation(
        1, torch.arange(4), candidates, None, lambda rows: attention, lambda: attention, lambda: attention
    )
    with pytest.raises(ValueError, match="needs the prior"):
        pruner.select(observation)


def test_methods_are_built_by_name_with_their_own_parameters():
    radical = build_pruner("radical", SCHEDULE, uniqueness="exact")
    assert radical == RadicalPruner(SCHEDULE, "exact")
    random = build_pruner("random", SCHEDULE, seed=7)
    assert (random.layers, random.seed) == (SCHEDULE.layers, 7)
    assert random.keep_ratio_at(3) == SCHEDULE.per_layer_keep


def test_unknown_methods_and_missing_schedules_are_named():
    with pytest.raises(ValueError, match="Unknown pruner 'magic': choose one of dart, dense, "):
        build_pruner("magic", SCHEDULE)
    with pytest.raises(ValueError, match="'radical' needs a pruning schedule"):
        build_pruner("radical", None)


@given(st.integers(1, 1000), st.integers(1, 5000))
def test_keep_count_is_the_ceiling_in_exact_arithmetic(thousandths, total):
    assert keep_count(thousandths / 1000, total) == math.ceil(Fraction(thousandths, 1000) * total)


@given(st.lists(st.integers(0, 3), max_size=30), st.data())
def test_of_equal_scores_the_lower_position_stays(scores, data):
    count = data.draw(st.integers(0, len(scores)))
    best = sorted(range(len(scores)), key=lambda position: (-scores[position], position))[:count]
    assert top_positions(torch.tensor(scores), count).tolist() == sorted(best)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=30), st.data())
def test_a_second_column_decides_between_equals(scores, data):
    count = data.draw(st.integers(0, len(scores)))
    best = sorted(range(len(scores)), key=lambda row: (-scores[row][0], -scores[row][1], row))[:count]
    assert top_positions(torch.tensor(scores).reshape(-1, 2), count).tolist() == sorted(best)
