# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Running an experiment: `run_experiment(experiment, folder)`. Interrupted, it goes on where it stopped."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

from radical_haystack.evaluation.datasets import Dataset
from radical_haystack.evaluation.environment import ModelInfo, environment, model_info
from radical_haystack.evaluation.experiment import Case, Experiment, Job, draw_cases, jobs_of
from radical_haystack.evaluation.first_stages import retrieve_pools
from radical_haystack.evaluation.folder import EMBEDDINGS, POOLS, ExperimentFolder
from radical_haystack.evaluation.preparing import calibrate_if_needed, load_model
from radical_haystack.evaluation.records import Entry, Record, ResultsFile, Skipped
from radical_haystack.evaluation.results import Results
from radical_haystack.evaluation.running import CaseRunner, Measure
from radical_haystack.evaluation.trec import Run
from radical_haystack.pipelines.first_stages import first_stage_of
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.calibration import CALIBRATION_SETS

EngineName = Literal["local", "ray"]
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is done, the number of items done and of all."""
Work: TypeAlias = Sequence[tuple[Case, Sequence[Job]]]
"""Cases, each with the rankings that it still needs."""

_POOLS_DEPEND_ON = ("dataset", "root", "dataset_arguments", "category", "queries", "candidates", "first_stage", "seeds")


class Engine(Protocol):
    """Whatever ranks cases, here or elsewhere."""

    def prepare(self, cases: Sequence[Case]) -> tuple[ModelInfo, dict[str, Any]]:
        """
        Load the model, and calibrate it if that is needed.

        :param cases: Cases to calibrate on.
        :returns: The model, and with what it runs (see `environment`).
        """

    def run(self, work: Work) -> Iterator[list[Entry]]:
        """
        Rank cases, in any order.

        :param work: What to do.
        :returns: For each ranking its results, one per seed; a query that is skipped comes alone.
        """

    def close(self) -> None:
        """Let go of what was started for it."""


class LocalEngine:
    """
    Ranks in this process, one case after the other.

    :param experiment: The experiment.
    :param dataset: The data set, as `Experiment.prepare` makes it.
    :param measure: Measures something more of every ranking.
    :param vlm: The model; `None` loads the experiment's.
    :param device: Where to run a model that is loaded.
    """

    def __init__(
        self,
        experiment: Experiment,
        dataset: Dataset,
        measure: Measure | None = None,
        *,
        vlm: ListwiseVLM | None = None,
        device: str | None = None,
    ) -> None:
        self._experiment = experiment
        self._dataset = dataset
        self._may_calibrate = vlm is None or vlm.schedule() is None
        self._vlm = load_model(experiment.model, device) if vlm is None else vlm
        self._runner = CaseRunner(self._vlm, dataset, experiment, measure)

    def prepare(self, cases: Sequence[Case]) -> tuple[ModelInfo, dict[str, Any]]:
        """See `Engine`."""
        if self._may_calibrate:
            calibrate_if_needed(self._vlm, self._experiment, self._dataset, cases)
        return model_info(self._vlm), environment(str(self._vlm.device))

    def run(self, work: Work) -> Iterator[list[Entry]]:
        """See `Engine`."""
        for case, jobs in work:
            yield from self._runner.run(case, jobs)

    def close(self) -> None:
        """See `Engine`; nothing was started."""


def run_experiment(
    experiment: Experiment,
    folder: str | Path | None = None,
    *,
    vlm: ListwiseVLM | None = None,
    dataset: Dataset | None = None,
    measure: Measure | None = None,
    engine: EngineName = "local",
    workers: int | None = None,
    device: str | None = None,
    progress: Progress = lambda step, done, total: None,
) -> Results:
    """
    Rank all queries of an experiment with all of its methods.

    In the folder are `config.json` (the experiment, the model, the versions of everything) and `results.jsonl` (one
    line per query, method, keep ratio and seed, written as they come). If a run is interrupted, by whatever, the same
    call goes on where it stopped. An image that cannot be read puts its document at the end of the order; a query whose
    reference image cannot be read is skipped.

    A model without a schedule, or without an entropy profile where a method needs that, is calibrated on the first four
    queries with their candidates, and remembers it (see `ListwiseVLM.calibrate`); no judgement of relevance is looked
    at. A model that is handed over with a schedule keeps it.

    :param experiment: What to measure.
    :param folder: Where to store results; made if it is not there. `None`: nowhere.
    :param vlm: The model, already loaded, in place of `experiment.model`; for the engine `"local"`.
    :param dataset: The data set, already loaded, in place of `experiment.dataset`.
    :param measure: Measures something more of every ranking. For the engine `"ray"` a function of a module.
    :param engine: `"local"`: in this process. `"ray"`: on all that a Ray cluster has.
    :param workers: For `"ray"`: number of model replicas; default: one per GPU, or one.
    :param device: Where a model that is loaded runs; default: an accelerator if there is one.
    :param progress: Called as things get done.
    :returns: The results.
    :raises ResumeError: If the folder holds results of another experiment, model, data set or measure.
    :raises ValueError: If something of the experiment cannot be used.
    :raises LookupError: If a method needs the entropy profile of a model that was handed over without one.
    :raises OSError: If the model or the data set is not there.
    """
    if engine not in get_args(EngineName):
        raise ValueError(f"Unknown engine '{engine}': choose one of {', '.join(get_args(EngineName))}.")
    if engine == "ray" and vlm is not None:
        raise ValueError("The engine 'ray' loads the model in processes of its own; hand none over.")
    store = None if folder is None else ExperimentFolder(folder)
    config: dict[str, Any] = {"experiment": experiment.to_dict(), "measure": _name_of(measure)}
    if store is not None:
        store.check(config)  # before anything is loaded
    progress("Loading the data set", 0, 0)
    dataset = experiment.prepare(experiment.load_dataset() if dataset is None else dataset)
    config["dataset"] = {name: value for name, value in dataset.summary().items() if name != "missing_image_names"}
    if store is not None:
        store.check(config)
    pools = _pools(experiment, dataset, store, progress)
    cases = draw_cases(experiment, dataset, pools)
    progress("Loading the model", 0, 0)
    ranker: Engine
    if engine == "ray":
        from radical_haystack.evaluation.ray_engine import RayEngine

        ranker = RayEngine(experiment, dataset, measure, workers=workers, device=device)
    else:
        ranker = LocalEngine(experiment, dataset, measure, vlm=vlm, device=device)
    with closing(ranker):
        model, made_with = ranker.prepare(cases[:CALIBRATION_SETS])
        config["model"] = model.to_dict()
        if store is None:
            return Results.of(experiment, model, _run(experiment, cases, [], ranker, progress))
        store.check({**config, "model": _as_named_before(config["model"], store.read_config())})
        store.write_config(config, made_with)
        with ResultsFile(store.results) as file:
            for entries in _run(experiment, cases, file.entries, ranker, progress):
                file.append(entries)
    return Results.load(store.path)


def _run(
    experiment: Experiment, cases: Sequence[Case], known: Sequence[Entry], engine: Engine, progress: Progress
) -> Iterator[list[Entry]]:
    """What is not known yet, as it comes."""
    rankings = sum(1 if method.is_dense else len(experiment.keep_ratios) for method in experiment.methods)
    total = rankings * sum(len(case.seeds) for case in cases)
    done = 0
    for entries in chain([known], engine.run(_left(experiment, cases, known))):
        if entries is not known:
            yield list(entries)
        done += sum(1 if isinstance(entry, Record) else rankings for entry in entries)
        progress("Ranking", done, total)


def _left(experiment: Experiment, cases: Sequence[Case], known: Sequence[Entry]) -> Work:
    """
    The cases that are not done, each with the rankings that are not.

    The methods take turns at being first, when caches are cold, so that medians of times are fair [choice].
    """
    ranked = {entry.key for entry in known if isinstance(entry, Record)}
    skipped = {(entry.seed, entry.query) for entry in known if isinstance(entry, Skipped)}

    def is_left(case: Case, job: Job) -> bool:
        keys = [(seed, case.query) for seed in job.seeds]
        return any(key not in skipped and (*key, job.method, job.keep_ratio) not in ranked for key in keys)

    left = []
    for number, case in enumerate(cases):
        jobs = jobs_of(experiment, case)
        first = number % len(jobs)
        left.append((case, [job for job in jobs[first:] + jobs[:first] if is_left(case, job)]))
    return [(case, jobs) for case, jobs in left if jobs]


def _pools(experiment: Experiment, dataset: Dataset, store: ExperimentFolder | None, progress: Progress) -> Run | None:
    """By query id, what the first stage finds; kept in the folder, with what it depends on."""
    if experiment.first_stage is None:
        return None
    if store is None:
        return _retrieve(experiment, dataset, None, progress)
    depends_on = {"pool": dataset.pool_size, **{name: experiment.to_dict()[name] for name in _POOLS_DEPEND_ON}}
    stored = store.read_json(POOLS) or {}
    if stored.get("of") != depends_on:
        shutil.rmtree(store.path / EMBEDDINGS, ignore_errors=True)
        stored = {"of": depends_on, "pools": None}
        store.write_json(POOLS, stored)
    if stored["pools"] is None:
        stored["pools"] = _retrieve(experiment, dataset, store.path / EMBEDDINGS, progress)
        store.write_json(POOLS, stored)
        shutil.rmtree(store.path / EMBEDDINGS, ignore_errors=True)
    return dict(stored["pools"])


def _retrieve(experiment: Experiment, dataset: Dataset, folder: Path | None, progress: Progress) -> Run:
    assert experiment.first_stage is not None
    drawn = {query.id: query for seed in experiment.seeds for query in experiment.queries_of(dataset, seed)}
    return retrieve_pools(
        replace(dataset, queries=tuple(drawn.values())),
        first_stage_of(experiment.first_stage, trust_remote_code=experiment.trust_remote_code),
        dataset.pool_size,
        skip_unreadable=True,
        folder=folder,
        progress=progress,
    )


def _name_of(measure: Measure | None) -> str | None:
    return None if measure is None else f"{measure.__module__}.{getattr(measure, '__qualname__', '')}"


def _as_named_before(model: dict[str, Any], stored: dict[str, Any] | None) -> dict[str, Any]:
    """The same model may lie in another folder than before."""
    return {**model, "name": stored["model"]["name"]} if stored is not None and model["revision"] else model
