# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Ranking one query with every method, and recording all that can be measured meanwhile."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from PIL import Image
from torch import nn

from radical_haystack.components.image_loading import ImageReadError
from radical_haystack.evaluation.datasets import Dataset, DatasetQuery
from radical_haystack.evaluation.experiment import Case, Experiment, Job
from radical_haystack.evaluation.records import Entry, Pass, Record, Skipped, Stage
from radical_haystack.vlm import ListwiseVLM, Ranking
from radical_haystack.vlm.families import family_of
from radical_haystack.vlm.trace import Stamp, seconds_between, stamp

Measure = Callable[[Dataset, DatasetQuery, Sequence[str], Ranking], Mapping[str, Any]]
"""
Measures something more of a ranking. It is given the data set, the query, the ids of the documents that were ranked (in
the order of the ranking's candidates) and the ranking, and gives plain values for JSON.
"""

_LOADING_THREADS = 8


@dataclass(frozen=True)
class Prefill:
    """
    One prompt on its way through the decoder.

    :param length: Tokens of the prompt.
    :param seconds: How long it took, with all that pruning adds to it.
    """

    length: int
    seconds: float


@dataclass
class _Clock:
    """Stamps around the decoder; what has more than one token is a prompt."""

    lengths: list[int] = field(default_factory=list)
    starts: list[Stamp] = field(default_factory=list)
    ends: list[Stamp] = field(default_factory=list)

    def enter(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        embeds = kwargs["inputs_embeds"]
        if embeds.shape[1] > 1:
            self.lengths.append(embeds.shape[1])
            self.starts.append(stamp(embeds.device))

    def leave(self, module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        embeds = kwargs["inputs_embeds"]
        if embeds.shape[1] > 1:
            self.ends.append(stamp(embeds.device))

    def take(self) -> list[Prefill]:
        """The prompts since the last time."""
        taken = [
            Prefill(length, seconds_between(start, end))
            for length, start, end in zip(self.lengths, self.starts, self.ends, strict=True)
        ]
        for stamps in (self.lengths, self.starts, self.ends):
            stamps.clear()
        return taken


def load_candidates(dataset: Dataset, names: Sequence[str]) -> tuple[dict[str, Image.Image], dict[str, str]]:
    """
    Load the images of candidates.

    :param dataset: The data set.
    :param names: Ids of the candidates.
    :returns: By id, the images that can be read, in the order given; and why the others cannot.
    """

    def load(name: str) -> Image.Image | ImageReadError:
        try:
            return dataset.image(dataset.by_id[name])
        except ImageReadError as error:
            return error

    if dataset.root:
        with ThreadPoolExecutor(_LOADING_THREADS) as pool:
            loaded = dict(zip(names, pool.map(load, names), strict=True))
    else:  # drawing does not let go of Python
        loaded = {name: load(name) for name in names}
    images = {name: image for name, image in loaded.items() if isinstance(image, Image.Image)}
    return images, {name: str(error) for name, error in loaded.items() if isinstance(error, ImageReadError)}


def load_reference(dataset: Dataset, query: DatasetQuery) -> Image.Image | None:
    """
    Load a composed query's reference image; `None` for a query that has none.

    :param dataset: The data set.
    :param query: The query.
    :raises ImageReadError: If it cannot be read.
    """
    return None if query.reference is None else dataset.image(query.reference)


class CaseRunner:
    """
    Ranks cases with a model. Images are loaded and encoded once for all methods of a case.

    :param vlm: The model; calibrated, if a method needs that.
    :param dataset: The data set, as `Experiment.prepare` makes it.
    :param experiment: The experiment.
    :param measure: Measures something more of every ranking.
    """

    def __init__(
        self, vlm: ListwiseVLM, dataset: Dataset, experiment: Experiment, measure: Measure | None = None
    ) -> None:
        self._vlm = vlm
        self._dataset = dataset
        self._experiment = experiment
        self._measure = measure
        self._methods = {method.name: method for method in experiment.methods}
        self._queries = {query.id: query for query in dataset.queries}

    def run(self, case: Case, jobs: Sequence[Job]) -> Iterator[list[Entry]]:
        """
        Rank a case.

        :param case: The case.
        :param jobs: The rankings wanted.
        :returns: For each job its results, one per seed; or one list that says why the query cannot be ranked.
        """
        query = self._queries[case.query]
        try:
            reference = load_reference(self._dataset, query)
        except ImageReadError as error:
            yield [Skipped(seed, query.id, query.category, str(error)) for seed in case.seeds]
            return
        images, unreadable = load_candidates(self._dataset, case.candidates)
        encoding = self._encode(list(images.values()), reference)
        with _clock_on(self._vlm) as clock:
            for job in jobs:
                ranking = self._rank(query, list(images.values()), reference, job)
                prefills = clock.take()
                measured = self._measure(self._dataset, query, tuple(images), ranking) if self._measure else {}
                yield [
                    Record(
                        seed=seed,
                        query=query.id,
                        category=query.category,
                        method=job.method,
                        keep_ratio=job.keep_ratio,
                        candidates=case.candidates,
                        relevant=self._relevant(query),
                        passes=_passes(ranking, prefills),
                        seconds={"encode_full": encoding, **_seconds(ranking, prefills)},
                        fallback=ranking.fallback,
                        unreadable=unreadable,
                        measured=dict(measured),
                        **_by_document(case.candidates, tuple(images), ranking, self._relevant(query)),
                    )
                    for seed in job.seeds
                ]

    def _rank(self, query: DatasetQuery, images: list[Image.Image], reference: Image.Image | None, job: Job) -> Ranking:
        seed = job.seeds[0]
        # One seed for all queries would drop the same places of all prompts that are equally long.
        noise = random.Random(f"{seed}/{query.id}").getrandbits(63)
        return self._vlm.rank(
            query.text,
            images,
            reference,
            pruner=self._methods[job.method].build(self._vlm, job.keep_ratio, seed=seed, noise=noise),
            scoring=self._experiment.scoring,
            window_size=self._experiment.window_size,
            window_step=self._experiment.window_step,
        )

    def _relevant(self, query: DatasetQuery) -> tuple[str, ...]:
        grades = self._dataset.qrels[query.id]
        return tuple(name for name, grade in grades.items() if grade >= self._dataset.relevant_from)

    def _encode(self, images: list[Image.Image], reference: Image.Image | None) -> float:
        """Encode everything at full size, so that no method finds its work done by another; the seconds it took."""
        started = time.perf_counter()
        # Asked of all methods, not of those that are left to run: encodings must be the same after an interruption.
        attention = any(method.needs_encoder_attention for method in self._methods.values())
        self._vlm.encode(images, attention=attention)
        if reference is not None:
            self._vlm.encode([reference])
        if self._vlm.device.type != "cpu":
            torch.accelerator.synchronize()
        return time.perf_counter() - started


@contextmanager
def _clock_on(vlm: ListwiseVLM) -> Iterator[_Clock]:
    clock = _Clock()
    decoder = family_of(vlm.model).decoder(vlm.model)
    handles = [
        decoder.register_forward_pre_hook(clock.enter, with_kwargs=True),
        decoder.register_forward_hook(clock.leave, with_kwargs=True),
    ]
    try:
        yield clock
    finally:
        for handle in handles:
            handle.remove()


def _by_document(
    candidates: Sequence[str], ranked: Sequence[str], ranking: Ranking, relevant: Sequence[str]
) -> dict[str, Any]:
    """What a ranking says of each candidate; those that were not ranked stand last, as they were given."""
    order = [ranked[place] for place in ranking.order]
    order += [name for name in candidates if name not in ranked]
    places = {name: place for place, name in enumerate(ranked)}

    def of_each(values: Sequence[Any], missing: Any) -> tuple[Any, ...]:
        return tuple(values[places[name]] if name in places else missing for name in candidates)

    return {
        "order": tuple(order),
        "scores": of_each(ranking.scores, None),
        "score_kind": ranking.score_kind,
        "kept_tokens": of_each(ranking.kept_tokens, 0),
        "total_tokens": of_each(ranking.total_tokens, 0),
        "target_rank": next((rank for rank, name in enumerate(order, start=1) if name in relevant), None),
    }


def _passes(ranking: Ranking, prefills: Sequence[Prefill]) -> tuple[Pass, ...]:
    return tuple(
        Pass(
            full=sum(ranking.total_tokens[member] for member in trace.members),
            visual=(visual := trace.candidate_index.numel()),
            text=prefill.length - visual,
            stages=tuple(
                Stage(stage.layer, stage.before, stage.kept.numel(), dict(stage.figures)) for stage in trace.stages
            ),
        )
        for trace, prefill in zip(ranking.traces, prefills, strict=True)
    )


def _seconds(ranking: Ranking, prefills: Sequence[Prefill]) -> dict[str, float]:
    return {
        "encode": ranking.timings["encode"],
        "prefill": sum(prefill.seconds for prefill in prefills),
        "select": sum(trace.timings.get("select", 0.0) for trace in ranking.traces),
        "rank": ranking.timings["rank"],
        "total": ranking.timings["total"],
    }
