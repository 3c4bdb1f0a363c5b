# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Data sets, each loaded into the same form."""

from collections.abc import Callable, Mapping
from pathlib import Path

from radical_haystack.evaluation.datasets.base import Dataset, DatasetQuery
from radical_haystack.evaluation.datasets.catalogue import CatalogueDataset, load_catalogue
from radical_haystack.evaluation.datasets.fashioniq import load_fashioniq
from radical_haystack.evaluation.datasets.karpathy import load_flickr30k, load_mscoco
from radical_haystack.evaluation.datasets.reading import DatasetError

LOADERS: Mapping[str, Callable[[str | Path], Dataset]] = {
    "fashioniq": load_fashioniq,
    "flickr30k": load_flickr30k,
    "mscoco": load_mscoco,
}
"""The data sets that lie in a folder of the user's, by name."""


def load_dataset(name: str, root: str | Path) -> Dataset:
    """
    Load a data set from a folder.

    :param name: One of `LOADERS`.
    :param root: Its folder; see its loader for what must be in it.
    :returns: The data set, with its default number of queries.
    :raises ValueError: If there is none of that name, or it cannot be used.
    :raises FileNotFoundError: If there is no such folder, or a file is missing.
    """
    if name not in LOADERS:
        raise ValueError(f"There is no data set '{name}'; known: {', '.join(LOADERS)}.")
    return LOADERS[name](root)


__all__ = [
    "LOADERS",
    "CatalogueDataset",
    "Dataset",
    "DatasetError",
    "DatasetQuery",
    "load_catalogue",
    "load_dataset",
    "load_fashioniq",
    "load_flickr30k",
    "load_mscoco",
]
