# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Attention of a few rows, beside whatever attention kernel the model itself uses."""

import torch
from torch import Tensor

_MAX_WEIGHTS = 2**24
"""Attention weights held at once (64 MiB of float32); more rows than fit are computed in several parts."""


def row_attention(queries: Tensor, keys: Tensor, rows: Tensor, columns: Tensor, scaling: float) -> Tensor:
    """
    Causal attention from chosen rows to chosen columns, averaged over heads.

    The softmax runs over the whole visible sequence, so the returned columns of a row sum to at most 1. Memory grows
    with rows x sequence, never with the square of the sequence.

    :param queries: Queries of the rows, shape `(heads, R, head_dim)`, rotated.
    :param keys: Keys of the whole sequence, shape `(kv_heads, S, head_dim)`, rotated.
    :param rows: Position of each row in the sequence, shape `(R,)`: a row sees positions up to its own.
    :param columns: Positions whose weights are wanted, shape `(C,)`.
    :param scaling: Factor on the product of queries and keys.
    :returns: float32, shape `(R, C)`.
    """
    heads, _, head_dim = queries.shape
    kv_heads, length, _ = keys.shape
    # Heads that share a key head are stacked along the rows, so that keys are not repeated.
    grouped = queries.float().reshape(kv_heads, heads // kv_heads, -1, head_dim) * scaling
    transposed = keys.float().transpose(1, 2)
    hidden = torch.arange(length, device=rows.device) > rows[:, None]
    size = max(1, _MAX_WEIGHTS // (heads * length))
    parts = zip(grouped.split(size, dim=2), hidden.split(size), strict=True)
    return torch.cat([_mean_weights(part, transposed, mask, columns) for part, mask in parts])


def received_attention(queries: Tensor, keys: Tensor, scaling: float) -> Tensor:
    """
    How much attention each token receives from all tokens of a bidirectional layer, averaged over rows and heads.

    Memory is bounded as in `row_attention`.

    :param queries: Shape `(heads, S, head_dim)`, rotated.
    :param keys: Shape `(heads, S, head_dim)`, rotated.
    :param scaling: Factor on the product of queries and keys.
    :returns: float32, shape `(S,)`; sums to 1.
    """
    heads, length, _ = queries.shape
    transposed = keys.float().transpose(1, 2)
    size = max(1, _MAX_WEIGHTS // (heads * length))
    sums = [
        torch.matmul(part.float() * scaling, transposed).softmax(-1).sum(dim=(0, 1))
        for part in queries.split(size, dim=1)
    ]
    return torch.stack(sums).sum(dim=0) / (heads * length)


def _mean_weights(queries: Tensor, keys: Tensor, hidden: Tensor, columns: Tensor) -> Tensor:
    """Softmax of one part of the rows; `queries` `(kv_heads, group, r, head_dim)`, `keys` `(kv_heads, head_dim, S)`."""
    logits = torch.matmul(queries.flatten(1, 2), keys).unflatten(1, queries.shape[1:3])
    weights = logits.masked_fill_(hidden, -torch.inf).softmax(-1)
    return weights[..., columns].mean(dim=(0, 1))
