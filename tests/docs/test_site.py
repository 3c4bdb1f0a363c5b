# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The documentation can be built, without a warning, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    built = {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")} - {Path("404")}
    assert built == {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")}


def test_every_page_is_in_the_navigation(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert f'href="{page.relative_to(DOCS).with_suffix(".html").as_posix()}"' in home, page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(r'<(?:script|img|iframe|link)\b[^>]*?(?:src|href)="(?:https?:)?//[^"]*"')
    for page in site.rglob("*.html"):
        assert not loads.findall(page.read_text(encoding="utf-8")), page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import\s*)[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style.name


def test_docstrings_become_tables_of_parameters(site: Path) -> None:
    page = (site / "api" / "components.html").read_text(encoding="utf-8")
    assert ":param" not in page.split("<details", 1)[0]
    assert 'id="radical_haystack.components.RadicalRanker.run"' in page
    assert "Share of the candidates' visual tokens that reaches the last layers" in page.replace("&#39;", "'")
