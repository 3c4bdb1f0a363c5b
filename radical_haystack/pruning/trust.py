# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How far attention is trusted at a layer, and how the two signals are combined accordingly."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from radical_haystack.pruning.signals import FLAT

EPS = 1e-6
"""Floor of both signals in the fusion [choice]: a zero in one of them must not silence the other."""


def trust_coefficients(entropies: Sequence[float] | Tensor) -> list[float]:
    """
    `alpha(l) = (H_norm(l) - H_min) / (1 - H_min)` (eq. 5): 0 at the sharpest layer, 1 at uniform attention.

    If attention is uniform at every layer, alpha is 1 everywhere: there is nothing to trust. A profile that is equally
    sharp everywhere gives 0 everywhere, as the formula says.

    :param entropies: `H_norm` of each decoder layer in [0, 1], averaged over a few query-candidate sets.
    :returns: One coefficient in [0, 1] for each layer.
    :raises ValueError: If there is no entropy or one is outside [0, 1].
    """
    values = [float(entropy) for entropy in entropies]
    if not values:
        raise ValueError("Trust coefficients need the entropy of at least one layer.")
    for layer, value in enumerate(values):
        if not 0 <= value <= 1:
            raise ValueError(f"The normalised entropy of layer {layer} must be in [0, 1], not {value}.")
    low = min(values)
    if 1 - low <= FLAT:
        return [1.0] * len(values)
    return [(value - low) / (1 - low) for value in values]


def fuse(
    dti: Tensor,
    saliency: Tensor,
    alpha: float,
    *,
    eps: float = EPS,
    mean: Literal["geometric", "arithmetic"] = "geometric",
) -> Tensor:
    """
    `f = max(d_hat, eps)^alpha * max(s_hat, eps)^(1 - alpha)` (eq. 6), computed in log space and float32.

    The arithmetic mean it is compared with is `alpha * d_hat + (1 - alpha) * s_hat`.

    :param dti: Discriminative token importance of the active tokens, normalised to [0, 1], shape `(T,)`.
    :param saliency: Normalised attention information of the same tokens, shape `(T,)`.
    :param alpha: Trust coefficient in [0, 1]: 0 is pure attention, 1 pure DTI.
    :param eps: Floor of both signals, above 0.
    :param mean: How the signals are combined: the paper's geometric mean, or the arithmetic one.
    :returns: Shape `(T,)`, float32, positive.
    :raises ValueError: If the shapes differ, alpha is outside [0, 1], eps is not positive or the mean is unknown.
    """
    if dti.shape != saliency.shape:
        raise ValueError(f"DTI has shape {tuple(dti.shape)}, but saliency has {tuple(saliency.shape)}.")
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be in [0, 1], not {alpha}.")
    if not eps > 0:
        raise ValueError(f"eps must be positive, not {eps}.")
    if mean not in ("geometric", "arithmetic"):
        raise ValueError(f"Unknown mean {mean!r}: use 'geometric' or 'arithmetic'.")
    floored = [signal.float().clamp_min(eps) for signal in (dti, saliency)]
    if mean == "arithmetic":
        return alpha * floored[0] + (1 - alpha) * floored[1]
    log_dti, log_saliency = (signal.log() for signal in floored)
    return torch.exp(alpha * log_dti + (1 - alpha) * log_saliency)
