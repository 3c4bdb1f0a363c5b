# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the page is told, step by step, without a browser."""

from typing import Any

import pytest

from radical_haystack.app.interface import Handlers
from radical_haystack.app.searching import Searcher

SETTINGS = (None, "radical", 0.2)


@pytest.fixture(scope="module")
def handlers(searcher: Searcher) -> Handlers:
    return Handlers(searcher)


def told(steps: Any) -> list[tuple[str, str | None]]:
    """Statuses and results; `None` stands for what is left as it is."""
    return [tuple(value if isinstance(value, str) else None for value in step) for step in steps]


def test_search_shows_the_first_stage_first(handlers: Handlers) -> None:
    finding, reading, done = told(handlers.search(0, "a red dress", *SETTINGS))
    assert "Finding" in finding[0]
    assert finding[1] is None
    assert "Reading 20 images" in reading[0]
    assert "rh-waiting" in reading[1]
    assert "20 candidates in" in done[0]
    assert "rh-move" in done[1]


def test_refine_keeps_the_results_until_there_are_new_ones(handlers: Handlers) -> None:
    working, done = told(handlers.refine(0, "a red dress", *SETTINGS))
    assert working[1] is None
    assert "rh-move" in done[1]


def test_without_a_query_settings_change_nothing(handlers: Handlers) -> None:
    assert told(handlers.refine(0, " ", *SETTINGS)) == [(None, None)]
    ((status, results),) = told(handlers.switch(0, "", *SETTINGS))
    assert status == ""
    assert "images are ready" in results


def test_a_blank_query_leaves_the_results(handlers: Handlers) -> None:
    problem = told(handlers.search(0, "", *SETTINGS))[-1]
    assert "Type what you are looking for" in problem[0]
    assert problem[1] is None


@pytest.mark.parametrize(("error", "words"), [(ValueError("No."), "No."), (RuntimeError("boom"), "The terminal")])
def test_a_search_that_fails_half_way(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(searcher, "rank", fail)
    problem = told(Handlers(searcher).search(0, "a red dress", *SETTINGS))[-1]
    assert words in problem[0]
    assert "boom" not in problem[0]
    assert problem[1] == ""
