# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""DynRes: smaller images, but less so for candidates that matter more."""

from abc import abstractmethod

import torch
from torch import Tensor

from radical_haystack.pruning.pruners.base import CandidateImages, CandidateTokens, ImagePruner
from radical_haystack.pruning.signals import discriminative_token_importance, query_relevance


class DynResPruner(ImagePruner):
    """
    Dynamic resolution (baseline of arXiv 2609.00667): pixels per candidate, linear in the candidate's own score.

    Scores are means over the candidate's tokens at full size [choice], min-max normalised over the candidates. The
    ratio of a candidate with score `w` is `R + spread * (w - mean)`, the mean weighted by size, so that the total is
    `R`; the spread is the largest for which no candidate falls below `R / 2` or is enlarged [choice].

    :param keep_ratio: `R`, all candidates' pixels after resizing, relative to those before, in (0, 1].
    """

    @abstractmethod
    def token_scores(self, candidates: CandidateTokens) -> Tensor:
        """
        Score the tokens by which candidates are compared.

        :param candidates: The candidates at full size.
        :returns: Shape `(V,)`, float32.
        """

    def token_targets(self, images: CandidateImages) -> list[float]:
        """Tokens in proportion to the candidates' ratios; they sum to `R` times all tokens."""
        if self.keep_ratio == 1:
            return [float(size) for size in images.sizes]
        candidates = images.encode()
        scores = self.token_scores(candidates).split(images.sizes)
        weights = _min_max(torch.stack([candidate.mean() for candidate in scores]).tolist())
        mean = sum(w * size for w, size in zip(weights, images.sizes, strict=True)) / sum(images.sizes)
        spread = min(self.keep_ratio / 2 / mean, (1 - self.keep_ratio) / (1 - mean)) if 0 < mean < 1 else 0.0
        return [size * (self.keep_ratio + spread * (w - mean)) for w, size in zip(weights, images.sizes, strict=True)]


class DynResQRelPruner(DynResPruner):
    """Dynamic resolution by relevance to the query."""

    def token_scores(self, candidates: CandidateTokens) -> Tensor:
        """QRel."""
        return query_relevance(candidates.tokens, candidates.query_embedding)


class DynResDTIPruner(DynResPruner):
    """Dynamic resolution by discriminative token importance."""

    def token_scores(self, candidates: CandidateTokens) -> Tensor:
        """DTI."""
        return discriminative_token_importance(
            candidates.tokens, candidates.query_embedding, candidate_index=candidates.candidate_index
        )


def _min_max(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 1.0 for value in values]
