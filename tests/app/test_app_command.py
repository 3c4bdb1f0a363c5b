# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that serves the app."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from radical_haystack.app import serving
from radical_haystack.cli import main


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    monkeypatch.setattr(sys, "argv", ["radical-haystack", "app", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_a_store_that_is_not_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--store", "/no/such/store") == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert "/no/such/store" in errors[0]


def test_stores_are_opened_and_served(
    monkeypatch: pytest.MonkeyPatch, catalogue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[Any] = []
    monkeypatch.setattr(serving, "serve", lambda searcher, **where: served.append((searcher, where)))
    assert not run(monkeypatch, "--store", str(catalogue), "--store", str(catalogue), "--port", "7999")
    ((searcher, where),) = served
    assert [index.path for index in searcher.indexes] == [catalogue] * 2
    assert where == {"host": "127.0.0.1", "port": 7999}
    assert "http://127.0.0.1:7999" in capsys.readouterr().err


def test_what_is_waited_for_is_named(monkeypatch: pytest.MonkeyPatch, catalogue: Path) -> None:
    steps: list[str] = []
    monkeypatch.setattr(serving, "serve", lambda *_, **__: None)
    monkeypatch.setattr(
        sys.modules["radical_haystack.cli.app"], "work", lambda: nullcontext(lambda step, *_: steps.append(step))
    )
    assert not run(monkeypatch, "--store", str(catalogue))
    assert steps == [
        "Loading PyTorch, Haystack and Gradio",
        "Opening the index",
        "Loading the reranker catalog-vlm-tiny",
    ]


def test_without_gradio(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "gradio", None)
    assert run(monkeypatch) == 2
    assert "pip install 'radical-haystack[app]'" in capsys.readouterr().err
