# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Pictures of what a ranking did, as Matplotlib figures (extra `viz`).

Every function returns a figure of its own, made without pyplot: nothing is shown, no display is needed, and no global
setting is read or changed. Save it with `save_figure`, or let a notebook show it. Masks and dimmed images
(`token_masks`, `dimmed`) need no Matplotlib.
"""

from radical_haystack.viz.budget import token_budget
from radical_haystack.viz.curves import curves
from radical_haystack.viz.figures import check_picture_path, require_matplotlib, save_figure
from radical_haystack.viz.masks import TokenMask, dimmed, masks_from_indices, pruning_layers, token_masks
from radical_haystack.viz.profile import alpha_curve, entropy_profile
from radical_haystack.viz.reliability import reliability_curve
from radical_haystack.viz.retention import layer_retention, retention_overlay
from radical_haystack.viz.tradeoff import pareto

__all__ = [
    "TokenMask",
    "alpha_curve",
    "check_picture_path",
    "curves",
    "dimmed",
    "entropy_profile",
    "layer_retention",
    "masks_from_indices",
    "pareto",
    "pruning_layers",
    "reliability_curve",
    "require_matplotlib",
    "retention_overlay",
    "save_figure",
    "token_budget",
    "token_masks",
]
