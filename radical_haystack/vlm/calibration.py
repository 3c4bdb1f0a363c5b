# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The offline entropy profile of a model: how sharp its text-to-visual attention is at every layer, measured once."""

import hashlib
import json
import logging
import math
import os
import re
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from radical_haystack.pruning.pruners.base import LayerObservation, Pruner
from radical_haystack.pruning.schedule import PruningSchedule
from radical_haystack.pruning.signals import normalized_entropy, text_to_visual_distribution
from radical_haystack.vlm.trace import PruningTrace

logger = logging.getLogger(__name__)

PROFILE_FILE = "radical.json"
"""A model folder's own profile."""

CALIBRATION_SETS = 4
"""Query-candidate sets a model measures itself on when nobody calibrates it [choice]."""


@dataclass(frozen=True)
class EntropyProfile:
    """
    `H_norm` of every decoder layer on unpruned passes, averaged over query-candidate sets.

    :param model: Name of the model.
    :param entropies: One value per layer, in [0, 1].
    :param sets: How many sets the averages are over.
    :param complete: Whether no more sets are to be added.
    :raises ValueError: If a value is out of range.
    """

    model: str
    entropies: tuple[float, ...]
    sets: int
    complete: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "entropies", tuple(map(float, self.entropies)))
        if not self.entropies or not all(0 <= value <= 1 for value in self.entropies):
            raise ValueError("An entropy profile needs one value in [0, 1] per layer.")
        if self.sets < 1:
            raise ValueError(f"An entropy profile needs at least one set, not {self.sets}.")

    @classmethod
    def average(cls, model: str, measured: list[tuple[float, ...]], *, complete: bool) -> "EntropyProfile":
        """
        The profile of several measurements.

        :param model: Name of the model.
        :param measured: One value per layer for each set.
        :param complete: Whether no more sets are to be added.
        """
        means = [math.fsum(layer) / len(measured) for layer in zip(*measured, strict=True)]
        return cls(model, tuple(means), len(measured), complete)

    def with_set(self, entropies: tuple[float, ...], *, wanted: int) -> "EntropyProfile":
        """
        The profile with one more set in its averages.

        :param entropies: That set's values, one per layer.
        :param wanted: Number of sets at which the profile is complete.
        """
        pairs = zip(self.entropies, entropies, strict=True)
        means = tuple((mean * self.sets + new) / (self.sets + 1) for mean, new in pairs)
        return EntropyProfile(self.model, means, self.sets + 1, self.sets + 1 >= wanted)

    def schedule(self, *, keep_ratio: float, k: int, gap: int, first_layer: int) -> PruningSchedule:
        """See `PruningSchedule.from_entropies`."""
        return PruningSchedule.from_entropies(
            self.entropies, keep_ratio=keep_ratio, k=k, gap=gap, first_layer=first_layer, model=self.model
        )

    def to_json(self) -> str:
        """The profile as a JSON object."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> "EntropyProfile":
        """
        Read what `to_json` wrote.

        :param text: A JSON object with the fields of this class.
        :raises ValueError: If it is not such an object.
        """
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(f"not an entropy profile: {error}") from error


class EntropyProbe(Pruner):
    """
    Prunes nothing and records `H_norm` at every layer.

    :param layers: Number of decoder layers.
    """

    def __init__(self, layers: int) -> None:
        self._layers = tuple(range(layers))

    @property
    def layers(self) -> tuple[int, ...]:
        """All decoder layers."""
        return self._layers

    def select(self, observation: LayerObservation) -> Tensor:
        """Keep all tokens."""
        p = text_to_visual_distribution(observation.attention("text"))
        observation.record["entropy"] = normalized_entropy(p)
        return torch.arange(observation.active.numel(), device=observation.active.device)

    @staticmethod
    def entropies(trace: PruningTrace) -> tuple[float, ...]:
        """
        What the probe recorded, one value per layer.

        :param trace: The trace of a pass under this probe.
        """
        return tuple(stage.figures["entropy"] for stage in trace.stages)


class ProfileStore:
    """
    Where a model's profile is kept: in the model's own folder (read only), else in the user's cache directory.

    :param name_or_path: Hub name or folder the model was loaded from.
    :param config: The model's configuration.
    """

    def __init__(self, name_or_path: str, config: Any) -> None:
        folder = Path(name_or_path)
        self._shipped = folder / PROFILE_FILE
        revision = getattr(config, "_commit_hash", None) or _fingerprint(folder)
        readable = re.sub(r"[^A-Za-z0-9._-]+", "--", name_or_path.strip("/"))[-80:]
        key = hashlib.sha256(f"{name_or_path}\0{revision}".encode()).hexdigest()[:16]
        self.path = cache_directory() / "profiles" / f"{readable}-{key}.json"
        """The file in the user's cache directory."""

    def load(self, layers: int) -> EntropyProfile | None:
        """
        The stored profile, or `None` if there is none that can be used.

        :param layers: Number of the model's decoder layers; a profile of another depth is not used.
        """
        return _read(self._shipped, layers) or _read(self.path, layers)

    def save(self, profile: EntropyProfile) -> None:
        """
        Store a profile in the user's cache directory; a failure is logged and harmless.

        :param profile: The profile.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.path.parent, delete=False, encoding="utf-8") as file:
                file.write(profile.to_json())
            os.replace(file.name, self.path)
        except OSError as error:
            logger.warning("The entropy profile of %s could not be stored: %s", profile.model, error)


def cache_directory() -> Path:
    """The user's cache directory for this package."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "radical_haystack"


def _read(path: Path, layers: int) -> EntropyProfile | None:
    try:
        profile = EntropyProfile.from_json(path.read_text(encoding="utf-8"))
        if len(profile.entropies) != layers:
            raise ValueError(f"it describes {len(profile.entropies)} layers, the model has {layers}")
        return profile
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("Ignoring the entropy profile %s, the model will be calibrated again: %s", path, error)
        return None


def _fingerprint(folder: Path) -> str:
    """Changes when the weights of a local model do."""
    if not folder.is_dir():
        return ""
    files = sorted(path for pattern in ("*.safetensors", "config.json") for path in folder.glob(pattern))
    return repr([str(folder.resolve()), *((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)])
