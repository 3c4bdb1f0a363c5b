# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What an experiment compares: pruning methods, RaDiCal's ablations, and RaDiCal with other pruning layers."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from radical_haystack.pruning import (
    ABLATIONS,
    PRUNERS,
    STRATEGIES,
    Pruner,
    PruningSchedule,
    build_pruner,
    trust_coefficients,
)
from radical_haystack.pruning.pruners import InputPruner, pruner_type
from radical_haystack.pruning.schedule import check_layers
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.families import family_of

GROUPS: dict[str, tuple[str, ...]] = {"all": tuple(PRUNERS), "ablations": tuple(ABLATIONS)}
"""Names that stand for several methods."""

_DEFAULT_STRATEGY = "alpha-maximin"


@dataclass(frozen=True)
class Method:
    """
    One way of pruning.

    Without any of the last four parameters, methods that need a schedule take the model's own.

    :param name: What it is called in results; unique within an experiment.
    :param pruner: One of `PRUNERS`.
    :param parameters: The pruner's own parameters, such as `alpha` for `"radical"`.
    :param strategy: How pruning layers are chosen: one of `STRATEGIES`.
    :param k: Number of pruning layers.
    :param gap: Least distance of two pruning layers.
    :param layers: The pruning layers themselves, 0-based, ascending; in place of the three before.
    :raises ValueError: If a name is unknown, or layers are chosen for a pruner that has its own.
    """

    name: str
    pruner: str = "radical"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    strategy: str | None = None
    k: int | None = None
    gap: int | None = None
    layers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("A method needs a name.")
        kind = pruner_type(self.pruner)
        if self._chooses_layers and not kind.needs_schedule:
            raise ValueError(f"The method '{self.name}' cannot choose layers: the pruner '{self.pruner}' has its own.")
        if self.strategy is not None and self.strategy not in STRATEGIES:
            raise ValueError(
                f"The method '{self.name}' has an unknown layer strategy '{self.strategy}': "
                f"choose one of {', '.join(sorted(STRATEGIES))}."
            )
        if self.layers is not None:
            object.__setattr__(self, "layers", tuple(self.layers))
            check_layers(self.layers)
            if not self.layers or (self.strategy, self.k, self.gap) != (None, None, None):
                raise ValueError(f"The method '{self.name}' must name layers or say how to choose them, not both.")

    @property
    def is_dense(self) -> bool:
        """Whether nothing is pruned: the method then has no keep ratio."""
        return self.pruner == "dense"

    @property
    def is_random(self) -> bool:
        """Whether the result depends on a seed beside the query and its candidates."""
        return self.pruner == "random" or self.strategy == "random"

    @property
    def needs_schedule(self) -> bool:
        """Whether the model must have a schedule."""
        return pruner_type(self.pruner).needs_schedule

    @property
    def needs_profile(self) -> bool:
        """Whether the model's entropy profile must be known, and not its schedule alone."""
        return self._chooses_layers

    @property
    def needs_encoder_attention(self) -> bool:
        """Whether it looks at attention in the vision encoder."""
        kind = pruner_type(self.pruner)
        return issubclass(kind, InputPruner) and kind.needs_encoder_attention

    @property
    def _chooses_layers(self) -> bool:
        return not (self.strategy is self.k is self.gap is self.layers is None)

    def schedule(self, vlm: ListwiseVLM, keep_ratio: float, *, seed: int = 0) -> PruningSchedule | None:
        """
        The schedule it prunes by; `None` for a method that needs none.

        :param vlm: The model.
        :param keep_ratio: `R`, in (0, 1].
        :param seed: For the strategy `"random"`.
        :raises LookupError: If the model's schedule or entropy profile is not known.
        :raises ValueError: If the model does not have one of the layers.
        """
        if not self.needs_schedule:
            return None
        if self._chooses_layers and self.layers is None:
            return vlm.alternative_schedule(
                self.strategy or _DEFAULT_STRATEGY, keep_ratio=keep_ratio, k=self.k, gap=self.gap, seed=seed
            )
        own = vlm.schedule(keep_ratio)
        if own is None or (self.layers is not None and own.entropies is None):
            raise LookupError("The model's entropy profile is not known; calibrate it first.")
        return own if self.layers is None else _at_layers(self.layers, own)

    def build(self, vlm: ListwiseVLM, keep_ratio: float = 1.0, *, seed: int = 0, noise: int | None = None) -> Pruner:
        """
        Make its pruner, for `ListwiseVLM.rank`.

        :param vlm: The model.
        :param keep_ratio: `R`, in (0, 1]; `"dense"` passes over it.
        :param seed: For the layer strategy `"random"` and, without `noise`, for random scores.
        :param noise: Seed of random scores, where it is not to be that of the layers.
        :raises LookupError: See `schedule`.
        :raises ValueError: If a parameter is out of range.
        """
        parameters = dict(self.parameters)
        if self.pruner == "random":
            parameters.setdefault("seed", seed if noise is None else noise)
        schedule = self.schedule(vlm, keep_ratio, seed=seed)
        depth = len(family_of(vlm.model).layers(vlm.model))
        return build_pruner(self.pruner, schedule, keep_ratio=keep_ratio, depth=depth, **parameters)

    def to_dict(self) -> dict[str, Any]:
        """Its parameters as plain values for JSON."""
        data = asdict(self)
        data["parameters"] = dict(self.parameters)
        data["layers"] = None if self.layers is None else list(self.layers)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Method":
        """
        Make what `to_dict` wrote.

        :param data: Its parameters.
        """
        layers = data.get("layers")
        known = {name: data[name] for name in (entry.name for entry in fields(cls)) if name in data}
        return cls(**{**known, "layers": None if layers is None else tuple(layers)})

    @classmethod
    def parse(cls, text: str) -> "Method":
        """
        A method as it is written on the command line: a name, and after colons how its layers are chosen.

        :param text: One of `PRUNERS` or `ABLATIONS`, such as `radical`; with layers `radical:k=3:gap=1`,
            `radical:strategy=even` or `radical:layers=4+8+12`. The whole text becomes the method's name.
        :raises ValueError: If it cannot be read.
        """
        name, *settings = text.strip().split(":")
        if name in PRUNERS:
            base = cls(name, pruner=name)
        elif name in ABLATIONS:
            found = ABLATIONS[name]
            strategy = None if found.strategy == _DEFAULT_STRATEGY else found.strategy
            base = cls(name, found.pruner, dict(found.parameters), strategy)
        else:
            raise ValueError(f"Unknown method '{name}': choose among {', '.join([*GROUPS, *PRUNERS, *ABLATIONS])}.")
        return cls(**{**base.to_dict(), "name": text.strip(), **dict(_setting(text, setting) for setting in settings)})


