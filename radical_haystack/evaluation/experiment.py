# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What is to be measured: data, methods, budgets, seeds and model, as plain values that can be stored and compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, get_args

from radical_haystack.evaluation.datasets import (
    LOADERS,
    CatalogueDataset,
    Dataset,
    DatasetQuery,
    load_catalogue,
    load_flickr30k,
    load_mscoco,
)
from radical_haystack.evaluation.methods import Method
from radical_haystack.evaluation.trec import Run
from radical_haystack.pruning.schedule import check_keep_ratio
from radical_haystack.vlm.calibration import cache_directory
from radical_haystack.vlm.listwise import Scoring, windows

DATASETS = ("catalogue", *LOADERS)
"""The data sets by name."""
PAPER_SEEDS = (42, 123, 456, 789, 1024)
"""The seeds of the paper."""
DEFAULT_METHODS = tuple(Method.parse(name) for name in ("dense", "radical", "random"))

_ALL_CAPTIONS = 10**9


@dataclass(frozen=True)
class Experiment:
    """
    Everything that results depend on.

    Every seed draws its queries with `Dataset.sample` and its candidates with `Dataset.draw_candidates`, and seeds the
    methods that are random. Every method ranks all queries of all seeds at every keep ratio; what has no keep ratio
    ranks them once.

    :param methods: What is compared.
    :param dataset: One of `DATASETS`, or any name for a data set that is handed over.
    :param root: The data set's folder; for the catalogue one to draw its images into, which it does not need.
    :param dataset_arguments: Further arguments of the data set's loader.
    :param category: The only category to take; `None` for all.
    :param queries: How many queries each seed draws; `None` for all. The catalogue is made with so many per category,
        200 for `None`; captions are drawn from all captions of the test split.
    :param candidates: How many candidates a query is ranked with.
    :param pool: From how many of the first stage's best they are drawn. `None`: the data set's own pool, or just as
        many as there are candidates where the data set draws none [choice].
    :param first_stage: Name of the first stage that finds the candidates among all images of the query's category;
        `None` for the candidates, and their order, that the data set itself gives.
    :param trust_remote_code: Whether code that comes with the first stage's model may run.
    :param keep_ratios: Shares of the visual tokens to keep, each in (0, 1].
    :param seeds: The seeds.
    :param model: The reranking model: a hub name, a folder, or the name of a model that comes with this package.
    :param scoring: See `ListwiseVLM.rank`.
    :param window_size: See `ListwiseVLM.rank`.
    :param window_step: See `ListwiseVLM.rank`.
    :raises ValueError: If a parameter is out of range, or two methods have one name.
    """

    methods: tuple[Method, ...] = DEFAULT_METHODS
    dataset: str = "catalogue"
    root: str | None = None
    dataset_arguments: Mapping[str, Any] = field(default_factory=dict)
    category: str | None = None
    queries: int | None = 100
    candidates: int = 20
    pool: int | None = None
    first_stage: str | None = None
    trust_remote_code: bool = False
    keep_ratios: tuple[float, ...] = (0.2,)
    seeds: tuple[int, ...] = (42,)
    model: str = "catalog-vlm-tiny"
    scoring: Scoring = "logits"
    window_size: int = 20
    window_step: int = 10

    def __post_init__(self) -> None:
        for name in ("methods", "keep_ratios", "seeds"):
            values = tuple(getattr(self, name))
            object.__setattr__(self, name, values)
            if not values:
                raise ValueError(f"An experiment needs at least one of {name.replace('_', ' ')}.")
        names = [method.name for method in self.methods]
        for what, given in (("method", names), ("keep ratio", self.keep_ratios), ("seed", self.seeds)):
            twice = next((value for number, value in enumerate(given) if value in given[:number]), None)
            if twice is not None:
                raise ValueError(f"The {what} '{twice}' is given twice.")
        for ratio in self.keep_ratios:
            check_keep_ratio(ratio)
        for name, value in (("queries", self.queries), ("candidates", self.candidates), ("pool", self.pool)):
            if value is not None and value < 1:
                raise ValueError(f"An experiment needs at least 1 of {name}, not {value}.")
        if self.pool is not None and self.pool < self.candidates:
            raise ValueError(f"A pool of {self.pool} has no {self.candidates} candidates.")
        if self.scoring not in get_args(Scoring):
            raise ValueError(f"Unknown scoring '{self.scoring}': choose one of {', '.join(get_args(Scoring))}.")
        windows(self.candidates, self.window_size, self.window_step)

    def to_dict(self) -> dict[str, Any]:
        """Its parameters as plain values for JSON."""
        plain = {
            "methods": [method.to_dict() for method in self.methods],
            "dataset_arguments": dict(self.dataset_arguments),
            "keep_ratios": list(self.keep_ratios),
            "seeds": list(self.seeds),
        }
        return {**asdict(self), **plain}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Experiment":
        """
        Make what `to_dict` wrote.

        :param data: Its parameters.
        """
        known = {entry.name: data[entry.name] for entry in fields(cls) if entry.name in data}
        return cls(**{**known, "methods": tuple(Method.from_dict(method) for method in known["methods"])})

    def load_dataset(self) -> Dataset:
        """
        Load the data set, with as many queries as seeds draw from.

        :raises ValueError: If there is none of that name, or it cannot be used.
        :raises FileNotFoundError: If its folder or a file is missing.
        """
        arguments: dict[str, Any] = dict(self.dataset_arguments)
        if self.dataset == "catalogue":
            arguments = {"queries": self.queries or 200, "candidates": self.candidates, **arguments}
            root = self.root
            if root is None and self.first_stage is not None:  # first stages read files
                root = str(cache_directory() / "catalogue")
            return load_catalogue(root, **arguments)
        if self.dataset not in LOADERS:
            raise ValueError(f"There is no data set '{self.dataset}'; known: {', '.join(DATASETS)}.")
        if self.root is None:
            raise ValueError(f"The data set '{self.dataset}' needs the folder it lies in (root).")
        loader: Callable[..., Dataset] = LOADERS[self.dataset]
        if loader in (load_flickr30k, load_mscoco):
            arguments = {"queries": _ALL_CAPTIONS, **arguments}
        return loader(self.root, **arguments)

    def prepare(self, dataset: Dataset) -> Dataset:
        """
        The data set as this experiment uses it: its category, its number of candidates, its pool.

        :param dataset: The data set as it was loaded.
        :raises ValueError: If it has no such category.
        """
        if self.category is not None:
            dataset = dataset.of_category(self.category)
        pool = self.pool
        if pool is None:
            draws = dataset.pool_size > dataset.candidates_per_query
            pool = max(self.candidates, dataset.pool_size) if draws else self.candidates
        dataset = replace(dataset, candidates_per_query=self.candidates, pool_size=pool)
        if self.first_stage is None:
            return dataset
        judged = dataset.gallery_qrels() if isinstance(dataset, CatalogueDataset) else dataset.qrels
        return replace(dataset, candidates={}, qrels=judged)

    def queries_of(self, dataset: Dataset, seed: int) -> tuple[DatasetQuery, ...]:
        """
        The queries that a seed draws.

        :param dataset: The data set, as `prepare` makes it.
        :param seed: The seed.
        """
        return dataset.queries if self.queries is None else dataset.sample(self.queries, seed=seed).queries


