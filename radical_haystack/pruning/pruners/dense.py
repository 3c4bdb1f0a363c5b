# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""No pruning at all: the dense reference."""

from dataclasses import dataclass

import torch
from torch import Tensor

from radical_haystack.pruning.pruners.base import LayerObservation, Pruner


@dataclass(frozen=True)
class DensePruner(Pruner):
    """Keeps every token."""

    @property
    def layers(self) -> tuple[int, ...]:
        """None."""
        return ()

    def select(self, observation: LayerObservation) -> Tensor:
        """All positions, shape `(T,)`."""
        return torch.arange(observation.active.numel(), device=observation.active.device)
