# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The two signals of RaDiCal (arXiv 2609.00667): discriminative token importance and attention information."""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Uniqueness = Literal["prototype", "exact"]

FLAT = 1e-6
"""A spread of cosines, or of log-ratios to the uniform baseline, below this is rounding noise and counts as none."""


def cross_candidate_uniqueness(
    tokens: Tensor, candidate_index: Tensor | None = None, *, method: Uniqueness = "prototype", chunk: int = 1024
) -> Tensor:
    """
    How little a token resembles what the candidates have in common: `CCU(t) = 1 - cos(t, reference)`.

    The reference is the L2-normalised mean of all tokens (`"prototype"`, O(V d), the paper's choice), or the most
    similar token of any *other* candidate (`"exact"`, O(V^2 d) time, O(V (chunk + d)) memory).

    :param tokens: Candidate tokens, shape `(V, d)`, any floating dtype; computed in float32.
    :param candidate_index: The candidate of each token, shape `(V,)`, integers; needed by `"exact"` only.
    :param method: `"prototype"` or `"exact"`.
    :param chunk: Tokens compared with all others at a time in the exact variant.
    :returns: Shape `(V,)`, float32, in [0, 2]. With a single candidate the exact variant is 1 everywhere: there is
        nothing a token could resemble.
    :raises ValueError: For an unknown method, wrong shapes, or a missing candidate index.
    """
    _check_tokens(tokens, candidate_index)
    if method == "prototype":
        return 1 - _cosine(tokens, tokens.float().mean(dim=0))
    if method != "exact":
        raise ValueError(f"Unknown uniqueness method {method!r}: use 'prototype' or 'exact'.")
    if candidate_index is None:
        raise ValueError("The exact uniqueness needs candidate_index to know which tokens belong to other candidates.")
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1, not {chunk}.")
    unit = F.normalize(tokens.float(), dim=-1)
    nearest = [
        (part @ unit.T).masked_fill_(owner[:, None] == candidate_index, -math.inf).amax(dim=-1)
        for part, owner in zip(unit.split(chunk), candidate_index.split(chunk), strict=True)
    ]
    similarity = torch.cat(nearest) if nearest else unit.new_zeros(0)
    return 1 - similarity.masked_fill(similarity.isneginf(), 0.0).clamp(-1, 1)


def query_relevance(tokens: Tensor, query_embedding: Tensor) -> Tensor:
    """
    How well a token fits the query: `QRel(t) = max(cos(t, q_emb), 0)`.

    :param tokens: Candidate tokens, shape `(V, d)`.
    :param query_embedding: Query embedding in the same space, shape `(d,)`.
    :returns: Shape `(V,)`, float32, in [0, 1].
    :raises ValueError: If the shapes do not fit.
    """
    _check_tokens(tokens, None)
    if query_embedding.shape != tokens.shape[1:]:
        raise ValueError(
            f"The query embedding has shape {tuple(query_embedding.shape)}, "
            f"but the tokens' embeddings have {tokens.shape[1]} dimensions."
        )
    return _cosine(tokens, query_embedding).clamp_min(0)


def discriminative_token_importance(
    tokens: Tensor,
    query_embedding: Tensor,
    *,
    uniqueness: Uniqueness | None = "prototype",
    relevance: bool = True,
    candidate_index: Tensor | None = None,
    chunk: int = 1024,
) -> Tensor:
    """
    `DTI = CCU * QRel` (eq. 3), min-max normalised over the whole query-candidate set.

    CCU says nothing for a single candidate or for tokens that are all equal; `QRel` alone is used then (the paper's
    "-CCU" variant). If even that is the same for every token, DTI is 1 everywhere: no preference [choice].

    :param tokens: Candidate tokens from the vision encoder, after the merger, shape `(V, d)`.
    :param query_embedding: Query embedding in the same space, shape `(d,)`.
    :param uniqueness: `"prototype"`, `"exact"`, or `None` for `QRel` alone.
    :param relevance: `False` for `CCU` alone.
    :param candidate_index: The candidate of each token, shape `(V,)`; needed by `"exact"`, and lets the other variant
        recognise a single candidate.
    :param chunk: See `cross_candidate_uniqueness`.
    :returns: Shape `(V,)`, float32, in [0, 1], never NaN.
    :raises ValueError: For an unknown method, wrong shapes, a missing candidate index, or if both signals are left out.
    """
    if uniqueness is None and not relevance:
        raise ValueError("DTI needs uniqueness or relevance; both are left out.")
    query = query_relevance(tokens, query_embedding)
    if uniqueness is None or query.numel() == 0:
        return _min_max(query, flat=FLAT)
    unique = cross_candidate_uniqueness(tokens, candidate_index, method=uniqueness, chunk=chunk)
    uninformative = unique.amax() - unique.amin() <= FLAT
    if candidate_index is not None:
        uninformative = uninformative | (candidate_index == candidate_index[0]).all()
    # A `where` rather than an `if`: the device is never waited for.
    return _min_max(torch.where(uninformative, query, unique * query if relevance else unique), flat=FLAT)


