# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Which layers' attention tells what candidates matter (arXiv 2609.00667, figure 2), and how stable profiles are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy import stats
from torch import Tensor

from radical_haystack.evaluation.datasets import Dataset
from radical_haystack.pruning.pruners import CandidateTokens, InputPruner, LayerObservation, Reduction
from radical_haystack.pruning.signals import (
    cross_candidate_uniqueness,
    discriminative_token_importance,
    normalized_entropy,
    query_relevance,
    text_to_visual_distribution,
)
from radical_haystack.vlm import EntropyProfile, ListwiseVLM
from radical_haystack.vlm.calibration import EntropyProbe
from radical_haystack.vlm.families import family_of
from radical_haystack.vlm.listwise import CalibrationSet
from radical_haystack.vlm.trace import PruningTrace

BASELINES = ("U", "Q", "UxQ")
"""The attention-free baselines: a candidate's mean CCU, mean QRel and mean DTI."""

FEWEST_CANDIDATES = 3
"""With two candidates every correlation is 1 or -1."""

Progress = Callable[[int, int], None]
Floats = tuple[float, ...]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class CandidateSignals:
    """
    What is measured of one query's `N` candidates.

    :param contributions: The drop of each candidate's ranking score when its tokens are taken away, shape `(N,)`.
    :param attention: The share of the text rows' attention that each candidate receives at each layer, `(L, N)`.
    :param baselines: By name (`BASELINES`), each candidate's score, `(N,)`.
    :param entropies: `H_norm` of each layer, `(L,)`.
    """

    contributions: Floats
    attention: tuple[Floats, ...]
    baselines: Mapping[str, Floats]
    entropies: Floats


