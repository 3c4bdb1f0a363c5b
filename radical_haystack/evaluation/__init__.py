# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Data sets in one form, metrics, TREC files, and experiments that compare pruning methods."""

from radical_haystack.evaluation.bootstrap import Estimate, bootstrap_mean
from radical_haystack.evaluation.datasets import (
    LOADERS,
    CatalogueDataset,
    Dataset,
    DatasetError,
    DatasetQuery,
    load_catalogue,
    load_dataset,
    load_fashioniq,
    load_flickr30k,
    load_mscoco,
)
from radical_haystack.evaluation.engine import run_experiment
from radical_haystack.evaluation.environment import ModelInfo
from radical_haystack.evaluation.experiment import DATASETS, PAPER_SEEDS, Experiment
from radical_haystack.evaluation.filling import fill_store
from radical_haystack.evaluation.first_stages import (
    FirstStageComparison,
    PoolFigures,
    PoolOverlap,
    compare_first_stages,
    jaccard_index,
    rank_biased_overlap,
    retrieve_pools,
)
from radical_haystack.evaluation.folder import ResumeError
from radical_haystack.evaluation.measures import measure_evidence
from radical_haystack.evaluation.methods import Method, parse_methods
from radical_haystack.evaluation.metrics import METRICS, OVERALL, MeanMetrics, RunMetrics, evaluate_run
from radical_haystack.evaluation.records import Pass, Record, Skipped, Stage
from radical_haystack.evaluation.results import Results, SummaryRow
from radical_haystack.evaluation.trec import (
    Qrels,
    Run,
    read_trec_qrels,
    read_trec_run,
    write_trec_qrels,
    write_trec_run,
)

__all__ = [
    "DATASETS",
    "LOADERS",
    "METRICS",
    "OVERALL",
    "PAPER_SEEDS",
    "CatalogueDataset",
    "Dataset",
    "DatasetError",
    "DatasetQuery",
    "Estimate",
    "Experiment",
    "FirstStageComparison",
    "MeanMetrics",
    "Method",
    "ModelInfo",
    "Pass",
    "PoolFigures",
    "PoolOverlap",
    "Qrels",
    "Record",
    "Results",
    "ResumeError",
    "Run",
    "RunMetrics",
    "Skipped",
    "Stage",
    "SummaryRow",
    "bootstrap_mean",
    "compare_first_stages",
    "evaluate_run",
    "fill_store",
    "jaccard_index",
    "load_catalogue",
    "load_dataset",
    "load_fashioniq",
    "load_flickr30k",
    "load_mscoco",
    "measure_evidence",
    "parse_methods",
    "rank_biased_overlap",
    "read_trec_qrels",
    "read_trec_run",
    "retrieve_pools",
    "run_experiment",
    "write_trec_qrels",
    "write_trec_run",
]
