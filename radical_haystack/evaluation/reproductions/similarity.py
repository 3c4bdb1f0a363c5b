# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Figure 5a: how methods do where candidates are more and more alike."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

import torch
from PIL import Image

from radical_haystack.evaluation.bootstrap import Estimate, bootstrap_mean
from radical_haystack.evaluation.reproductions.base import METHODS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import MEASURED
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, interval
from radical_haystack.evaluation.results import MAIN_METRIC, Results, Variant
from radical_haystack.evaluation.running import load_candidates
from radical_haystack.viz import curves
from radical_haystack.vlm import ListwiseVLM

GROUPS = 5

Key = tuple[int, str]
"""Seed and query id."""


class Similarity(Reproduction):
    """Quality by the similarity of candidates."""

    name = "similarity"
    number = "figure 5a"
    shows = "Whether pruning suffers where the candidates of a query look alike: quintiles of their mean similarity."
    comparison = METHODS
    methods = ("dense", "radical", "fastv", "random")

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(METHODS)
        similar = _similarities(session, results)
        groups = equal_groups(similar, GROUPS)
        ratio = session.keep_ratio
        variants = [(name, 1.0 if name == "dense" else ratio) for name in self.methods]
        means = {variant: [_mean(results, variant, group) for group in groups] for variant in variants}
        sheet = Sheet(
            f"MRR@10 in percent by quintile of candidate similarity, R = {ratio:g}",
            ("quintile", "queries", "similarity", *(f"{name}, {MEASURED}" for name in self.methods), "paper"),
            tuple(
                (
                    str(place + 1),
                    str(len({query for _, query in group})),
                    f"{min(similar[key] for key in group):.3f} to {max(similar[key] for key in group):.3f}",
                    *(interval(means[variant][place]) for variant in variants),
                    MISSING,
                )
                for place, group in enumerate(groups)
            ),
        )
        notes = (
            "Similarity is the mean cosine of two candidates, each the mean of its visual tokens as the reranker's own "
            "vision encoder gives them [choice]. The paper's values of this figure are not known here.",
        )
        series = {
            name: [
                (float(place + 1), found.mean, found.low, found.high)
                for place, found in enumerate(means[name, ratio_of])
                if found is not None
            ]
            for name, ratio_of in variants
        }
        figure = partial(
            curves,
            series,
            title=f"Quality by the similarity of candidates, R = {ratio:g}",
            x_label="quintile of candidate similarity (5: most alike)",
            y_label=MAIN_METRIC,
            whole_x=True,
        )
        values = [{"seed": seed, "query": query, "similarity": value} for (seed, query), value in similar.items()]
        return Outcome((sheet,), notes, {"similarity": figure}, values)


def equal_groups(values: Mapping[Key, float], count: int) -> list[list[Key]]:
    """
    Cut what is sorted by its value into groups whose sizes differ by one at most.

    :param values: The values. Of equal ones the order is that of their keys.
    :param count: How many groups; fewer if there are not so many values.
    :returns: The keys, the group of the smallest values first.
    """
    ordered = sorted(values, key=lambda key: (values[key], key))
    count = min(count, len(ordered))
    cuts = [-(-len(ordered) * place // count) for place in range(count + 1)]
    return [ordered[start:end] for start, end in pairwise(cuts)]


def mean_similarity(vlm: ListwiseVLM, images: Sequence[Image.Image]) -> float:
    """
    Mean cosine of two different candidates, each the mean of its visual tokens.

    :param vlm: The model whose vision encoder is asked.
    :param images: At least two candidates.
    """
    means = torch.stack([encoding.tokens.float().mean(0) for encoding in vlm.encode(images)])
    unit = torch.nn.functional.normalize(means, dim=-1)
    count = len(unit)
    # The sum over all pairs is the squared length of the sum; each is 1 with itself.
    return float((unit.sum(0).square().sum() - count) / (count * (count - 1)))


def _similarities(session: Session, results: Results) -> dict[Key, float]:
    """Of the candidates of every ranking, by seed and query."""
    dataset, vlm = session.dataset(results.experiment), session.vlm()
    records = results.of_variant(*results.variants[0])
    found: dict[Key, float] = {}
    by_candidates: dict[tuple[str, ...], float] = {}
    for done, record in enumerate(records, start=1):
        if record.candidates not in by_candidates:
            images, _ = load_candidates(dataset, record.candidates)
            if len(images) > 1:
                by_candidates[record.candidates] = mean_similarity(vlm, list(images.values()))
        if record.candidates in by_candidates:
            found[record.seed, record.query] = by_candidates[record.candidates]
        session.progress("similarity: encoding", done, len(records))
    return found


def _mean(results: Results, variant: Variant, group: Sequence[Key]) -> Estimate | None:
    values = results.per_query(*variant)
    of_query: dict[str, list[float]] = {}
    for seed, query in sorted(group, key=lambda key: key[1]):
        of_query.setdefault(query, []).append(values[seed, query][MAIN_METRIC])
    return bootstrap_mean(of_query)