@dataclass(frozen=True)
class Case:
    """
    A query with candidates to rank.

    :param query: Its id.
    :param candidates: Their ids, in the order in which they are presented.
    :param seeds: The seeds that drew just this.
    """

    query: str
    candidates: tuple[str, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """
    One ranking of a case.

    :param method: The method's name.
    :param keep_ratio: The keep ratio; 1 for a method that has none.
    :param seeds: The seeds it is a result of: all of the case's, or one for a method that is random.
    """

    method: str
    keep_ratio: float
    seeds: tuple[int, ...]


def draw_cases(experiment: Experiment, dataset: Dataset, retrieved: Run | None = None) -> list[Case]:
    """
    Draw the queries and candidates of all seeds. What two seeds draw alike is one case.

    :param experiment: The experiment.
    :param dataset: The data set, as `Experiment.prepare` makes it.
    :param retrieved: By query id, what the first stage found, best first; a query that is not there has no candidates.
    """
    seeds: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for seed in experiment.seeds:
        for query in experiment.queries_of(dataset, seed):
            found = None if retrieved is None else retrieved.get(query.id, ())
            candidates = tuple(dataset.draw_candidates(query, found, seed=seed))
            seeds.setdefault((query.id, candidates), []).append(seed)
    return [Case(query, candidates, tuple(drawn)) for (query, candidates), drawn in seeds.items()]


def jobs_of(experiment: Experiment, case: Case) -> list[Job]:
    """
    All rankings that a case needs.

    :param experiment: The experiment.
    :param case: The case.
    """
    jobs = []
    for method in experiment.methods:
        shares: Sequence[float] = (1.0,) if method.is_dense else experiment.keep_ratios
        groups = [(seed,) for seed in case.seeds] if method.is_random else [case.seeds]
        jobs += [Job(method.name, share, seeds) for share in shares for seeds in groups]
    return jobs
