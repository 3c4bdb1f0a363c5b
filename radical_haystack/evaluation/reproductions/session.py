# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What reproductions share: the user's settings, the data, the model, and rankings that several tables are made of."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from radical_haystack.evaluation.datasets import Dataset
from radical_haystack.evaluation.engine import EngineName, run_experiment
from radical_haystack.evaluation.experiment import DATASETS, Experiment, draw_cases
from radical_haystack.evaluation.first_stages import retrieve_pools
from radical_haystack.evaluation.measures import measure_evidence
from radical_haystack.evaluation.methods import Method, parse_methods
from radical_haystack.evaluation.preparing import calibrate_if_needed, load_model
from radical_haystack.evaluation.reproductions.base import Comparison, Reproduction
from radical_haystack.evaluation.results import Results
from radical_haystack.evaluation.running import Measure
from radical_haystack.pipelines.first_stages import first_stage_of
from radical_haystack.pruning import Pruner
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.calibration import CALIBRATION_SETS

CATALOGUE = DATASETS[0]
BUNDLED = "bundled"
"""The first stage that comes with this package."""
REAL_QUERIES = 1000
"""How many queries of a real data set a comparison takes when nothing is said, as in the paper."""


@dataclass(frozen=True)
class Settings:
    """
    What the user chooses.

    :param data: One of `DATASETS`.
    :param root: The data set's folder.
    :param models: Reranking models; the first is used for everything but the comparison of models.
    :param first_stages: First stages; the first finds the candidates, all are compared by `retrievers`. None: the
        candidates that the data set gives.
    :param trust_remote_code: Whether code that comes with a first stage's model may run.
    :param queries: How many queries each seed draws, of the catalogue how many of each category; `None` for what each
        reproduction takes by itself.
    :param candidates: How many candidates a query is ranked with.
    :param keep_ratios: The keep ratios; what is measured at one only is measured at the first.
    :param seeds: The seeds.
    :param records: A JSONL file of image-question-answer records, for `single-image`.
    :param engine: See `run_experiment`.
    :param workers: See `run_experiment`.
    :param device: Where models run; default: an accelerator if there is one.
    :param out: The folder for results and files; `None` for none.
    :raises ValueError: If there is no such data set, or something is missing.
    """

    data: str = CATALOGUE
    root: str | None = None
    models: tuple[str, ...] = ("catalog-vlm-tiny",)
    first_stages: tuple[str, ...] = ()
    trust_remote_code: bool = False
    queries: int | None = None
    candidates: int = 20
    keep_ratios: tuple[float, ...] = (0.2, 0.1)
    seeds: tuple[int, ...] = (42,)
    records: Path | None = None
    engine: EngineName = "local"
    workers: int | None = None
    device: str | None = None
    out: Path | None = None

    def __post_init__(self) -> None:
        if self.data not in DATASETS:
            raise ValueError(f"There is no data set '{self.data}'; known: {', '.join(DATASETS)}.")
        if self.data != CATALOGUE and self.root is None:
            raise ValueError(f"The data set '{self.data}' needs the folder it lies in (--root).")
        for name, values in (("model", self.models), ("keep ratio", self.keep_ratios), ("seed", self.seeds)):
            if not values:
                raise ValueError(f"At least one {name} is needed.")

    @property
    def is_catalogue(self) -> bool:
        """Whether the drawn catalogue is measured."""
        return self.data == CATALOGUE


