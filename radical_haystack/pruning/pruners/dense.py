# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""No pruning at all: the dense reference."""

from radical_haystack.pruning.pruners.base import Pruner


class DensePruner(Pruner):
    """Keeps every token."""
