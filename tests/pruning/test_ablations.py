# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""RaDiCal's ablations: each changes the one thing its name says, against scores computed token by token."""

import math

import pytest
import torch

from radical_haystack.pruning import (
    ABLATIONS,
    STRATEGIES,
    CandidateTokens,
    LayerObservation,
    PruningSchedule,
    RadicalPruner,
    RandomPruner,
    discriminative_token_importance,
    fuse,
)

SCHEDULE = PruningSchedule((0, 2), (0.95, 0.1), 0.25)
SIZES = (30, 12, 18)


def prompt(seed=0):
    generator = torch.Generator().manual_seed(seed)
    common = 2 * torch.randn(8, generator=generator)
    tokens = common + torch.randn(sum(SIZES), 8, generator=generator)
    index = torch.repeat_interleave(torch.arange(len(SIZES)), torch.tensor(SIZES))
    words = common + torch.randn(3, 8, generator=generator)
    return CandidateTokens(tokens, index, words.mean(0), words, SIZES)


def attention(layer):
    return torch.rand(5, sum(SIZES), generator=torch.Generator().manual_seed(layer)).pow(4) / sum(SIZES)


def kept_by(pruner, candidates):
    """Positions kept after each layer, by the pruner."""
    active, kept, prior = torch.arange(sum(SIZES)), [], pruner.prior(candidates)
    for layer in pruner.layers:
        observation = LayerObservation(
            layer,
            active,
            candidates,
            prior,
            attention=lambda rows, layer=layer, active=active: attention(layer)[:, active],
            keys=lambda active=active: candidates.tokens[None, active],
            hidden=lambda active=active: candidates.tokens[active],
        )
        active = active[pruner.select(observation)]
        kept.append(active.tolist())
    return kept


def cosine(one, other):
    return float(one @ other) / math.sqrt(float(one @ one) * float(other @ other))


def scaled(values):
    low, high = min(values), max(values)
    return [(value - low) / (high - low) for value in values]


def slowly(candidates, alphas, *, use_ccu=True, use_qrel=True, arithmetic=False):
    """The method in plain loops, with the parts that a variant leaves in."""
    prototype = candidates.tokens.mean(0)
    importance = []
    for token in candidates.tokens:
        uniqueness = 1 - cosine(token, prototype) if use_ccu else 1
        relevance = max(cosine(token, candidates.query_embedding), 0) if use_qrel else 1
        importance.append(uniqueness * relevance)
    importance = scaled(importance)
    active, kept = list(range(sum(SIZES))), []
    for layer, alpha in alphas.items():
        rows = attention(layer)[:, active].tolist()
        p = [sum(row[place] / sum(row) for row in rows) / len(rows) for place in range(len(active))]
        salient = scaled([max(share * math.log(len(active) * share), 0) for share in p])
        fused = []
        for token, sharp in zip(active, salient, strict=True):
            d, s = max(importance[token], 1e-6), max(sharp, 1e-6)
            fused.append(alpha * d + (1 - alpha) * s if arithmetic else d**alpha * s ** (1 - alpha))
        # Float32 cannot tell scores apart that differ by less.
        order = sorted(range(len(active)), key=lambda place: (-float(f"{fused[place]:.6g}"), -p[place], place))
        active = sorted(active[place] for place in order[: math.ceil(round(0.5 * len(active), 9))])
        kept.append(active)
    return kept


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("name", "alphas", "parts"),
    [
        ("full", (0.95, 0.1), {}),
        ("without-dti", (0.0, 0.0), {}),
        ("dti-only", (1.0, 1.0), {}),
        ("fixed-alpha", (0.5, 0.5), {}),
        ("arithmetic-fusion", (0.95, 0.1), {"arithmetic": True}),
        ("qrel-only", (0.95, 0.1), {"use_ccu": False}),
        ("ccu-only", (0.95, 0.1), {"use_qrel": False}),
    ],
)
def test_same_tokens_as_in_plain_loops(name, alphas, parts, seed):
    candidates = prompt(seed)
    expected = slowly(candidates, dict(zip(SCHEDULE.layers, alphas, strict=True)), **parts)
    assert kept_by(ABLATIONS[name].build(SCHEDULE), candidates) == expected


def test_every_variant_but_the_schedule_s_differs_from_the_full_method():
    kept = {
        name: [kept_by(variant.build(SCHEDULE), prompt(seed)) for seed in range(4)]
        for name, variant in ABLATIONS.items()
    }
    assert {name for name in kept if kept[name] == kept["full"]} == {"full", "without-alpha-maximin"}


def test_random_tokens_at_the_same_layers():
    pruner = ABLATIONS["without-token-scoring"].build(SCHEDULE)
    assert isinstance(pruner, RandomPruner)
    assert pruner.layers == SCHEDULE.layers


def test_other_layers_come_with_the_schedule():
    others = {variant.strategy for variant in ABLATIONS.values()}
    assert others == {"alpha-maximin", "even"} <= set(STRATEGIES)


def test_ccu_alone_falls_back_on_relevance_for_a_single_candidate():
    candidates = prompt()
    arguments = (candidates.tokens[:30], candidates.query_embedding)
    alone = discriminative_token_importance(*arguments, relevance=False, candidate_index=torch.zeros(30).long())
    assert torch.equal(alone, discriminative_token_importance(*arguments, uniqueness=None))


def test_impossible_variants_are_refused():
    with pytest.raises(ValueError, match="both are left out"):
        RadicalPruner(SCHEDULE, uniqueness=None, relevance=False)
    with pytest.raises(ValueError, match="both are left out"):
        discriminative_token_importance(torch.ones(2, 2), torch.ones(2), uniqueness=None, relevance=False)
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\], not 1.5"):
        RadicalPruner(SCHEDULE, alpha=1.5)
    for refuse in (lambda: RadicalPruner(SCHEDULE, mean="harmonic"), lambda: fuse(*torch.ones(2, 1), 0.5, mean="h")):
        with pytest.raises(ValueError, match="Unknown mean"):
            refuse()
