# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Ways of choosing pruning layers from trust coefficients: alpha-Maximin and those it is compared with.

All of them look at how `H_norm` changes over the layers and at nothing else; the trust coefficient is `H_norm` up to
scale and offset, so it serves all of them.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

Alphas = Sequence[float] | Mapping[int, float]
"""Trust coefficients: a sequence (the position is the layer) or a mapping from layer to alpha."""

Strategy = Callable[[Alphas, int, int, int], list[int]]
"""Called with alphas, `k`, `gap` and a seed; gives `k` layers, ascending, or all of them if there are fewer."""


def alpha_maximin(alphas: Alphas, k: int = 4, gap: int = 2) -> list[int]:
    """
    Choose pruning layers whose trust coefficients are spread as widely as possible.

    Starts from the layer with the smallest alpha, then repeatedly adds the layer that maximises the smallest alpha
    difference to those chosen, among layers at least `gap` away from all of them. If no such layer is left, the gap is
    ignored for that pick. Ties go to the shallower layer [choice].

    :param alphas: Trust coefficients of the layers to choose from.
    :param k: How many layers to choose; all of them are returned if there are fewer.
    :param gap: Least distance between two chosen layers, in layers.
    :returns: The chosen layers, ascending.
    :raises ValueError: If there are no alphas, one is not a finite number, or `k` is below 1.
    """
    by_layer = _by_layer(alphas, k)

    def spread(layer: int) -> float:
        # Rounded, so that a tie on paper (0.6 - 0.4 and 0.4 - 0.2) is a tie here.
        return round(min(abs(by_layer[layer] - by_layer[other]) for other in chosen), 9)

    # `min` and `max` return the first of equals, and the layers ascend: the shallower one wins.
    chosen = [min(by_layer, key=by_layer.__getitem__)]
    while len(chosen) < min(k, len(by_layer)):
        rest = [layer for layer in by_layer if layer not in chosen]
        apart = [layer for layer in rest if all(abs(layer - other) >= gap for other in chosen)]
        chosen.append(max(apart or rest, key=spread))
    return sorted(chosen)


