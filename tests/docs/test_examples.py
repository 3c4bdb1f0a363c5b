# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Every example runs as it stands, in a process of its own, in one folder after the other."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples"
SAYS = {
    "search_folder.py": "5. outfit-",
    "composed_search.py": "outfits/outfit-0007.jpg, but: is blue instead",
    "qdrant_store.py": "48 images in Qdrant",
    "retrieve_rerank_answer.py": "and shown 3 images: outfit-",
    "evaluate_own_data.py": "RaDiCal, 20% kept",
}
"""What each prints, among other things."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


def run(name: str, folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "HAYSTACK_TELEMETRY_ENABLED": "False"}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SAYS)
def test_runs_as_it_stands(name: str, folder: Path) -> None:
    assert SAYS[name] in run(name, folder)


def test_every_example_is_here_and_in_the_table() -> None:
    scripts = sorted(script.name for script in EXAMPLES.glob("*.py"))
    assert scripts == sorted(SAYS)
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"[{script}]({script})" in table for script in scripts)


@pytest.mark.parametrize("name", SAYS)
def test_says_what_it_shows_and_how_to_run_it(name: str) -> None:
    shown = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8")))
    assert shown is not None
    assert f"python examples/{name}" in shown
