# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""First stages on the command line: every preset by its name, and code of models only where the user says so."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from radical_haystack.pipelines import FIRST_STAGES
from tests.pipelines.tiny_encoders import save_with_own_code

Run = Callable[..., tuple[int, str, str]]


def error_line(err: str) -> str:
    (line,) = (line for line in err.splitlines() if line.startswith("error:"))
    assert "Traceback" not in err
    return line


def test_help_names_every_preset(run_command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = run_command("index", "--help")[1]
    words = re.sub(r"[^\w-]+", " ", shown).split()
    assert set(FIRST_STAGES) <= set(words)


def test_preset_with_code_of_its_own_asks_for_the_users_word(
    run_command: Run, image_folder: Path, tmp_path: Path
) -> None:
    code, _, err = run_command("index", image_folder, "--store", tmp_path / "s", "--first-stage", "jina-embeddings-v4")
    assert code == 2
    assert "--trust-remote-code" in error_line(err)
    assert not (tmp_path / "s").exists()


def test_code_that_comes_with_a_model(run_command: Run, image_folder: Path, tmp_path: Path, tiny_vlm: str) -> None:
    (tmp_path / "model").mkdir()
    model, store = save_with_own_code(tmp_path / "model"), tmp_path / "s"
    indexing = ["index", image_folder, "--store", store, "--first-stage", model, "--json"]
    assert run_command(*indexing)[0] == 2
    code, out, _ = run_command(*indexing, "--trust-remote-code")
    assert (code, json.loads(out)["indexed"]) == (0, 12)

    searching = ["search", "red", "--store", store, "--model", tiny_vlm, "--top-k", "3", "--json"]
    assert run_command(*searching)[0] == 2
    code, out, _ = run_command(*searching, "--trust-remote-code")
    assert (code, len(json.loads(out)["results"])) == (0, 3)

    searching[1] = "http://localhost:1/picture.png"
    code, _, err = run_command(*searching, "--trust-remote-code")
    assert code == 2
    assert "is a URL" in error_line(err)
