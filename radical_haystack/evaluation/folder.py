# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Where an experiment's results lie: `config.json` says of what they are, `results.jsonl` holds them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG, RESULTS, POOLS, EMBEDDINGS = "config.json", "results.jsonl", "pools.json", "embeddings"

_NOT_COMPARED = "environments"
_SHOWN = 60


class ResumeError(ValueError):
    """A folder holds results of something else; the message is one sentence that names the difference."""


class ExperimentFolder:
    """
    The folder of one experiment.

    :param path: The folder; it is made when something is first written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def results(self) -> Path:
        """The file of results."""
        return self.path / RESULTS

    def read_config(self) -> dict[str, Any] | None:
        """
        What the folder's results are of; `None` if there is nothing yet.

        :raises ResumeError: If there are results and nothing says of what, or it cannot be read.
        """
        try:
            config = json.loads((self.path / CONFIG).read_text(encoding="utf-8"))
        except FileNotFoundError:
            if self.results.exists():
                raise ResumeError(f"The folder '{self.path}' has results, but no {CONFIG} that says of what.") from None
            return None
        except (OSError, ValueError) as error:
            raise ResumeError(f"'{self.path / CONFIG}' cannot be read ({error}).") from error
        if not isinstance(config, dict) or "experiment" not in config:
            raise ResumeError(f"'{self.path / CONFIG}' is not the configuration of an experiment.")
        return config

    def check(self, wanted: Mapping[str, Any]) -> None:
        """
        Refuse to mix results of two experiments.

        :param wanted: Parts of the configuration that are known already, as plain values.
        :raises ResumeError: If the folder's results differ in one of them, see also `read_config`.
        """
        stored = self.read_config()
        if stored is None:
            return
        for name, value in wanted.items():
            found = _difference(name, stored.get(name), json.loads(json.dumps(value)))
            if found is not None:
                place, there, here = found
                raise ResumeError(
                    f"The folder '{self.path}' holds results of another experiment: "
                    f"{place} is {_short(there)} there and {_short(here)} here."
                )

    def write_config(self, wanted: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
        """
        Say of what the results are that follow.

        :param wanted: The configuration, as plain values.
        :param environment: With what they are measured; one that differs from the last is added to those before.
        """
        environments = list((self.read_config() or {}).get(_NOT_COMPARED, []))
        plain = json.loads(json.dumps(environment))
        if environments[-1:] != [plain]:
            environments.append(plain)
        self.write_json(CONFIG, {**wanted, _NOT_COMPARED: environments})

    def read_json(self, name: str) -> Any:
        """
        What a file holds; `None` if it is not there.

        :param name: Its name.
        """
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def write_json(self, name: str, value: Any) -> None:
        """
        Write a file, all of it or nothing.

        :param name: Its name.
        :param value: Plain values.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        partial = self.path / f".{name}.{os.getpid()}.part"
        partial.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
        os.replace(partial, self.path / name)


def _difference(place: str, there: Any, here: Any) -> tuple[str, Any, Any] | None:
    """The first place where two plain values differ, with what stands there."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in dict.fromkeys([*there, *here]):
            found = _difference(f"{place}.{name}", there.get(name), here.get(name))
            if found is not None:
                return found
        return None
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = enumerate(zip(there, here, strict=True))
        return next((d for k, (a, b) in pairs if (d := _difference(f"{place}[{k}]", a, b)) is not None), None)
    return None if there == here else (place, there, here)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
