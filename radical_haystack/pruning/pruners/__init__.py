# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The pruning methods, one file each, and the names users choose them by."""

from typing import Any

from radical_haystack.pruning.pruners.base import (
    BEFORE_DECODER,
    CandidateImages,
    CandidateTokens,
    ImagePruner,
    InputPruner,
    LayerObservation,
    Pruner,
    Reduction,
    ScorePruner,
    Setting,
    StagedPruner,
    keep_count,
    split_count,
    top_positions,
    true_positions,
)
from radical_haystack.pruning.pruners.dart import DARTPruner
from radical_haystack.pruning.pruners.dense import DensePruner
from radical_haystack.pruning.pruners.dynres import DynResDTIPruner, DynResQRelPruner
from radical_haystack.pruning.pruners.fastv import FastVPruner
from radical_haystack.pruning.pruners.lowres import LowResPruner
from radical_haystack.pruning.pruners.pyramiddrop import PyramidDropPruner
from radical_haystack.pruning.pruners.qi_ei import QIEIPruner
from radical_haystack.pruning.pruners.radical import RadicalPruner
from radical_haystack.pruning.pruners.random import RandomPruner
from radical_haystack.pruning.pruners.sparsevlm import SparseVLMPruner
from radical_haystack.pruning.pruners.visionzip import VisionZipPruner
from radical_haystack.pruning.schedule import PruningSchedule

PRUNERS: dict[str, type[Pruner]] = {
    "radical": RadicalPruner,
    "fastv": FastVPruner,
    "pyramiddrop": PyramidDropPruner,
    "sparsevlm": SparseVLMPruner,
    "dart": DARTPruner,
    "visionzip": VisionZipPruner,
    "qi-ei": QIEIPruner,
    "lowres": LowResPruner,
    "dynres-qrel": DynResQRelPruner,
    "dynres-dti": DynResDTIPruner,
    "random": RandomPruner,
    "dense": DensePruner,
}
"""Each method by the name users write."""


def build_pruner(
    name: str,
    schedule: PruningSchedule | None = None,
    *,
    keep_ratio: float | None = None,
    depth: int | None = None,
    **parameters: Any,
) -> Pruner:
    """
    Build a pruning method by name, as the paper configures it.

    :param name: One of `PRUNERS`.
    :param schedule: The model's schedule; only RaDiCal and random pruning need one.
    :param keep_ratio: `R`, in (0, 1]; default: the schedule's. `"dense"` needs none.
    :param depth: Number of decoder layers; needed by methods with layers of their own.
    :param parameters: The method's own parameters, such as `seed` for `"random"`.
    :raises ValueError: If the name is unknown, or something the method needs is missing.
    """
    method = pruner_type(name)
    if schedule is None and method.needs_schedule:
        raise ValueError(f"The pruner {name!r} needs a pruning schedule.")
    if keep_ratio is None:
        if schedule is None and method is not DensePruner:
            raise ValueError(f"The pruner {name!r} needs a keep ratio.")
        keep_ratio = schedule.keep_ratio if schedule is not None else 1.0
    return method.for_model(Setting(keep_ratio, depth, schedule), **parameters)


def pruner_type(name: str) -> type[Pruner]:
    """
    The class of a method.

    :param name: One of `PRUNERS`.
    :raises ValueError: If the name is unknown.
    """
    if name not in PRUNERS:
        raise ValueError(f"Unknown pruner {name!r}: choose one of {', '.join(sorted(PRUNERS))}.")
    return PRUNERS[name]


__all__ = [
    "BEFORE_DECODER",
    "PRUNERS",
    "CandidateImages",
    "CandidateTokens",
    "DARTPruner",
    "DensePruner",
    "DynResDTIPruner",
    "DynResQRelPruner",
    "FastVPruner",
    "ImagePruner",
    "InputPruner",
    "LayerObservation",
    "LowResPruner",
    "Pruner",
    "PyramidDropPruner",
    "QIEIPruner",
    "RadicalPruner",
    "RandomPruner",
    "Reduction",
    "ScorePruner",
    "Setting",
    "SparseVLMPruner",
    "StagedPruner",
    "VisionZipPruner",
    "build_pruner",
    "keep_count",
    "pruner_type",
    "split_count",
    "top_positions",
    "true_positions",
]