def parse_methods(texts: Iterable[str]) -> tuple[Method, ...]:
    """
    Methods as they are written on the command line; each comes once.

    :param texts: See `Method.parse`; several may stand in one text, with commas between them, and a name of `GROUPS`
        stands for all of the group.
    :raises ValueError: If one cannot be read, or there is none.
    """
    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    single = dict.fromkeys(one for name in names for one in GROUPS.get(name, (name,)))
    if not single:
        raise ValueError("At least one method is needed.")
    return tuple(Method.parse(name) for name in single)


def _setting(text: str, setting: str) -> tuple[str, Any]:
    key, _, value = setting.partition("=")
    try:
        if key == "strategy" and value:
            return key, value
        if key in ("k", "gap"):
            return key, int(value)
        if key == "layers":
            return key, tuple(int(layer) for layer in value.split("+"))
    except ValueError:
        pass
    raise ValueError(
        f"The method '{text}' cannot be read at '{setting}': expected k=3, gap=1, strategy=even or layers=4+8+12."
    )


def _at_layers(layers: tuple[int, ...], own: PruningSchedule) -> PruningSchedule:
    """The same schedule at other layers."""
    assert own.entropies is not None
    outside = [layer for layer in layers if layer >= len(own.entropies)]
    if outside:
        last = len(own.entropies) - 1
        raise ValueError(f"Pruning layers {outside} do not exist: the model has layers 0 to {last}.")
    alphas = trust_coefficients(own.entropies)
    return PruningSchedule(layers, tuple(alphas[layer] for layer in layers), own.keep_ratio, own.model, own.entropies)
