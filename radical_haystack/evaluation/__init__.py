# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Data sets in one form, metrics, and TREC files."""

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
from radical_haystack.evaluation.filling import fill_store
from radical_haystack.evaluation.first_stages import (
    FirstStageComparison,
    PoolFigures,
    PoolOverlap,
    compare_first_stages,
    jaccard_index,
    rank_biased_overlap,
)
from radical_haystack.evaluation.metrics import METRICS, OVERALL, MeanMetrics, RunMetrics, evaluate_run
from radical_haystack.evaluation.trec import (
    Qrels,
    Run,
    read_trec_qrels,
    read_trec_run,
    write_trec_qrels,
    write_trec_run,
)

__all__ = [
    "LOADERS",
    "METRICS",
    "OVERALL",
    "CatalogueDataset",
    "Dataset",
    "DatasetError",
    "DatasetQuery",
    "FirstStageComparison",
    "MeanMetrics",
    "PoolFigures",
    "PoolOverlap",
    "Qrels",
    "Run",
    "RunMetrics",
    "compare_first_stages",
    "evaluate_run",
    "fill_store",
    "jaccard_index",
    "load_catalogue",
    "load_dataset",
    "load_fashioniq",
    "load_flickr30k",
    "load_mscoco",
    "rank_biased_overlap",
    "read_trec_qrels",
    "read_trec_run",
    "write_trec_qrels",
    "write_trec_run",
]
