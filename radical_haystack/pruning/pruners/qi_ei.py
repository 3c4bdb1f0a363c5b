# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""QI-EI: the early interaction of query and image that ZipRerank prunes by."""

import torch
import torch.nn.functional as F

from radical_haystack.pruning.pruners.base import (
    CandidateTokens,
    InputPruner,
    Reduction,
    keep_count,
    split_count,
    top_positions,
)


class QIEIPruner(InputPruner):
    """
    Query-image early interaction of ZipRerank (https://arxiv.org/abs/2605.11864), without its training.

    Keeps of every image the tokens with the largest cosine to any of the query's tokens. The budget is shared out in
    proportion to the images' sizes, so that it holds over all of them together [choice].

    :param keep_ratio: `R`, the share of each image's tokens that enters the decoder, in (0, 1].
    """

    def reduce(self, candidates: CandidateTokens) -> Reduction:
        """
        The best tokens of each image.

        :raises ValueError: If the query has no tokens.
        """
        if not len(candidates.query_tokens):
            raise ValueError("QI-EI compares images with the query's tokens, but the prompt names none.")
        query = F.normalize(candidates.query_tokens.float(), dim=-1)
        similarity = (F.normalize(candidates.tokens.float(), dim=-1) @ query.T).amax(dim=1)
        counts = split_count(keep_count(self.keep_ratio, len(similarity)), candidates.sizes)
        parts = [top_positions(*image) for image in zip(similarity.split(candidates.sizes), counts, strict=True)]
        starts = torch.tensor((0, *candidates.sizes)).cumsum(0).tolist()
        return Reduction(torch.cat([part + start for part, start in zip(parts, starts[:-1], strict=True)]))
