# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""LowRes: every image smaller, by the same ratio."""

from radical_haystack.pruning.pruners.base import CandidateImages, ImagePruner


class LowResPruner(ImagePruner):
    """
    The plain alternative to pruning: smaller images (baseline of arXiv 2609.00667).

    Every image is scaled to `R` times the pixels it would be encoded with, not only those above a limit, so that the
    budget holds for images of any size [choice].

    :param keep_ratio: `R`, an image's pixels after resizing, relative to those before, in (0, 1].
    """

    def token_targets(self, images: CandidateImages) -> list[float]:
        """`R` times each image's tokens."""
        return [self.keep_ratio * size for size in images.sizes]