@dataclass(frozen=True)
class Reliability:
    """
    How well each layer's attention agrees with what candidates contribute, beyond chance.

    :param model: Name of the model.
    :param sets: Number of query-candidate sets.
    :param permutations: Size of the null, per set.
    :param seed: Seed of the permutations.
    :param layers: The decoder layers, 0-based.
    :param z: By layer, the z-score averaged over sets: 0 is chance.
    :param errors: Standard errors of these averages; `None` for a single set.
    :param rho: By layer, Spearman's correlation averaged over sets.
    :param entropies: By layer, `H_norm` averaged over sets.
    :param baselines: The z-scores of what looks at no attention, by name (`BASELINES`).
    :param pearson: Pearson's correlation of `z` with `1 - H_norm` over layers (the paper has 0.87); `None` where one of
        them is the same at all layers or there are fewer than three.
    """

    model: str
    sets: int
    permutations: int
    seed: int
    layers: tuple[int, ...]
    z: Floats
    errors: Floats | None
    rho: Floats
    entropies: Floats
    baselines: Mapping[str, float]
    pearson: float | None

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class ProfileCorrelations:
    """
    How alike entropy profiles are that were measured on different data.

    :param names: What they were measured on.
    :param matrix: Pearson's correlation over layers of each two, in the order of the names.
    """

    names: tuple[str, ...]
    matrix: tuple[Floats, ...]

    @property
    def lowest(self) -> float:
        """The correlation of the two that are least alike."""
        return min(value for row, values in enumerate(self.matrix) for value in values[:row])

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values for JSON."""
        return {"names": list(self.names), "matrix": [list(row) for row in self.matrix], "lowest": self.lowest}


def calibration_sets(dataset: Dataset, *, seed: int = 42) -> list[CalibrationSet]:
    """
    All queries of a data set with the images of their candidates; `dataset.sample(20)` has few enough to measure on.

    :param dataset: The data set.
    :param seed: Seed of the candidates, where the data set does not fix them.
    :raises ImageReadError: If an image cannot be read.
    """
    return [
        (
            query.text,
            [dataset.image(dataset.by_id[name]) for name in dataset.draw_candidates(query, seed=seed)],
            None if query.reference is None else dataset.image(query.reference),
        )
        for query in dataset.queries
    ]


def measure_reliability(
    vlm: ListwiseVLM,
    sets: Iterable[CalibrationSet],
    *,
    permutations: int = 1000,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Reliability:
    """
    Measure how far each layer's attention can be trusted to find the candidates that decide the ranking.

    A set of `N` candidates takes `N + 1` passes; see `measure_signals` and `reliability_of`.

    :param vlm: The model.
    :param sets: Queries with their candidates and, for composed queries, the reference, which is never a candidate.
    :param permutations: Size of the null, per set.
    :param seed: Seed of the permutations.
    :param progress: Called with the number of passes made and of all; of all 0 while that is not known.
    :raises ValueError: If there are no sets, or one has fewer than 3 candidates or more than fit one prompt.
    """
    total = sum(len(images) + 1 for _, images, *_ in sets) if isinstance(sets, Sequence) else 0
    signals: list[CandidateSignals] = []
    done = 0
    for query, images, *rest in sets:

        def count(passes: int, _: int, before: int = done) -> None:
            progress(before + passes, total)

        signals.append(measure_signals(vlm, query, images, rest[0] if rest else None, progress=count))
        done += len(images) + 1
    return reliability_of(signals, model=_name(vlm), permutations=permutations, seed=seed)


def measure_signals(
    vlm: ListwiseVLM,
    query: str,
    images: Sequence[Image.Image],
    reference: Image.Image | None = None,
    *,
    progress: Progress = lambda done, total: None,
) -> CandidateSignals:
    """
    Measure what reliability is made of, for one query.

    One unpruned pass gives the attention mass: the distribution `p` of eq. 1, whose entropy the profile is made of,
    summed over each candidate's tokens. Then each candidate's visual tokens are taken out of the sequence in turn,
    which is the same as masking them at all layers; its identifier stays, as do all positions.

    The ranking score is the candidate's own log-probability, which `Ranking` sorts by, and its contribution is signed:
    positive where its tokens speak for it [choice]. The change of the whole distribution would credit a candidate with
    what its absence does to all others through their common normaliser, which is much for whoever ranks first.

    :param vlm: The model.
    :param query: The query; for a composed query the modification text.
    :param images: The candidates.
    :param reference: A composed query's reference image; it stays in all passes.
    :param progress: Called with the number of passes made and of all.
    :raises ValueError: If there are fewer than 3 candidates or more than fit one prompt.
    """
    count = len(images)
    if count < FEWEST_CANDIDATES:
        raise ValueError(f"Reliability needs at least {FEWEST_CANDIDATES} candidates per query, not {count}.")

    def rank(pruner: EntropyProbe | _Without) -> tuple[Floats, PruningTrace]:
        ranking = vlm.rank(query, images, reference, pruner=pruner, window_size=count, window_step=count)
        return ranking.scores, ranking.traces[0]

    scores, trace = rank(_MassProbe(_depth(vlm)))
    contributions = []
    for candidate in range(count):
        progress(1 + candidate, count + 1)
        without, _ = rank(_Without(candidate))
        contributions.append(scores[candidate] - without[candidate])
    progress(count + 1, count + 1)
    figures = [stage.figures for stage in trace.stages]
    return CandidateSignals(
        contributions=tuple(contributions),
        attention=tuple(_read(layer, "mass", count) for layer in figures),
        baselines={name: _read(figures[0], name, count) for name in BASELINES},
        entropies=EntropyProbe.entropies(trace),
    )


def reliability_of(
    signals: Sequence[CandidateSignals], *, model: str = "", permutations: int = 1000, seed: int = 0
) -> Reliability:
    """
    Compare what was measured with chance.

    Per set and layer, Spearman's correlation `rho` over the candidates between attention mass and contribution is
    compared with its null, the same correlation when contributions are assigned to candidates at random:
    `z = (rho - mean of null) / deviation of null`, averaged over sets. A layer that tells no candidates apart has
    `rho = z = 0` in that set. The baselines are put through the same, with the same permutations.

    :param signals: The sets; all measured on one model.
    :param model: Its name.
    :param permutations: Size of the null, per set.
    :param seed: Seed of the permutations.
    :raises ValueError: If there are no sets, or too few permutations for a deviation.
    """
    if not signals:
        raise ValueError("Reliability needs at least one query-candidate set.")
    if permutations < 2:
        raise ValueError(f"Reliability needs at least 2 permutations, not {permutations}.")
    rhos, scores = [], []
    for number, measured in enumerate(signals):
        observed = np.array([*measured.attention, *(measured.baselines[name] for name in BASELINES)])
        # One generator per set: a set's null does not depend on how many sets there are.
        rng = np.random.default_rng([seed, number])
        rho, z = permutation_z(observed, np.array(measured.contributions), permutations, rng)
        rhos.append(rho)
        scores.append(z)
    depth = len(signals[0].attention)
    z, rho = np.mean(scores, axis=0), np.mean(rhos, axis=0)
    errors = np.std(scores, axis=0, ddof=1) / len(scores) ** 0.5 if len(scores) > 1 else None
    entropies = np.mean([measured.entropies for measured in signals], axis=0)
    return Reliability(
        model=model,
        sets=len(signals),
        permutations=permutations,
        seed=seed,
        layers=tuple(range(depth)),
        z=_floats(z[:depth]),
        errors=None if errors is None else _floats(errors[:depth]),
        rho=_floats(rho[:depth]),
        entropies=_floats(entropies),
        baselines=dict(zip(BASELINES, _floats(z[depth:]), strict=True)),
        pearson=_pearson(z[:depth], 1 - entropies),
    )


def permutation_z(
    observed: Array, contributions: Array, permutations: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """
    Spearman's correlations, and how many deviations each lies above its permutation null.

    :param observed: What is compared with the contributions, one row each, shape `(S, N)`.
    :param contributions: Shape `(N,)`.
    :param permutations: Size of the null.
    :param rng: Source of the permutations, the same for all rows.
    :returns: Correlations and z-scores, both `(S,)`; 0 where all values of a row, or all contributions, are equal.
    """
    rows, target = _standard_ranks(observed), _standard_ranks(contributions[None])
    rho = (rows @ target.T)[:, 0]
    null = rows @ rng.permuted(np.repeat(target, permutations, axis=0), axis=1).T
    deviation = null.std(axis=1)
    says = deviation > 0
    return rho, np.where(says, rho - null.mean(axis=1), 0.0) / np.where(says, deviation, 1.0)


def measure_profile(
    vlm: ListwiseVLM, sets: Iterable[CalibrationSet], *, progress: Progress = lambda done, total: None
) -> EntropyProfile:
    """
    Measure a model's entropy profile on some data, without storing or using it as `ListwiseVLM.calibrate` does.

    :param vlm: The model.
    :param sets: Queries with their candidates and, for composed queries, the reference.
    :param progress: Called with the number of sets done and of all; of all 0 where that is not known.
    :raises ValueError: If there are no sets, or one has more candidates than fit one prompt.
    """
    total = len(sets) if isinstance(sets, Sequence) else 0
    probe, measured = EntropyProbe(_depth(vlm)), list[Floats]()
    for query, images, *rest in sets:
        size = len(images)
        ranking = vlm.rank(query, images, *rest, pruner=probe, window_size=size, window_step=size)
        measured.append(EntropyProbe.entropies(ranking.traces[0]))
        progress(len(measured), total)
    if not measured:
        raise ValueError("An entropy profile needs at least one query-candidate set.")
    return EntropyProfile.average(_name(vlm), measured, complete=True)


def profile_correlations(profiles: Mapping[str, EntropyProfile | Sequence[float]]) -> ProfileCorrelations:
    """
    Compare entropy profiles of one model, measured on different data: a schedule made on one serves where they agree.

    :param profiles: By name, profiles or their values, one per layer.
    :returns: Pearson's correlation of each two.
    :raises ValueError: If there are fewer than two, they differ in depth, or one is the same at all layers.
    """
    values = {name: profile.entropies if isinstance(profile, EntropyProfile) else tuple(profile)
              for name, profile in profiles.items()}  # fmt: skip
    if len(values) < 2:
        raise ValueError("At least two entropy profiles are needed to compare them.")
    if len({len(profile) for profile in values.values()}) > 1:
        depths = ", ".join(f"{name}: {len(profile)}" for name, profile in values.items())
        raise ValueError(f"The entropy profiles are of different numbers of layers ({depths}).")
    for name, profile in values.items():
        if len(set(profile)) < 2:
            raise ValueError(f"The entropy profile '{name}' is the same at all layers, so it correlates with nothing.")
    matrix = np.corrcoef(np.array(list(values.values()), dtype=np.float64))
    return ProfileCorrelations(tuple(values), tuple(_floats(row) for row in matrix))


class _MassProbe(EntropyProbe):
    """Prunes nothing and records each candidate's attention mass at every layer, and the baselines at the first."""

    def select(self, observation: LayerObservation) -> Tensor:
        """Keep all tokens."""
        p = text_to_visual_distribution(observation.attention("text"))
        record, candidates = observation.record, observation.candidates
        record["entropy"] = normalized_entropy(p)
        record |= _by_candidate("mass", p, candidates, "sum")
        if observation.layer == 0:
            tokens, query, index = candidates.tokens, candidates.query_embedding, candidates.candidate_index
            record |= _by_candidate("U", cross_candidate_uniqueness(tokens), candidates, "mean")
            record |= _by_candidate("Q", query_relevance(tokens, query), candidates, "mean")
            dti = discriminative_token_importance(tokens, query, candidate_index=index)
            record |= _by_candidate("UxQ", dti, candidates, "mean")
        return torch.arange(observation.active.numel(), device=observation.active.device)


