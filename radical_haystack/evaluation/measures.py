# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What may be measured of every ranking beside its order."""

from collections.abc import Mapping, Sequence
from typing import Any

from radical_haystack.evaluation.datasets import CatalogueDataset, Dataset, DatasetQuery
from radical_haystack.evaluation.evidence import evidence_retention
from radical_haystack.vlm import Ranking


def measure_evidence(
    dataset: Dataset, query: DatasetQuery, documents: Sequence[str], ranking: Ranking
) -> Mapping[str, Any]:
    """
    How much of what a query of the catalogue asks for is left after each pruning layer, see `evidence_retention`.

    :param dataset: The data set; of any other than the catalogue nothing is measured.
    :param query: The query.
    :param documents: Ids of the ranking's candidates.
    :param ranking: The ranking.
    """
    if not isinstance(dataset, CatalogueDataset):
        return {}
    found = evidence_retention(dataset, query, documents, ranking)
    return {} if found is None else {"evidence": found.to_dict()}