def text_to_visual_distribution(attention: Tensor) -> Tensor:
    """
    The mean text-to-visual attention distribution `p` (eq. 1): rows renormalised over the columns, then averaged.

    Rows without any mass on the columns say nothing and are left out of the mean; if no row has any, `p` is uniform
    [choice].

    :param attention: Attention from text rows to the active candidate tokens, averaged over heads, non-negative, shape
        `(rows, T)`.
    :returns: Shape `(T,)`, float32, sums to 1.
    :raises ValueError: If `attention` is not a matrix.
    """
    if attention.ndim != 2:
        raise ValueError(f"attention must have shape (rows, T), not {tuple(attention.shape)}.")
    attention = attention.float()
    mass = attention.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
    summed = (attention / mass).sum(dim=0)
    total = summed.sum()
    # Every row that counts adds exactly 1 to the total, so dividing by it averages over those rows.
    return torch.where(total > 0, summed / total, 1 / max(1, summed.numel()))


def normalized_entropy(p: Tensor) -> Tensor:
    """
    `H_norm = -sum p log p / log T` (eq. 2): 1 for uniform attention, 0 for all attention on one token.

    A single token is uniform and sharp at once; it counts as uniform, 1, because attention cannot rank it [choice].

    :param p: A distribution over the `T` active tokens, shape `(T,)`.
    :returns: A 0-d float32 tensor in [0, 1].
    """
    p = p.float()
    if p.numel() <= 1:
        return p.new_ones(())
    return (-torch.xlogy(p, p).sum() / math.log(p.numel())).clamp(0, 1)


def signed_attention_info(p: Tensor) -> Tensor:
    """
    `p_i log(T p_i)`: the share of KL(p || uniform) that token `i` carries, negative below the uniform baseline.

    The terms sum to `(1 - H_norm) log T` (eq. 9-11).

    :param p: A distribution over the `T` active tokens, shape `(T,)`.
    :returns: Shape `(T,)`, float32.
    """
    p = p.float()
    return torch.xlogy(p, p.numel() * p)


def attention_info(p: Tensor) -> Tensor:
    """
    `AttInfo_i = max(p_i log(T p_i), 0)` (eq. 4, 12): positive only above the uniform baseline.

    :param p: A distribution over the `T` active tokens, shape `(T,)`.
    :returns: Shape `(T,)`, float32, non-negative.
    """
    return signed_attention_info(p).clamp_min(0)


def saliency(p: Tensor) -> Tensor:
    """
    `s_hat`: attention information, min-max normalised over the active tokens.

    :param p: A distribution over the `T` active tokens, shape `(T,)`.
    :returns: Shape `(T,)`, float32, in [0, 1]; `1/T` everywhere if no token stands out from the uniform baseline.
    """
    total = max(1, p.numel())
    return _min_max(attention_info(p), flat=FLAT / total, fallback=1 / total)


def _check_tokens(tokens: Tensor, candidate_index: Tensor | None) -> None:
    if tokens.ndim != 2:
        raise ValueError(f"tokens must have shape (V, d), not {tuple(tokens.shape)}.")
    if candidate_index is not None and candidate_index.shape != tokens.shape[:1]:
        raise ValueError(
            f"candidate_index must name one candidate for each of the {tokens.shape[0]} tokens, "
            f"but has shape {tuple(candidate_index.shape)}."
        )


def _cosine(tokens: Tensor, direction: Tensor) -> Tensor:
    """Cosine of each token with one vector, shape `(V,)`; 0 where either has no length."""
    tokens = tokens.float()
    lengths = tokens.norm(dim=-1).clamp_min(torch.finfo(torch.float32).tiny)
    return (tokens @ F.normalize(direction.float(), dim=0) / lengths).clamp(-1, 1)


def _min_max(values: Tensor, *, flat: float, fallback: float = 1.0) -> Tensor:
    """Scale to [0, 1]; `fallback` everywhere if the values spread by no more than `flat`."""
    if values.numel() == 0:
        return values
    low, high = values.aminmax()
    spread = high - low
    return torch.where(spread > flat, (values - low) / spread.clamp_min(torch.finfo(torch.float32).tiny), fallback)
