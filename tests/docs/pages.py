# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
The code blocks of the README and of the pages under `docs/`, and what becomes of them in the tests.

    ```python                     runs, in order, in a folder of the page's own
    ```python title="name.py"     is written to that file; so is a block of any other language with such a title
    ```py                         needs a real model, a server or a network: compiled, its names and arguments checked
    ```console                    `$ radical-haystack ...` runs, unless the title begins with "Needs"; in the README,
                                  which is about the reader's own files, it is checked only
"""

import ast
import importlib
import inspect
import re
import shlex
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from radical_haystack.cli import app

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted(DOCS.rglob("*.md"))]

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^(?P=indent)```", re.M | re.S
)
_UNKNOWN = object()


@dataclass(frozen=True)
class Block:
    """
    One fenced block of code.

    :param page: The file it is in.
    :param line: The line of its first line of code.
    :param language: What follows the fence.
    :param title: The title shown above it, or nothing.
    :param text: The code.
    """

    page: Path
    line: int
    language: str
    title: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"

    @property
    def needs_more(self) -> bool:
        """Whether it needs what tests have not got."""
        return self.language == "py" or self.title.startswith("Needs ")

    @property
    def file_name(self) -> str | None:
        """The file it is to be written to."""
        return None if self.needs_more or self.language == "console" else self.title or None

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command of a console block."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """
    The code blocks of a page.

    :param page: The file.
    :param language: Only those of this language.
    """
    content = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(content):
        title = re.search(r'title="([^"]*)"', match["options"])
        text = textwrap.dedent(match["text"])
        line = content[: match.start("text")].count("\n") + 1
        found.append(Block(page, line, match["language"], title[1] if title else "", text))
    return [block for block in found if language in (None, block.language)]


def check_command(words: list[str]) -> None:
    """
    Let the command line read a command without running it.

    :param words: The command, starting with `radical-haystack`.
    :raises Exception: What the command line refuses.
    """
    commands = typer.main.get_command(app).commands
    assert words[1] in commands, f"There is no command {words[1]!r}."
    commands[words[1]].make_context(words[1], words[2:])


def imported(code: str) -> dict[str, Any]:
    """
    What code imports, by its names there.

    :param code: The code; nothing else of it is run.
    """
    names: dict[str, Any] = {}
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([node], []), "<imports>", "exec"), names)
    return names


def mistakes(code: str, namespace: Mapping[str, Any]) -> list[str]:
    """
    What is wrong with code that cannot be run here: unknown names, and arguments that what is called does not have.

    :param code: The code.
    :param namespace: What is known before it; what the code imports is added.
    """
    tree = ast.parse(code)
    names = {**namespace, **imported(code)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = _UNKNOWN
    builtins = vars(importlib.import_module("builtins"))
    wrong = [
        f"{node.id} is not defined"
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id not in names and node.id not in builtins
    ]
    return wrong + [_wrong_call(node, names) for node in ast.walk(tree) if _wrong_call(node, names)]


def _wrong_call(node: ast.AST, names: Mapping[str, Any]) -> str:
    if not isinstance(node, ast.Call):
        return ""
    target = _value(node.func, names)
    if target is _UNKNOWN or not callable(target):
        return ""
    is_class = inspect.isclass(target)
    # A component's class hides the parameters of its constructor.
    signature = inspect.signature(target.__init__ if is_class else target)
    positional = [None] * (len(node.args) + is_class)
    keywords = {keyword.arg: None for keyword in node.keywords if keyword.arg}
    try:
        signature.bind_partial(*positional, **keywords)
    except TypeError as error:
        return f"{ast.unparse(node.func)}: {error}"
    return ""


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """What an expression such as `a.b.c` stands for, if that is known."""
    if isinstance(node, ast.Name):
        return names.get(node.id, _UNKNOWN)
    if isinstance(node, ast.Attribute):
        parent = _value(node.value, names)
        return _UNKNOWN if parent is _UNKNOWN else getattr(parent, node.attr)
    return _UNKNOWN
