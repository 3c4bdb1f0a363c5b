# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""VisionZip: the tokens the vision encoder itself looks at, and averages of the rest."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from radical_haystack.pruning.pruners.base import (
    CandidateTokens,
    InputPruner,
    Reduction,
    keep_count,
    split_count,
    top_positions,
    true_positions,
)

_CONTEXTUAL_SHARE = 10 / 64
"""Of the kept tokens; the authors keep 54 dominant and 10 contextual ones in the smallest of their settings."""


class VisionZipPruner(InputPruner):
    """
    VisionZip (https://arxiv.org/abs/2412.04467): dominant tokens stay, the others are merged into contextual ones.

    Per image: dominant are the tokens that receive most attention in the encoder. Of the others, evenly spaced ones
    become contextual tokens, each the mean of itself and of the tokens that resemble it more than any other contextual
    one. Tokens are compared by cosine after the merger, where the authors compare the encoder's keys [choice]. Merged
    tokens stand at the position of the contextual token, and the features that the decoder adds later are averaged
    likewise [choice]. The budget is shared out in proportion to the images' sizes; an image that keeps two tokens or
    more has a contextual one [choice].

    :param keep_ratio: `R`, the share of each image's tokens that enters the decoder, in (0, 1].
    """

    needs_encoder_attention: ClassVar[bool] = True

    def reduce(self, candidates: CandidateTokens) -> Reduction:
        """
        Dominant and contextual tokens of each image.

        :raises ValueError: If the encoder's attention is not known.
        """
        if candidates.encoder_attention is None:
            raise ValueError("VisionZip needs the attention that tokens receive in the vision encoder.")
        sizes = candidates.sizes
        counts = split_count(keep_count(self.keep_ratio, len(candidates.tokens)), sizes)
        tokens, attention = candidates.tokens.split(sizes), candidates.encoder_attention.split(sizes)
        kept, merged, start, place = [], [], 0, 0
        for image, received, count in zip(tokens, attention, counts, strict=True):
            stays, into = _zip(image, received, count)
            kept.append(stays + start)
            merged.append(torch.where(into < 0, -1, into + place))
            start, place = start + len(image), place + count
        return Reduction(torch.cat(kept), torch.cat(merged))


def _zip(tokens: Tensor, attention: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The kept positions of one image, ascending, and for each of its tokens the place of that it is averaged into."""
    contextual = min(max(1, round(count * _CONTEXTUAL_SHARE)), count - 1) if count else 0
    dominant = top_positions(attention, count - contextual)
    others = len(tokens) - len(dominant)
    rest = true_positions(torch.ones_like(attention, dtype=torch.bool).index_fill_(0, dominant, False), others)
    targets = rest[torch.arange(contextual, device=rest.device) * others // max(1, contextual)]
    kept = torch.cat([dominant, targets]).sort().values
    into = rest.new_full((len(tokens),), -1)
    if contextual:
        unit = F.normalize(tokens.float(), dim=-1)
        nearest = (unit[rest] @ unit[targets].T).argmax(dim=1)
        into[rest] = torch.searchsorted(kept, targets[nearest])
    into[kept] = torch.arange(count, device=kept.device)
    return kept, into