class Session:
    """
    Holds what reproductions share while one or all of them run.

    :param settings: What the user chose.
    :param reproductions: Those that are to run: rankings that several of them need are made once.
    :param progress: Called with what is done, the number of items done and of all.
    """

    def __init__(
        self,
        settings: Settings,
        reproductions: Sequence[Reproduction],
        progress: Callable[[str, int, int], None] = lambda step, done, total: None,
    ) -> None:
        self.settings = settings
        self.progress = progress
        self.reproductions = tuple(reproductions)
        self._compared: dict[Comparison, Results] = {}
        self._datasets: dict[str, Dataset] = {}
        self._loaded: tuple[str, ListwiseVLM] | None = None

    @property
    def keep_ratio(self) -> float:
        """The keep ratio of what is measured at one only."""
        return self.settings.keep_ratios[0]

    @property
    def first_stage(self) -> str | None:
        """The first stage that finds the candidates; `None` for the candidates that the data set gives."""
        return next(iter(self.settings.first_stages), None)

    def count(self, wanted: Reproduction | Comparison) -> int:
        """
        How many queries are measured; of the catalogue, how many of each category.

        :param wanted: For what.
        """
        if self.settings.queries is not None:
            return self.settings.queries
        source = wanted if isinstance(wanted, Comparison) else wanted.comparison or wanted
        if isinstance(source, Reproduction):
            return source.queries
        if not self.settings.is_catalogue:
            return REAL_QUERIES
        return source.queries_of_all if len(self.reproductions) > 1 else source.queries

    def experiment(self, methods: Sequence[str], count: int, **changes: Any) -> Experiment:
        """
        An experiment on the chosen data.

        :param methods: See `parse_methods`.
        :param count: How many queries; of the catalogue, how many of each category.
        :param changes: Other parameters of `Experiment`.
        """
        settings = self.settings
        # All queries of a catalogue that is made with so many: a sample would not have as many of each category.
        amount: dict[str, Any] = {"queries": count}
        if settings.is_catalogue:
            amount = {"queries": None, "dataset_arguments": {"queries": count}}
        return Experiment(
            **{
                "methods": parse_methods(methods),
                "dataset": settings.data,
                "root": settings.root,
                **amount,
                "candidates": settings.candidates,
                "first_stage": self.first_stage,
                "trust_remote_code": settings.trust_remote_code,
                "keep_ratios": (self.keep_ratio,),
                "seeds": settings.seeds,
                "model": settings.models[0],
                **changes,
            }
        )

    def compare(self, comparison: Comparison) -> Results:
        """
        The rankings that several tables are made of, with all methods that those to run need; made once.

        :param comparison: Which.
        """
        if comparison not in self._compared:
            experiment = self.experiment(
                self._methods_of(comparison),
                self.count(comparison),
                keep_ratios=self.settings.keep_ratios if comparison.all_ratios else (self.keep_ratio,),
            )
            self._compared[comparison] = self._rank_once(comparison.name, experiment)
        return self._compared[comparison]

    def compared(self, comparison: Comparison) -> Results | None:
        """
        The same, if they were made.

        :param comparison: Which.
        """
        return self._compared.get(comparison)

    def run(self, name: str, experiment: Experiment, *, measure: Measure | None = None) -> Results:
        """
        Run an experiment, in a folder of its own if results are stored.

        :param name: What it is called.
        :param experiment: The experiment.
        :param measure: See `run_experiment`.
        :raises ValueError: If no query can be ranked.
        """
        settings = self.settings
        folder = None
        if settings.out is not None:
            digest = hashlib.sha256(json.dumps(experiment.to_dict(), sort_keys=True).encode()).hexdigest()
            folder = settings.out / "runs" / f"{name}-{digest[:8]}"
        local = settings.engine == "local"
        results = run_experiment(
            experiment,
            folder,
            vlm=self.vlm(experiment.model) if local else None,
            dataset=self.dataset(experiment),
            measure=measure,
            engine=settings.engine,
            workers=settings.workers,
            device=settings.device,
            progress=lambda step, done, total: self.progress(f"{name}: {step.lower()}", done, total),
        )
        if not results.records:
            reason = results.skipped[0].skipped if results.skipped else "there are none."
            raise ValueError(f"No query of '{settings.data}' could be ranked: {reason}")
        return results

    def dataset(self, experiment: Experiment) -> Dataset:
        """
        The data set of an experiment, as it is loaded.

        :param experiment: The experiment.
        """
        key = json.dumps([experiment.dataset, experiment.root])
        if self.settings.is_catalogue:  # which is made anew for each number of queries and candidates
            made = (dict(experiment.dataset_arguments), experiment.candidates, experiment.first_stage is None)
            key = json.dumps([key, *made])
        if key not in self._datasets:
            self._datasets[key] = experiment.load_dataset()
        return self._datasets[key]

    def vlm(self, model: str | None = None, *, calibrate: bool = True) -> ListwiseVLM:
        """
        A reranking model; only the last one asked for is kept.

        :param model: Its name; default: the first of the settings.
        :param calibrate: Whether one without a schedule, or without an entropy profile where a method needs that, is
            calibrated on the first queries of the data.
        """
        name = self.settings.models[0] if model is None else model
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = None  # two large models do not fit
            self.progress(f"Loading {name}", 0, 0)
            vlm = load_model(name, self.settings.device)
            if calibrate:
                self._calibrate(vlm, name)
            self.progress(f"Loading {name}", 1, 1)
            self._loaded = name, vlm
        return self._loaded[1]

    def prepared(self, experiment: Experiment) -> Dataset:
        """
        The data set of an experiment with the queries that its first seed draws.

        :param experiment: The experiment.
        """
        dataset = experiment.prepare(self.dataset(experiment))
        if experiment.queries is None:
            return dataset
        return dataset.sample(experiment.queries, seed=experiment.seeds[0])

    def ranked(self, experiment: Experiment) -> Dataset:
        """
        The same with the candidates that this seed draws from what the first stage finds, if there is one.

        :param experiment: The experiment.
        """
        dataset = self.prepared(experiment)
        if experiment.first_stage is None:
            return dataset
        stage = first_stage_of(experiment.first_stage, trust_remote_code=experiment.trust_remote_code)
        pools = retrieve_pools(dataset, stage, dataset.pool_size, progress=self.progress)
        seed = experiment.seeds[0]
        drawn = {
            query.id: tuple(dataset.draw_candidates(query, pools[query.id], seed=seed)) for query in dataset.queries
        }
        return replace(dataset, candidates=drawn)

    def _rank_once(self, name: str, experiment: Experiment) -> Results:
        """Rank with one of those methods that prune alike, such as by two strategies that choose the same layers."""
        local = self.settings.engine == "local"
        alike = alike_methods(experiment.methods, experiment.keep_ratios, self.vlm(experiment.model)) if local else {}
        single = replace(experiment, methods=tuple(one for one in experiment.methods if one.name not in alike))
        results = self._run_what_is_new(name, single)
        copies = [
            replace(record, method=method)
            for method, other in alike.items()
            for record in results.records
            if record.method == other
        ]
        return Results.of(experiment, results.model, [results.records, copies, results.skipped])

    def _run_what_is_new(self, name: str, experiment: Experiment) -> Results:
        """Rank with the methods that no comparison has yet; of the others take their rankings of the same cases."""
        old = next(iter(self._compared.values()), None)
        known = [method for method in experiment.methods if old is not None and method in old.experiment.methods]
        new = tuple(method for method in experiment.methods if method not in known)
        if old is None or not known or not new or not set(experiment.keep_ratios) <= set(old.experiment.keep_ratios):
            return self.run(name, experiment, measure=measure_evidence)
        ranked = self.run(name, replace(experiment, methods=new), measure=measure_evidence)
        cases = {(record.seed, record.query): record.candidates for record in ranked.records}
        ratios = (1.0, *experiment.keep_ratios)
        taken = [
            record
            for variant in old.variants
            if variant[0] in {method.name for method in known} and variant[1] in ratios
            for record in old.of_variant(*variant)
            if cases.get((record.seed, record.query)) == record.candidates
        ]
        if len({(record.seed, record.query) for record in taken}) < len(cases):  # other queries were drawn
            shared = replace(experiment, methods=tuple(known))
            taken = list(self.run(f"{name}-shared", shared, measure=measure_evidence).records)
        return Results.of(experiment, ranked.model, [ranked.records, taken, ranked.skipped])

    def _methods_of(self, comparison: Comparison) -> list[str]:
        users = [one for one in self.reproductions if one.comparison == comparison]
        return list(dict.fromkeys(name for one in users for name in one.methods))

    def _calibrate(self, vlm: ListwiseVLM, name: str) -> None:
        """On candidates that the data set itself gives: entropies hardly depend on who retrieved them."""
        needed = ["radical", *(method for one in self.reproductions for method in one.methods)]
        experiment = replace(self.experiment(needed, CALIBRATION_SETS, model=name), first_stage=None)
        dataset = experiment.prepare(self.dataset(experiment))
        calibrate_if_needed(vlm, experiment, dataset, draw_cases(experiment, dataset)[:CALIBRATION_SETS])


def alike_methods(methods: Sequence[Method], keep_ratios: Sequence[float], vlm: ListwiseVLM) -> dict[str, str]:
    """
    Find methods that prune just as one before them, because the same layers are chosen.

    :param methods: The methods.
    :param keep_ratios: The keep ratios at which they are compared.
    :param vlm: The model.
    :returns: By the name of each such method, the name of the first that prunes alike.
    """
    alike: dict[str, str] = {}
    seen: list[tuple[list[Pruner], str]] = []
    for method in methods:
        if method.needs_schedule and not method.is_random:
            pruners = [method.build(vlm, ratio) for ratio in keep_ratios]
            first = next((name for others, name in seen if others == pruners), None)
            if first is None:
                seen.append((pruners, method.name))
            else:
                alike[method.name] = first
    return alike