def even(alphas: Alphas, k: int = 4) -> list[int]:
    """
    Evenly spaced layers: the middles of `k` equal parts (RaDiCal without alpha-Maximin).

    :param alphas: See `alpha_maximin`; only the layers matter.
    :param k: See `alpha_maximin`.
    """
    layers = list(_by_layer(alphas, k))
    count = min(k, len(layers))
    return [layers[(2 * part + 1) * len(layers) // (2 * count)] for part in range(count)]


def cumulative_information(alphas: Alphas, k: int = 4) -> list[int]:
    """
    Split the sum of `1 - H_norm` into `k` equal parts and take the layer in the middle of each [choice].

    A layer that holds several middles counts once; the next layers stand in for it [choice]. If attention is uniform
    everywhere, there is nothing to split and the layers are evenly spaced.

    :param alphas: See `alpha_maximin`.
    :param k: See `alpha_maximin`.
    """
    by_layer = _by_layer(alphas, k)
    layers, count = list(by_layer), min(k, len(by_layer))
    information = [1 - alpha for alpha in by_layer.values()]
    total = math.fsum(information)
    if total <= 0:
        return even(alphas, k)
    chosen: list[int] = []
    for part in range(count):
        middle = (part + 0.5) / count * total
        reached = [place for place in range(len(layers)) if math.fsum(information[: place + 1]) >= middle * (1 - 1e-12)]
        first = max(reached[0], chosen[-1] + 1 if chosen else 0)
        # Enough layers must be left for the parts to come.
        chosen.append(min(first, len(layers) - count + part))
    return [layers[place] for place in chosen]


def max_gradient(alphas: Alphas, k: int = 4, gap: int = 2) -> list[int]:
    """
    The layers at which `H_norm` differs most from the layer before, at least `gap` apart while that is possible.

    :param alphas: See `alpha_maximin`. The first layer has none before it and counts as unchanged [choice].
    :param k: See `alpha_maximin`.
    :param gap: See `alpha_maximin`.
    """
    values = list(_by_layer(alphas, k).items())
    change = {layer: round(abs(alpha - before), 9) for (_, before), (layer, alpha) in pairwise(values)}
    return _best_apart({values[0][0]: 0.0, **change}, k, gap)


def alpha_quantile(alphas: Alphas, k: int = 4) -> list[int]:
    """
    The layers at `k` evenly spaced quantiles of the trust coefficients, from the smallest to the largest.

    :param alphas: See `alpha_maximin`.
    :param k: See `alpha_maximin`; a single layer is the sharpest one.
    """
    by_layer = _by_layer(alphas, k)
    ranked = sorted(by_layer, key=lambda layer: (by_layer[layer], layer))
    count = min(k, len(ranked))
    steps = max(1, count - 1)
    return sorted(ranked[(2 * part * (len(ranked) - 1) + steps) // (2 * steps)] for part in range(count))


def deep_only(alphas: Alphas, k: int = 4, gap: int = 2) -> list[int]:
    """
    alpha-Maximin without its shallow pick: among the deeper half of the layers, or the deepest `k` [choice].

    :param alphas: See `alpha_maximin`.
    :param k: See `alpha_maximin`.
    :param gap: See `alpha_maximin`.
    """
    by_layer = _by_layer(alphas, k)
    deep = list(by_layer)[-max(math.ceil(len(by_layer) / 2), min(k, len(by_layer))) :]
    return alpha_maximin({layer: by_layer[layer] for layer in deep}, k, gap)


def local_extrema(alphas: Alphas, k: int = 4, gap: int = 2) -> list[int]:
    """
    The most pronounced local minima and maxima of `H_norm`, at least `gap` apart while that is possible.

    How pronounced a layer is: the distance of its alpha from the mean of its neighbours'. If there are not enough
    extrema, the other layers follow in the same order [choice].

    :param alphas: See `alpha_maximin`. The first and the last layer are no extrema.
    :param k: See `alpha_maximin`.
    :param gap: See `alpha_maximin`.
    """
    by_layer = _by_layer(alphas, k)
    layers, values = list(by_layer), list(by_layer.values())
    rank = dict.fromkeys(layers, 0.0)
    for place in range(1, len(layers) - 1):
        before, here, after = values[place - 1 : place + 2]
        is_extremum = (here - before) * (here - after) > 0
        # No distance exceeds 1: every extremum comes before all other layers.
        rank[layers[place]] = round(abs(here - (before + after) / 2), 9) + 2 * is_extremum
    return _best_apart(rank, k, gap)


def random_layers(alphas: Alphas, k: int = 4, seed: int = 0) -> list[int]:
    """
    Any layers.

    :param alphas: See `alpha_maximin`; only the layers matter.
    :param k: See `alpha_maximin`.
    :param seed: Equal seeds choose equal layers.
    """
    layers = list(_by_layer(alphas, k))
    return sorted(random.Random(seed).sample(layers, min(k, len(layers))))


STRATEGIES: dict[str, Strategy] = {
    "alpha-maximin": lambda alphas, k, gap, seed: alpha_maximin(alphas, k, gap),
    "cumulative-information": lambda alphas, k, gap, seed: cumulative_information(alphas, k),
    "max-gradient": lambda alphas, k, gap, seed: max_gradient(alphas, k, gap),
    "alpha-quantile": lambda alphas, k, gap, seed: alpha_quantile(alphas, k),
    "deep-only": lambda alphas, k, gap, seed: deep_only(alphas, k, gap),
    "local-extrema": lambda alphas, k, gap, seed: local_extrema(alphas, k, gap),
    "even": lambda alphas, k, gap, seed: even(alphas, k),
    "random": lambda alphas, k, gap, seed: random_layers(alphas, k, seed),
}
"""Each strategy by name."""


def choose_layers(strategy: str, alphas: Alphas, k: int = 4, gap: int = 2, seed: int = 0) -> list[int]:
    """
    Choose pruning layers by a strategy's name.

    :param strategy: One of `STRATEGIES`.
    :param alphas: See `alpha_maximin`.
    :param k: See `alpha_maximin`.
    :param gap: See `alpha_maximin`; strategies that space layers in their own way pass over it.
    :param seed: For `"random"`.
    :raises ValueError: If the name is unknown, or see `alpha_maximin`.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"Unknown layer strategy {strategy!r}: choose one of {', '.join(sorted(STRATEGIES))}.")
    return STRATEGIES[strategy](alphas, k, gap, seed)


def _by_layer(alphas: Alphas, k: int) -> dict[int, float]:
    """Checked coefficients by layer, shallow layers first."""
    items = alphas.items() if isinstance(alphas, Mapping) else enumerate(alphas)
    by_layer = {int(layer): float(alpha) for layer, alpha in sorted(items)}
    if not by_layer:
        raise ValueError("Choosing pruning layers needs at least one layer.")
    for layer, alpha in by_layer.items():
        if not math.isfinite(alpha):
            raise ValueError(f"The trust coefficient of layer {layer} must be a finite number, not {alpha}.")
    if k < 1:
        raise ValueError(f"The number of pruning layers must be at least 1, not {k}.")
    return by_layer


def _best_apart(rank: Mapping[int, float], k: int, gap: int) -> list[int]:
    """The `k` layers of highest rank; the gap rule and ties are those of alpha-Maximin."""
    chosen: list[int] = []
    while len(chosen) < min(k, len(rank)):
        rest = [layer for layer in rank if layer not in chosen]
        apart = [layer for layer in rest if all(abs(layer - other) >= gap for other in chosen)]
        chosen.append(max(apart or rest, key=rank.__getitem__))
    return sorted(chosen)