class _Without(InputPruner):
    """Takes one candidate's visual tokens out of the sequence."""

    def __init__(self, candidate: int) -> None:
        super().__init__(keep_ratio=1.0)  # it has no budget
        self._candidate = candidate

    def reduce(self, candidates: CandidateTokens) -> Reduction:
        """All tokens of the others."""
        return Reduction((candidates.candidate_index != self._candidate).nonzero().flatten())


def _by_candidate(name: str, values: Tensor, candidates: CandidateTokens, how: str) -> dict[str, float | Tensor]:
    lengths = torch.tensor(candidates.sizes, device=values.device)
    return {f"{name} {k}": value for k, value in enumerate(torch.segment_reduce(values, how, lengths=lengths).unbind())}


def _read(figures: Mapping[str, float], name: str, count: int) -> Floats:
    return tuple(figures[f"{name} {candidate}"] for candidate in range(count))


def _standard_ranks(rows: Array) -> Array:
    """Ranks along each row, equal values sharing their mean rank, with mean 0 and length 1; 0 if all are equal."""
    ranks = stats.rankdata(rows, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=1, keepdims=True)
    standard: Array = ranks / np.where(lengths > 0, lengths, 1.0)
    return standard


def _pearson(first: Array, second: Array) -> float | None:
    if len(first) < 3 or not np.ptp(first) or not np.ptp(second):
        return None
    return float(stats.pearsonr(first, second).statistic)


def _floats(values: Array) -> Floats:
    return tuple(map(float, values))


def _depth(vlm: ListwiseVLM) -> int:
    return len(family_of(vlm.model).layers(vlm.model))


def _name(vlm: ListwiseVLM) -> str:
    return str(vlm.model.config.name_or_path or type(vlm.model).__name__)
