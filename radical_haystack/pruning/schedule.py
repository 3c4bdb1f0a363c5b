# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Where to prune, how much, and how far to trust attention there: one immutable schedule per model."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace

from radical_haystack.pruning.strategies import choose_layers
from radical_haystack.pruning.trust import trust_coefficients

_PUBLISHED = {"qwen3-vl-4b-instruct": ((7, 22, 24, 29), (0.84, 0.43, 0.22, 0.0))}
_PUBLISHED_LAYERS_ONLY = {"qwen3-vl-8b-instruct": (4, 7, 21, 29), "internvl2_5-8b": (8, 22, 25, 27)}


def equal_keep(layers: Sequence[int], keep_ratio: float) -> dict[int, float]:
    """
    The share of the active tokens that stays after each of `K` pruning layers so that `R` remain: `R^(1/K)` (eq. 7).

    :param layers: The pruning layers, 0-based.
    :param keep_ratio: `R`, the share of the candidates' tokens that remains in the end, in (0, 1].
    :returns: A mapping from layer to share.
    :raises ValueError: If the layers are not ascending non-negative integers or `R` is outside (0, 1].
    """
    check_layers(layers)
    check_keep_ratio(keep_ratio)
    return {layer: keep_ratio ** (1 / len(layers)) for layer in layers}


def check_layers(layers: Sequence[int]) -> None:
    """
    Refuse layers that are not strictly ascending non-negative integers.

    :raises ValueError: If they are not.
    """
    whole = all(isinstance(layer, int) and not isinstance(layer, bool) and layer >= 0 for layer in layers)
    if not whole or sorted(set(layers)) != list(layers):
        raise ValueError(f"Pruning layers must be ascending non-negative integers without repeats, not {list(layers)}.")


def check_keep_ratio(keep_ratio: float) -> None:
    """
    Refuse a keep ratio outside (0, 1].

    :raises ValueError: If it is outside.
    """
    if not 0 < keep_ratio <= 1:
        raise ValueError(f"The keep ratio must be in (0, 1], not {keep_ratio}.")


@dataclass(frozen=True)
class PruningSchedule:
    """
    The pruning layers of a model with their trust coefficients, and the share of tokens to keep.

    :param layers: Pruning layers, 0-based, ascending.
    :param alphas: Trust coefficient of each pruning layer, in [0, 1].
    :param keep_ratio: `R`, the share of the candidates' visual tokens that remains after the last one, in (0, 1].
    :param model: The model it was made for.
    :param entropies: `H_norm` of every decoder layer it was made from, if known.
    :raises ValueError: If a value is out of range or the lengths differ.
    """

    layers: tuple[int, ...]
    alphas: tuple[float, ...]
    keep_ratio: float
    model: str | None = None
    entropies: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("layers", "alphas", "entropies"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        if not self.layers:
            raise ValueError("A pruning schedule needs at least one layer.")
        check_layers(self.layers)
        check_keep_ratio(self.keep_ratio)
        if len(self.alphas) != len(self.layers):
            raise ValueError(
                f"A pruning schedule needs one trust coefficient per layer: "
                f"{len(self.layers)} layers, but {len(self.alphas)} coefficients."
            )
        for layer, alpha in zip(self.layers, self.alphas, strict=True):
            if not 0 <= alpha <= 1:
                raise ValueError(f"The trust coefficient of layer {layer} must be in [0, 1], not {alpha}.")

    @property
    def per_layer_keep(self) -> float:
        """The share of the active tokens that stays after each pruning layer, `R^(1/K)` (eq. 7)."""
        return self.keep_ratio ** (1 / len(self.layers))

    def with_keep_ratio(self, keep_ratio: float) -> "PruningSchedule":
        """
        The same layers and trust coefficients with another keep ratio.

        :param keep_ratio: `R`, in (0, 1].
        """
        return replace(self, keep_ratio=keep_ratio)

    def to_json(self) -> str:
        """The schedule as a JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "PruningSchedule":
        """
        Read what `to_json` wrote.

        :param text: A JSON object with the fields of this class.
        :raises ValueError: If it is not such an object.
        """
        try:
            return cls(**json.loads(text))
        except (TypeError, json.JSONDecodeError) as error:
            known = ", ".join(field.name for field in fields(cls))
            raise ValueError(f"A pruning schedule is a JSON object with the fields {known}: {error}.") from error

    @classmethod
    def published(cls, model_name: str, keep_ratio: float = 0.2) -> "PruningSchedule":
        """
        The schedule the paper publishes for a model: layers and trust coefficients.

        Only Qwen3-VL-4B-Instruct has one. For Qwen3-VL-8B-Instruct and InternVL2_5-8B the paper gives the layers
        without the coefficients, and without those the two signals cannot be fused.

        :param model_name: A hub name or folder; only its last part matters, in any case.
        :param keep_ratio: `R`, in (0, 1].
        :raises LookupError: If the paper publishes no complete schedule for this model.
        """
        key = model_name.rstrip("/").rsplit("/", 1)[-1].lower()
        if key in _PUBLISHED:
            layers, alphas = _PUBLISHED[key]
            return cls(layers, alphas, keep_ratio, model=model_name)
        if key in _PUBLISHED_LAYERS_ONLY:
            raise LookupError(
                f"The paper publishes only the pruning layers {list(_PUBLISHED_LAYERS_ONLY[key])} of {model_name}, "
                f"not their trust coefficients; calibrate the model instead."
            )
        raise LookupError(f"No pruning schedule is published for {model_name}; calibrate the model instead.")

    @classmethod
    def from_entropies(
        cls,
        entropies: Sequence[float],
        *,
        keep_ratio: float = 0.2,
        k: int = 4,
        gap: int = 2,
        first_layer: int = 0,
        model: str | None = None,
        strategy: str = "alpha-maximin",
        seed: int = 0,
    ) -> "PruningSchedule":
        """
        Make a schedule from a measured entropy profile with eq. 5 and alpha-Maximin, or another layer strategy.

        The coefficients are relative to the sharpest of *all* layers. Layers to prune at are chosen from `first_layer`
        on and never include the last decoder layer, because pruning at its output changes nothing [choice].

        :param entropies: `H_norm` of every decoder layer, in order.
        :param keep_ratio: `R`, in (0, 1].
        :param k: Number of pruning layers; fewer if the model has fewer to choose from.
        :param gap: Least distance between two pruning layers.
        :param first_layer: The first layer to choose from. For a model with DeepStack that is the layer of the last
            injection: before it the visual tokens are not complete [choice].
        :param model: Name of the model.
        :param strategy: How the layers are chosen: one of `STRATEGIES`.
        :param seed: For the strategy `"random"`.
        :raises ValueError: If an entropy is out of range, no layer can be chosen or the strategy is unknown.
        """
        alphas = trust_coefficients(entropies)
        eligible = {layer: alphas[layer] for layer in range(max(0, first_layer), len(alphas) - 1)}
        if not eligible:
            raise ValueError(
                f"A model with {len(alphas)} layers has none to prune at from layer {first_layer} on: "
                f"the last layer never counts."
            )
        layers = choose_layers(strategy, eligible, k, gap, seed)
        return cls(
            tuple(layers),
            tuple(eligible[layer] for layer in layers),
            keep_ratio,
            model=model,
            entropies=tuple(float(entropy) for entropy in entropies),
        )
