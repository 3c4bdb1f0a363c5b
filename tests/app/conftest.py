# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""A small catalogue with its index, the app over it, and a browser."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="the app's tests need gradio: pip install 'radical-haystack[app]'")

from radical_haystack.app.catalogue import prepare_catalogue
from radical_haystack.app.interface import build_app, launch_options
from radical_haystack.app.searching import Searcher
from radical_haystack.pipelines.indexes import open_index

PICTURES = 48
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass(frozen=True)
class Served:
    """A running app."""

    url: str
    searcher: Searcher


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of a small catalogue."""
    return prepare_catalogue(tmp_path_factory.mktemp("catalogue"), pictures=PICTURES)


@pytest.fixture(scope="session")
def searcher(catalogue: Path) -> Searcher:
    """The bundled models over the small catalogue."""
    return Searcher([open_index(catalogue)], model="catalog-vlm-tiny")


@pytest.fixture(scope="session")
def served(searcher: Searcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app, served as the command does it but at a free port."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("uploads")))
        blocks = build_app(searcher)
        options = {**launch_options("127.0.0.1", None), "prevent_thread_lock": True}
        _, url, _ = blocks.launch(**options)
        yield Served(url.rstrip("/"), searcher)
        blocks.close()
