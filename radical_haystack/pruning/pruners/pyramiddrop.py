# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""PyramidDrop: stages that leave fewer and fewer tokens, by the attention of the last instruction token."""

from typing import Any

from torch import Tensor

from radical_haystack.pruning.pruners.base import LayerObservation, Setting, StagedPruner


class PyramidDropPruner(StagedPruner):
    """
    PyramidDrop (https://arxiv.org/abs/2410.17247): drops tokens in stages, ranked by the last instruction token.

    The last instruction token is the prompt's last one, as in the authors' inference code [choice]. They rank with the
    projections of the layer after a stage; here it is the stage's own last layer, as for all methods [choice].

    :param stages: Pruning layer to the share of all tokens left after it.
    """

    @classmethod
    def for_model(cls, setting: Setting, **parameters: Any) -> "PyramidDropPruner":
        """Layers 7, 15 and 23 of 36, leaving 1/2, 1/4 and `R`; no stage leaves less than `R` [choice]."""
        shares = {7: 0.5, 15: 0.25, 23: setting.keep_ratio}
        # Where two stages fall on one layer, the later one's share counts.
        stages = {setting.scaled(layer): max(share, setting.keep_ratio) for layer, share in shares.items()}
        return cls(stages, **parameters)

    def score(self, observation: LayerObservation) -> Tensor:
        """Attention from the prompt's last token, averaged over heads, shape `(T,)`."""
        return observation.attention("last")[0]
