# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Loading a model for an experiment, and calibrating it where a method needs that."""

from collections.abc import Sequence
from typing import Any

from radical_haystack.components.bundled import resolve_model
from radical_haystack.components.image_loading import ImageReadError
from radical_haystack.evaluation.datasets import Dataset
from radical_haystack.evaluation.experiment import Case, Experiment
from radical_haystack.evaluation.running import load_candidates, load_reference
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.listwise import CalibrationSet


def load_model(model: str, device: str | None = None, **parameters: Any) -> ListwiseVLM:
    """
    Load a reranking model.

    :param model: A hub name, a folder, or the name of a model that comes with this package.
    :param device: Where to run; default: an accelerator if there is one.
    :param parameters: Parameters of `ListwiseVLM`.
    """
    return ListwiseVLM.load(resolve_model(model), device=device, **parameters)


def calibrate_if_needed(vlm: ListwiseVLM, experiment: Experiment, dataset: Dataset, cases: Sequence[Case]) -> None:
    """
    Calibrate a model if a method of an experiment needs what is not known of it.

    :param vlm: The model.
    :param experiment: The experiment.
    :param dataset: The data set, as `Experiment.prepare` makes it.
    :param cases: Cases to calibrate on; of those in several windows the first window.
    :raises ValueError: If none of the cases can be read.
    """
    own = vlm.schedule()
    if own is None:
        needed = any(method.needs_schedule for method in experiment.methods)
    else:
        needed = own.entropies is None and any(method.needs_profile for method in experiment.methods)
    if needed:
        vlm.calibrate(_sets(experiment, dataset, cases))


def _sets(experiment: Experiment, dataset: Dataset, cases: Sequence[Case]) -> list[CalibrationSet]:
    queries = {query.id: query for query in dataset.queries}
    sets: list[CalibrationSet] = []
    for case in cases:
        query = queries[case.query]
        images, _ = load_candidates(dataset, case.candidates[: experiment.window_size])
        try:
            reference = load_reference(dataset, query)
        except ImageReadError:
            continue
        if images:
            sets.append((query.text, list(images.values()), reference))
    return sets
