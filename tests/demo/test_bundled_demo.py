# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""`radical-haystack demo` with the bundled models, as a user starts it."""

import json
import sys
from pathlib import Path

import pytest

from radical_haystack.cli import main
from radical_haystack.pipelines import index_folder, search_folder


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["radical-haystack", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["demo", "--output", str(tmp_path), "--pictures", "40", "--shown", "1", "--queries", "2"]
    run(monkeypatch, *words, "--json")
    result = json.loads(capsys.readouterr().out)
    assert set(result["mrr_at_10"]) == {"first_stage", "dense", "radical_0.2", "radical_0.1", "random_0.2"}
    assert set(result["composed_mrr_at_10"]) == set(result["mrr_at_10"])
    assert result["prefill_speedup"] > 0
    assert Path(result["report"]).is_file()
    run(monkeypatch, *words)
    shown = capsys.readouterr().out
    assert "MRR@10" in shown
    assert f"report: {result['report']}" in shown
    # A query longer than any of the models' texts is cut, not refused.
    found = search_folder(tmp_path / "index-40", "a red dress with stripes " * 200, top_k=3)
    assert len(found) == 3
    again = index_folder(tmp_path / "gallery-40", tmp_path / "index-40")
    assert (again.indexed, again.unchanged) == (0, 40)
