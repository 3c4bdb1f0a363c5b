# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Results of an experiment, and what they come to: means with confidence intervals, speed, and cost on paper."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

from radical_haystack.evaluation.bootstrap import Estimate, bootstrap_mean
from radical_haystack.evaluation.environment import ModelInfo
from radical_haystack.evaluation.experiment import Experiment
from radical_haystack.evaluation.folder import ExperimentFolder
from radical_haystack.evaluation.metrics import METRICS, OVERALL, evaluate_run
from radical_haystack.evaluation.records import Entry, Pass, Record, Skipped, read_results
from radical_haystack.pruning import DecoderShape, PrefillCost, prefill_cost
from radical_haystack.pruning.pruners import BEFORE_DECODER

MAIN_METRIC = METRICS[0]

Variant = tuple[str, float]
"""A method's name and a keep ratio."""


@dataclass(frozen=True)
class SummaryRow:
    """
    What one method comes to at one keep ratio, on one group of queries.

    :param method: The method's name.
    :param keep_ratio: The keep ratio; 1 for a method that has none.
    :param group: `OVERALL` or a category.
    :param queries: How many queries, each counted once for all seeds.
    :param rankings: How many rankings: a query counts for every seed that drew it.
    :param unconditional: Each of `METRICS` over all rankings.
    :param conditional_queries: How many queries have a relevant candidate.
    :param conditional: Each of `METRICS` over the rankings with a relevant candidate; empty if there are none.
    :param difference: MRR@10 minus that of dense ranking of the same queries; `None` without dense rankings.
    :param conditional_difference: The same over the rankings with a relevant candidate.
    :param kept_share: Mean share of the visual tokens that reached the end.
    :param prefill_seconds: Median seconds of the decoder on the prompts of one ranking.
    :param encode_seconds: Median seconds that the method spent on encoding images beyond encoding them all once.
    :param prefill_speedup: How many times as fast as dense the prefill is, by medians; `None` without dense rankings.
    :param flops_saved_pct: FLOPs of the prefill saved, on paper, counted as the paper does (a pruning layer as pruned
        already), in percent; `None` if the decoder's shape is not known.
    :param flops_saved_pct_executed: The same as executed here (a pruning layer runs on all tokens).
    :param kv_saved_pct: KV cache saved, on paper, in percent.
    :param fallbacks: Share of the rankings in which the model left out candidates.
    :param unreadable: How many candidates could not be read, in all rankings.
    :param measured: Means of all numbers that the experiment's own measure gave, by their place, such as
        `evidence.layers.4.target`.
    """

    method: str
    keep_ratio: float
    group: str
    queries: int
    rankings: int
    unconditional: dict[str, Estimate]
    conditional_queries: int
    conditional: dict[str, Estimate]
    difference: Estimate | None
    conditional_difference: Estimate | None
    kept_share: float
    prefill_seconds: float
    encode_seconds: float
    prefill_speedup: float | None
    flops_saved_pct: float | None
    flops_saved_pct_executed: float | None
    kv_saved_pct: float | None
    fallbacks: float
    unreadable: int
    measured: dict[str, Estimate] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `None` for what is not a number."""
        data = asdict(self)
        numbers = {name: value for name, value in data.items() if isinstance(value, float)}
        return {**data, **{name: None for name, value in numbers.items() if math.isnan(value)}}


@dataclass(frozen=True)
class Results:
    """
    Results of an experiment; `summary_tables` shows them.

    :param experiment: The experiment.
    :param model: The model they were measured with.
    :param records: What was ranked, by seed, query, method and keep ratio; complete, unless the run was interrupted.
    :param skipped: The queries that could not be ranked.
    """

    experiment: Experiment
    model: ModelInfo
    records: tuple[Record, ...]
    skipped: tuple[Skipped, ...] = ()

    @classmethod
    def of(cls, experiment: Experiment, model: ModelInfo, entries: Iterable[Sequence[Entry]]) -> "Results":
        """
        Put results in order, whatever order they came in. Of two with one key the first counts.

        :param experiment: The experiment.
        :param model: The model.
        :param entries: The results, in lists.
        """
        flat = [entry for several in entries for entry in several]
        records = {entry.key: entry for entry in reversed(flat) if isinstance(entry, Record)}
        skipped = {(entry.seed, entry.query): entry for entry in reversed(flat) if isinstance(entry, Skipped)}
        seeds = {seed: place for place, seed in enumerate(experiment.seeds)}
        methods = {method.name: place for place, method in enumerate(experiment.methods)}
        ratios = {ratio: place for place, ratio in enumerate(experiment.keep_ratios)}
        return cls(
            experiment,
            model,
            tuple(
                sorted(
                    records.values(),
                    key=lambda r: (seeds[r.seed], r.query, methods[r.method], ratios.get(r.keep_ratio, -1)),
                )
            ),
            tuple(sorted(skipped.values(), key=lambda s: (seeds[s.seed], s.query))),
        )

    @classmethod
    def load(cls, folder: str | Path) -> "Results":
        """
        Read what `run_experiment` stored, finished or not.

        :param folder: The folder.
        :raises FileNotFoundError: If there are no results.
        :raises ValueError: If they cannot be read.
        """
        store = ExperimentFolder(folder)
        config = store.read_config()
        if config is None or not store.results.exists():
            raise FileNotFoundError(f"There are no results of an experiment in '{folder}'.")
        experiment, model = Experiment.from_dict(config["experiment"]), ModelInfo.from_dict(config["model"])
        return cls.of(experiment, model, [read_results(store.results)])

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """The methods with their keep ratios, in the order of the experiment."""
        return tuple(
            (method.name, ratio)
            for method in self.experiment.methods
            for ratio in ((1.0,) if method.is_dense else self.experiment.keep_ratios)
        )

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """`OVERALL` and the categories, if there are several."""
        categories = sorted({record.category for record in self.records if record.category})
        return (OVERALL, *categories) if len(categories) > 1 else (OVERALL,)

    def of_variant(self, method: str, keep_ratio: float, group: str = OVERALL) -> list[Record]:
        """
        The results of one method at one keep ratio.

        :param method: The method's name.
        :param keep_ratio: The keep ratio; 1 for a method that has none.
        :param group: `OVERALL` or a category.
        """
        found = self._by_variant.get((method, keep_ratio), [])
        return [record for record in found if group in (OVERALL, record.category)]

    def run(self, method: str, keep_ratio: float, seed: int) -> dict[str, list[str]]:
        """
        The orders of one method as a run, as `evaluate_run` and `write_trec_run` take it.

        :param method: The method's name.
        :param keep_ratio: The keep ratio.
        :param seed: The seed.
        :returns: By query id, the ids of the documents, best first.
        """
        return {r.query: list(r.order) for r in self.of_variant(method, keep_ratio) if r.seed == seed}

    def qrels(self) -> dict[str, dict[str, int]]:
        """The relevant documents of all queries, with grade 1."""
        return {record.query: dict.fromkeys(record.relevant, 1) for record in self.records}

    def per_query(self, method: str, keep_ratio: float) -> dict[tuple[int, str], dict[str, float]]:
        """
        Each of `METRICS` of every ranking of one method.

        :param method: The method's name.
        :param keep_ratio: The keep ratio.
        :returns: By seed and query id.
        :raises ImportError: If `ir-measures` is not installed.
        """
        return self._metrics.get((method, keep_ratio), {})

    @cached_property
    def rows(self) -> tuple[SummaryRow, ...]:
        """
        What every method comes to at every keep ratio, on all queries and on each category.

        :raises ImportError: If `ir-measures` is not installed.
        """
        return tuple(self._row(variant, group) for group in self.groups for variant in self.variants)

    def row(self, method: str, keep_ratio: float | None = None, group: str = OVERALL) -> SummaryRow:
        """
        What one method comes to.

        :param method: The method's name.
        :param keep_ratio: The keep ratio; `None` for the experiment's first, and for a method that has none.
        :param group: `OVERALL` or a category.
        :raises LookupError: If there is no such row.
        """
        for row in self.rows:
            if (row.method, row.group) == (method, group) and keep_ratio in (None, row.keep_ratio):
                return row
        raise LookupError(f"There are no results of '{method}' at {keep_ratio} on '{group}'.")

    def to_dict(self) -> dict[str, Any]:
        """The experiment, the model, a summary and the queries that were skipped, as plain values for JSON."""
        return {
            "experiment": self.experiment.to_dict(),
            "model": self.model.to_dict(),
            "summary": [row.to_dict() for row in self.rows],
            "skipped": [skipped.to_dict() for skipped in self.skipped],
        }

    def identity(self) -> list[dict[str, Any]]:
        """All results without the seconds they took: equal for equal experiments, however they were run."""
        entries: list[Entry] = [*self.records, *self.skipped]
        return [{**entry.to_dict(), "seconds": None} for entry in entries]

    @cached_property
    def _by_variant(self) -> dict[Variant, list[Record]]:
        found: dict[Variant, list[Record]] = {}
        for record in self.records:
            found.setdefault((record.method, record.keep_ratio), []).append(record)
        return found

    @cached_property
    def _metrics(self) -> dict[Variant, dict[tuple[int, str], dict[str, float]]]:
        found: dict[Variant, dict[tuple[int, str], dict[str, float]]] = {}
        qrels = self.qrels()
        for variant in self._by_variant:
            values = found.setdefault(variant, {})
            for seed in self.experiment.seeds:
                run = self.run(*variant, seed)
                if run:
                    measured = evaluate_run(run, {query: qrels[query] for query in run}).per_query
                    values |= {(seed, query): metrics for query, metrics in measured.items()}
        return found

    @cached_property
    def _dense(self) -> str | None:
        return next((method.name for method in self.experiment.methods if method.is_dense), None)

    def _row(self, variant: Variant, group: str) -> SummaryRow:
        records = self.of_variant(*variant, group)
        hits = [record for record in records if record.target_rank is not None]
        dense = [] if self._dense is None else self.of_variant(self._dense, 1.0, group)
        prefill = _median(record.seconds["prefill"] for record in records)
        saved = _savings(self.model.shape, records)
        return SummaryRow(
            *variant,
            group,
            queries=len({record.query for record in records}),
            rankings=len(records),
            unconditional=self._means(variant, records),
            conditional_queries=len({record.query for record in hits}),
            conditional=self._means(variant, hits),
            difference=self._difference(variant, records),
            conditional_difference=self._difference(variant, hits),
            kept_share=_mean(record.kept_share for record in records),
            prefill_seconds=prefill,
            encode_seconds=_median(record.seconds["encode"] for record in records),
            prefill_speedup=_median(record.seconds["prefill"] for record in dense) / prefill
            if dense and prefill
            else None,
            flops_saved_pct=saved[0],
            flops_saved_pct_executed=saved[1],
            kv_saved_pct=saved[2],
            fallbacks=_mean(float(record.fallback) for record in records),
            unreadable=sum(len(record.unreadable) for record in records),
            measured=_measured(records),
        )

    def _means(self, variant: Variant, records: Sequence[Record]) -> dict[str, Estimate]:
        values = self.per_query(*variant)
        found = {
            metric: bootstrap_mean(_grouped((r.query, values[r.seed, r.query][metric]) for r in records))
            for metric in METRICS
        }
        return {metric: estimate for metric, estimate in found.items() if estimate is not None}

    def _difference(self, variant: Variant, records: Sequence[Record]) -> Estimate | None:
        if self._dense is None or variant[0] == self._dense:
            return None
        own, dense = self.per_query(*variant), self.per_query(self._dense, 1.0)
        keys = [(record.seed, record.query) for record in records if (record.seed, record.query) in dense]
        return bootstrap_mean(_grouped((key[1], own[key][MAIN_METRIC] - dense[key][MAIN_METRIC]) for key in keys))


def _grouped(pairs: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    """Values by query, the queries in a fixed order, so that intervals do not depend on how they came."""
    found: dict[str, list[float]] = {}
    for query, value in sorted(pairs, key=lambda pair: pair[0]):
        found.setdefault(query, []).append(value)
    return found


def _mean(values: Iterable[float]) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    return fmean(numbers) if numbers else math.nan


def _median(values: Iterable[float]) -> float:
    numbers = list(values)
    return median(numbers) if numbers else math.nan


def _measured(records: Sequence[Record]) -> dict[str, Estimate]:
    """Means of all numbers that are measured, over the rankings that have them."""
    values: dict[str, list[tuple[str, float]]] = {}
    for record in records:
        for place, value in _numbers(record.measured):
            values.setdefault(place, []).append((record.query, value))
    found = {place: bootstrap_mean(_grouped(pairs)) for place, pairs in values.items()}
    return {place: estimate for place, estimate in found.items() if estimate is not None}


def _numbers(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """All numbers in plain values with their places; what has a `layer` is named by it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name != "layer":
                yield from _numbers(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            name = inner.get("layer", number) if isinstance(inner, Mapping) else number
            yield from _numbers(inner, f"{place}.{name}")
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        yield place, float(value)


def _savings(shape: DecoderShape | None, records: Sequence[Record]) -> tuple[float | None, float | None, float | None]:
    """Percent of FLOPs saved as the paper counts and as executed, and of the KV cache."""
    passes = [one for record in records for one in record.passes]
    if shape is None or not passes:
        return None, None, None
    dense = [_cost(shape, one.full, one.text, (), "output") for one in passes]
    paper = [pass_cost(shape, one, as_in_paper=True) for one in passes]
    executed = [pass_cost(shape, one) for one in passes]

    def saved(costs: Sequence[PrefillCost], name: str) -> float:
        return 100 * (1 - sum(getattr(cost, name) for cost in costs) / sum(getattr(cost, name) for cost in dense))

    return saved(paper, "flops"), saved(executed, "flops"), saved(paper, "kv_bytes")


def pass_cost(shape: DecoderShape, one: Pass, *, as_in_paper: bool = False) -> PrefillCost:
    """
    What one prompt costs, on paper. The rows of attention computed for pruning are counted as all of the text, which is
    an upper bound (see `prefill_cost`).

    :param shape: The decoder.
    :param one: The prompt.
    :param as_in_paper: Count a pruning layer as pruned already.
    """
    visual = next((stage.kept for stage in one.stages if stage.layer == BEFORE_DECODER), one.visual)
    keep = tuple((stage.layer, stage.kept / stage.before) for stage in one.stages if stage.layer != BEFORE_DECODER)
    return _cost(shape, visual, one.text, keep, "input" if as_in_paper else "output")


@lru_cache(maxsize=2**14)
def _cost(
    shape: DecoderShape,
    visual: int,
    text: int,
    keep: tuple[tuple[int, float], ...],
    pruned_from: Literal["output", "input"],
) -> PrefillCost:
    return prefill_cost(shape, visual, text, dict(keep), pruned_from=pruned_from)
