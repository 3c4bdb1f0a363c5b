# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Running an experiment on a Ray cluster: one replica of the model per GPU, the queries shared out among them."""

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from radical_haystack.evaluation.datasets import Dataset
from radical_haystack.evaluation.engine import Work
from radical_haystack.evaluation.environment import ModelInfo, environment, model_info
from radical_haystack.evaluation.experiment import Case, Experiment, Job
from radical_haystack.evaluation.preparing import calibrate_if_needed, load_model
from radical_haystack.evaluation.records import Entry, entry_from_dict
from radical_haystack.evaluation.running import CaseRunner, Measure

Shared = tuple[Experiment, Dataset, Measure | None, str | None]
"""What every replica needs: experiment, data set, measure and device."""


class RayEngine:
    """
    Ranks on all that a Ray cluster has: the one that `RAY_ADDRESS` or an earlier `ray.init` names, else one of its own
    on this machine, which ends with the experiment.

    The data set travels to every replica, its images do not: on several machines their folder must be at the same path,
    and the model must be one that all can load. Nothing is reported to Ray's makers, and no dashboard is served.

    :param experiment: The experiment.
    :param dataset: The data set, as `Experiment.prepare` makes it.
    :param measure: Measures something more of every ranking; a function of a module.
    :param workers: Number of replicas; default: one per GPU, or one where there is none.
    :param device: Where the model runs; default: a GPU if the cluster has one.
    :raises ImportError: If Ray is not installed.
    :raises ValueError: If there are more workers than GPUs to give each one.
    """

    def __init__(
        self,
        experiment: Experiment,
        dataset: Dataset,
        measure: Measure | None = None,
        *,
        workers: int | None = None,
        device: str | None = None,
    ) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"At least 1 worker is needed, not {workers}.")
        self._ray = _import_ray()
        self._own = _connect(self._ray, workers)
        self._shared = self._ray.put((experiment, dataset, measure, device))
        gpus = 0 if device == "cpu" else int(self._ray.cluster_resources().get("GPU", 0))
        self._workers = workers or max(1, gpus)
        if 0 < gpus < self._workers:
            self.close()
            raise ValueError(f"There are {gpus} GPUs for {workers} workers: ask for fewer workers, or for the CPU.")
        # Ray gives a replica as many threads as it has CPUs; of another's cluster, how they are spread is not known.
        cpus = max(1, (os.cpu_count() or 1) // self._workers) if self._own else 1
        self._resources = {"num_gpus": 1} if gpus else {"num_cpus": cpus}
        self._model: ModelInfo | None = None

    def prepare(self, cases: Sequence[Case]) -> tuple[ModelInfo, dict[str, Any]]:
        """See `Engine`."""
        task = self._ray.remote(_prepare).options(**self._resources)
        self._model, made_with = self._get(task.remote(self._shared, list(cases)))
        return self._model, {**made_with, "workers": self._workers, "ray": self._ray.__version__}

    def run(self, work: Work) -> Iterator[list[Entry]]:
        """See `Engine`."""
        if not work:
            return
        data = self._ray.data
        rows = [{"work": json.dumps([vars(case), [vars(job) for job in jobs]])} for case, jobs in work]
        with _quiet(data):
            # A block for each query: what a replica has ranked is stored before it ranks the next.
            done = data.from_items(rows, override_num_blocks=len(rows)).map_batches(
                Replica,
                fn_constructor_args=([self._shared], self._model),
                batch_size=1,
                compute=data.ActorPoolStrategy(size=min(self._workers, len(rows))),
                **self._resources,
            )
            for row in done.iter_rows():
                for entries in json.loads(row["results"]):
                    yield [entry_from_dict(entry) for entry in entries]

    def close(self) -> None:
        """End the cluster, if it is this engine's own."""
        if self._own:
            self._ray.shutdown()

    def _get(self, reference: Any) -> Any:
        """A task's result, or the error it ended with, as if it had happened here."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None


class Replica:
    """
    A replica of the model, in a process of its own.

    :param shared: A list with the reference to what is `Shared`.
    :param model: The model as the first process found or calibrated it.
    """

    def __init__(self, shared: list[Any], model: ModelInfo) -> None:
        experiment, dataset, measure, device = _import_ray().get(shared[0])
        vlm = load_model(experiment.model, device, schedule=model.schedule)
        self._runner = CaseRunner(vlm, dataset, experiment, measure)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """
        Rank cases.

        :param batch: In `work` the cases with their jobs, as JSON.
        :returns: In `results` those of each case, as JSON.
        """
        results = []
        for text in batch["work"]:
            case, jobs = json.loads(text)
            ranked = self._runner.run(
                Case(case["query"], tuple(case["candidates"]), tuple(case["seeds"])),
                [Job(job["method"], job["keep_ratio"], tuple(job["seeds"])) for job in jobs],
            )
            results.append(json.dumps([[entry.to_dict() for entry in entries] for entries in ranked]))
        return {"results": results}


def _prepare(shared: Shared, cases: Sequence[Case]) -> tuple[ModelInfo, dict[str, Any]]:
    experiment, dataset, _, device = shared
    vlm = load_model(experiment.model, device)
    calibrate_if_needed(vlm, experiment, dataset, cases)
    return model_info(vlm), environment(str(vlm.device))


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError(
            f"The engine 'ray' needs Ray, which cannot be imported ({error}): pip install 'radical-haystack[ray]'"
        ) from error
    return ray


def _connect(ray: Any, workers: int | None) -> bool:
    """Join the cluster there is, or start one; whether it was started."""
    if ray.is_initialized():
        return False
    if os.environ.get("RAY_ADDRESS"):
        ray.init(logging_level=logging.WARNING, log_to_driver=False)
        return True
    # One CPU more than replicas take: what else Ray runs must not wait for them.
    cpus = max(os.cpu_count() or 1, workers or 1) + 1
    ray.init(num_cpus=cpus, include_dashboard=False, logging_level=logging.WARNING, log_to_driver=False)
    return True


@contextmanager
def _quiet(data: Any) -> Iterator[None]:
    """No progress bars and no log of Ray's own."""
    context = data.DataContext.get_current()
    bars, logger = context.enable_progress_bars, logging.getLogger("ray.data")
    level = logger.level
    context.enable_progress_bars = False
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        context.enable_progress_bars = bars
        logger.setLevel(level)
