# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the README and the documentation show works as it stands; `pages` says what becomes of which block."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from radical_haystack.catalog import write_gallery
from radical_haystack.cli import main
from radical_haystack.pruning import PRUNERS
from radical_haystack.vlm.families import FAMILIES
from tests.docs.pages import PAGES, ROOT, Block, blocks, check_command, imported, mistakes

README = ROOT / "README.md"
SERVES = "app"
"""The command that ends only when it is stopped."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pictures that pages draw; drawn once, because drawing takes longer than most of what is done with them."""
    folder = tmp_path_factory.mktemp("gallery")
    write_gallery(folder, 48)
    return folder


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to run a page in; what the page makes importable there is forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    for module in set(sys.modules) - known:
        if str(getattr(sys.modules[module], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[module]


@pytest.fixture
def own_registries() -> Iterator[None]:
    """What pages add to the package's registries goes away with them."""
    with patch.dict(PRUNERS), patch.dict(FAMILIES):
        yield


def run_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0, " ".join(words)


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("page", [page for page in PAGES if page != README], ids=name)
def test_page_works_as_it_stands(page: Path, gallery: Path, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in set(re.findall(r'write_gallery\("([\w-]+)", 48\)', page.read_text(encoding="utf-8"))):
        shutil.copytree(gallery, own_folder / folder)
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        follow(block, namespace, own_folder, monkeypatch)


def follow(block: Block, namespace: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what a reader does with a block."""
    if block.file_name:
        (folder / block.file_name).write_text(block.text, encoding="utf-8")
    elif block.language == "python":
        exec(compile(block.text, block.place, "exec"), namespace)
    elif block.language == "py":
        assert block.title.startswith("Needs "), f"{block.place}: say in a title what it needs."
        assert not mistakes(block.text, namespace), block.place
        namespace.update(imported(block.text))
    for words in block.commands if block.language == "console" else []:
        if words[0] == "radical-haystack":
            check_command(words)
            if not block.needs_more and words[1] != SERVES:
                run_command(words, monkeypatch)


def test_readme_python_runs_as_it_stands(own_folder: Path) -> None:
    shown = blocks(README, "python")
    assert len(shown) >= 2
    for block in shown:  # each by itself
        exec(compile(block.text, block.place, "exec"), {})


def test_readme_python_for_elsewhere_fits() -> None:
    known: dict[str, Any] = {}
    for block in blocks(README):
        if block.language == "py":
            assert not mistakes(block.text, known), block.place
        if block.language in ("py", "python"):
            known.update(imported(block.text))


def test_first_example_has_ten_lines() -> None:
    for page in (README, ROOT / "docs" / "index.md"):
        first = blocks(page, "python")[0].text
        code = [line for line in first.splitlines() if line.strip() and not line.startswith(("from ", "import "))]
        assert len(code) <= 10, page


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_exist_with_their_options(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for block in blocks(page, "console"):
        for words in block.commands:
            if words[0] == "radical-haystack":
                check_command(words)
            if words[0] == "make":
                assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), block.place
            if words[:1] == ["python"] and words[1].endswith(".py"):
                assert (ROOT / words[1]).is_file(), block.place


def test_readme_names_the_commands() -> None:
    ours = [words[1] for block in blocks(README, "console") for words in block.commands if "haystack" in words[0]]
    assert {"index", "search", "calibrate", "cost"} <= set(ours)


def test_readme_cost_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [words for block in blocks(README, "console") for words in block.commands]
    (words,) = (words for words in commands if words[:2] == ["radical-haystack", "cost"])
    run_command(words, monkeypatch)
    assert "38.9%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("from radical_haystack.components import RadicalRanker\nRadicalRanker(keep_ratio=0.1)", ""),
        ("from radical_haystack.components import RadicalRanker\nRadicalRanker(keep=0.1)", "keep"),
        ("import radical_haystack.pipelines as p\np.index_folder('a', 'b', first='c')", "first"),
        ("index_folder('a')", "index_folder is not defined"),
        ("x = 1\nx.y(z=2)", ""),
    ],
)
def test_mistakes_are_found(code: str, wrong: str) -> None:
    found = mistakes(code, {})
    assert (len(found) == 1 and wrong in found[0]) if wrong else not found


def test_unknown_options_are_found() -> None:
    check_command(["radical-haystack", "search", "a dog", "--store", "index"])
    with pytest.raises(Exception, match="--shop"):
        check_command(["radical-haystack", "search", "a dog", "--store", "index", "--shop", "x"])
