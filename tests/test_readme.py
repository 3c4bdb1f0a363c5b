# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the README shows works as it stands."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from radical_haystack.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[list[str]]:
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def test_python_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_first_example_has_ten_lines() -> None:
    first = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    code = [line for line in first.splitlines() if line.strip() and not line.startswith(("from ", "import "))]
    assert len(code) <= 10


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [words[1] for words in commands() if words[0] == "make"]
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_commands_exist_with_their_options(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [words for words in commands() if words[0] == "radical-haystack"]
    assert {words[1] for words in ours} >= {"index", "search", "calibrate", "cost"}
    for words in ours:
        monkeypatch.setattr(sys, "argv", [*words[:2], "--help"])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 0
        shown = capsys.readouterr().out
        assert all(word in shown for word in words if word.startswith("--"))


def test_cost_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (words,) = (words for words in commands() if words[:2] == ["radical-haystack", "cost"])
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    assert "38.9%" in capsys.readouterr().out
