# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The pruning method on tensors. Depends on torch only."""

from radical_haystack.pruning.ablations import ABLATIONS, Ablation
from radical_haystack.pruning.cost import DecoderShape, PrefillCost, prefill_cost
from radical_haystack.pruning.pruners import (
    PRUNERS,
    CandidateImages,
    CandidateTokens,
    DARTPruner,
    DensePruner,
    DynResDTIPruner,
    DynResQRelPruner,
    FastVPruner,
    ImagePruner,
    InputPruner,
    LayerObservation,
    LowResPruner,
    Pruner,
    PyramidDropPruner,
    QIEIPruner,
    RadicalPruner,
    RandomPruner,
    Reduction,
    ScorePruner,
    Setting,
    SparseVLMPruner,
    VisionZipPruner,
    build_pruner,
)
from radical_haystack.pruning.schedule import PruningSchedule, equal_keep
from radical_haystack.pruning.signals import (
    attention_info,
    cross_candidate_uniqueness,
    discriminative_token_importance,
    normalized_entropy,
    query_relevance,
    saliency,
    text_to_visual_distribution,
)
from radical_haystack.pruning.strategies import STRATEGIES, alpha_maximin, choose_layers
from radical_haystack.pruning.trust import fuse, trust_coefficients

__all__ = [
    "ABLATIONS",
    "PRUNERS",
    "STRATEGIES",
    "Ablation",
    "CandidateImages",
    "CandidateTokens",
    "DARTPruner",
    "DecoderShape",
    "DensePruner",
    "DynResDTIPruner",
    "DynResQRelPruner",
    "FastVPruner",
    "ImagePruner",
    "InputPruner",
    "LayerObservation",
    "LowResPruner",
    "PrefillCost",
    "Pruner",
    "PruningSchedule",
    "PyramidDropPruner",
    "QIEIPruner",
    "RadicalPruner",
    "RandomPruner",
    "Reduction",
    "ScorePruner",
    "Setting",
    "SparseVLMPruner",
    "VisionZipPruner",
    "alpha_maximin",
    "attention_info",
    "build_pruner",
    "choose_layers",
    "cross_candidate_uniqueness",
    "discriminative_token_importance",
    "equal_keep",
    "fuse",
    "normalized_entropy",
    "prefill_cost",
    "query_relevance",
    "saliency",
    "text_to_visual_distribution",
    "trust_coefficients",
]
