# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Property tests on a busy machine: no deadlines, the same examples in every run."""

from hypothesis import settings

settings.register_profile("pruning", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("pruning")
