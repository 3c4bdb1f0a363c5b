# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""FastV: one cut after an early layer, by the attention of the prompt's last token."""

from typing import Any

from torch import Tensor

from radical_haystack.pruning.pruners.base import LayerObservation, Setting, StagedPruner


class FastVPruner(StagedPruner):
    """
    FastV (https://arxiv.org/abs/2403.06764): keeps the tokens that the last text token attends to most.

    The original cuts at an early layer because attention to images is sparse from there on; it was made for one image
    and one question.

    :param stages: The pruning layer and the share of tokens left after it, such as `{2: 0.2}`.
    """

    @classmethod
    def for_model(cls, setting: Setting, **parameters: Any) -> "FastVPruner":
        """Layer 2 of 36, keeping `R`."""
        return cls({setting.scaled(2): setting.keep_ratio}, **parameters)

    def score(self, observation: LayerObservation) -> Tensor:
        """Attention from the prompt's last token, averaged over heads, shape `(T,)`."""
        return observation.attention("last")[0]
