# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""With what results were measured: the model, and the versions of everything."""

import hashlib
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from radical_haystack.pruning import DecoderShape, PruningSchedule
from radical_haystack.vlm import ListwiseVLM

PACKAGES = ("radical-haystack", "torch", "transformers", "haystack-ai", "sentence-transformers", "numpy", "pillow")
"""The packages whose versions are stored."""

_CHUNK = 2**20


@dataclass(frozen=True)
class ModelInfo:
    """
    A reranking model, as far as results depend on it.

    :param name: Hub name or folder.
    :param kind: Its type, such as `qwen3_vl`.
    :param revision: The hub's commit, or a digest of the files of a local folder; `None` for a model made in memory.
    :param dtype: Number format of its weights.
    :param shape: Sizes of its decoder; `None` if they cannot be read from its configuration.
    :param schedule: Its own pruning schedule; `None` if it has none and none is needed.
    """

    name: str
    kind: str
    revision: str | None
    dtype: str
    shape: DecoderShape | None
    schedule: PruningSchedule | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        data = asdict(self)
        if data["schedule"] is not None:
            data["schedule"] = {
                name: list(value) if isinstance(value, tuple) else value for name, value in data["schedule"].items()
            }
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ModelInfo":
        """
        Make what `to_dict` wrote.

        :param data: The plain values.
        """
        shape, schedule = data["shape"], data["schedule"]
        return cls(
            **{
                **data,
                "shape": None if shape is None else DecoderShape(**shape),
                "schedule": None if schedule is None else PruningSchedule(**schedule),
            }
        )


def model_info(vlm: ListwiseVLM) -> ModelInfo:
    """
    What results depend on of a model.

    :param vlm: The model.
    """
    config = vlm.model.config
    name = str(config.name_or_path or type(vlm.model).__name__)
    revision = getattr(config, "_commit_hash", None) or _digest(Path(name))
    dtype = str(vlm.model.dtype).removeprefix("torch.")
    own = vlm.schedule()
    schedule = None if own is None else replace(own, model=None)  # the same, wherever the model lies
    return ModelInfo(name, config.model_type, revision, dtype, decoder_shape(config), schedule)


def decoder_shape(config: Any) -> DecoderShape | None:
    """
    The sizes of a model's decoder, without its output head.

    :param config: The model's configuration.
    :returns: `None` if the configuration does not have them all.
    """
    text = getattr(config, "text_config", config)
    try:
        return DecoderShape(
            layers=text.num_hidden_layers,
            hidden=text.hidden_size,
            heads=text.num_attention_heads,
            kv_heads=text.num_key_value_heads,
            head_dim=getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads,
            intermediate=text.intermediate_size,
        )
    except AttributeError:
        return None


def environment(device: str) -> dict[str, Any]:
    """
    Versions and machine, for whoever wants to measure the same again.

    :param device: The device the model runs on.
    """
    return {
        "packages": {name: _version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device": _device_name(torch.device(device)),
        "threads": torch.get_num_threads(),
        "git_commit": _git_commit(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({platform.processor() or platform.machine()})" if device.type == "cpu" else str(device)


def _digest(folder: Path) -> str | None:
    """Of what the files of a local model hold, wherever they lie."""
    files = sorted(path for pattern in ("*.safetensors", "*.json") for path in folder.glob(pattern))
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def _git_commit() -> str | None:
    """The commit that this package's code is from, if it is run from a clone of its repository."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    words = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
