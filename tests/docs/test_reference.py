# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The documentation keeps up with the code: components and their sockets, the API, the choices, the messages."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

import radical_haystack
from radical_haystack import components
from tests.docs.pages import DOCS, ROOT

PACKAGE = ROOT / "radical_haystack"
COMPONENTS = [name for name in components.__all__ if hasattr(getattr(components, name), "run")]
EXAMPLES: dict[str, Any] = {
    "model": "catalog-siglip-tiny",
    "first_stage": "bundled",
    "retriever": InMemoryEmbeddingRetriever(InMemoryDocumentStore()),
}
"""A value for each mandatory parameter of a component."""
ROOMS = ("pruning", "vlm", "components", "pipelines", "evaluation", "viz", "catalog")


def table(name: str) -> dict[str, list[str]]:
    """The rows at the top of a component's page: by its heading, the names in a row."""
    page = (DOCS / "components" / f"{name.lower()}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", page, re.MULTILINE)
    return {heading: re.findall(r"(?:^|<br> |and either |or )`(\w+)`:", cell) for heading, cell in rows}


def mandatory_parameters(name: str) -> list[str]:
    parameters = inspect.signature(getattr(components, name).__init__).parameters.values()
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    return [p.name for p in named if p.default is p.empty]


@pytest.mark.parametrize("name", COMPONENTS)
class TestComponentPages:
    def test_sockets(self, name: str) -> None:
        made = getattr(components, name)(**{key: EXAMPLES[key] for key in mandatory_parameters(name)})
        inputs = made.__haystack_input__._sockets_dict
        mandatory = [socket for socket, value in inputs.items() if value.is_mandatory]
        rows = table(name)
        shown = rows["Mandatory run variables"]
        optional = rows.get("Optional run variables", [])
        # Some are mandatory only in the absence of another one; those are in both rows.
        assert sorted(set(shown) - set(optional)) == sorted(mandatory)
        assert sorted({*shown, *optional}) == sorted(inputs)
        assert sorted(rows["Output variables"]) == sorted(made.__haystack_output__._sockets_dict)

    def test_constructor(self, name: str) -> None:
        assert sorted(table(name)["Mandatory init variables"]) == sorted(mandatory_parameters(name))

    def test_is_in_the_overview(self, name: str) -> None:
        assert f"[{name}]({name.lower()}.md)" in (DOCS / "components" / "index.md").read_text(encoding="utf-8")

    def test_has_the_sections(self, name: str) -> None:
        page = (DOCS / "components" / f"{name.lower()}.md").read_text(encoding="utf-8")
        sections = re.findall(r"^##+ (.+)$", page, re.MULTILINE)
        assert sections == ["Overview", "Usage", "On its own", "In a pipeline"]


def test_every_room_has_an_api_page() -> None:
    for room in ROOMS:
        assert f"::: radical_haystack.{room}\n" in (DOCS / "api" / f"{room}.md").read_text(encoding="utf-8")


def test_what_is_exported_is_documented() -> None:
    for room in ROOMS:
        module = importlib.import_module(f"radical_haystack.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            is_shown = not (inspect.isclass(value) or inspect.isfunction(value)) or inspect.getdoc(value)
            assert is_shown, f"{room}.{name} has no docstring and is on no page"


def test_every_choice_is_on_the_page_of_the_method() -> None:
    rows = re.findall(r"^\|.+\| `([\w.]+)` \|$", (DOCS / "method.md").read_text(encoding="utf-8"), re.MULTILINE)
    marks = {
        ".".join(file.relative_to(PACKAGE).with_suffix("").parts): file.read_text(encoding="utf-8").count("[choice]")
        for file in PACKAGE.rglob("*.py")
    }
    # A reproduction's own choices stand beside its figures.
    marked = {module: count for module, count in marks.items() if count and ".reproductions." not in module}
    lacking = Counter(marked) - Counter(rows)
    assert not lacking, "docs/method.md does not list every [choice] of these modules"
    assert set(rows) <= set(marked)


def test_messages_are_those_of_the_package() -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    messages = [
        message
        for heading in re.findall(r"^### (`.+)$", page, re.MULTILINE)
        for message in re.findall(r"`([^`]+)`", heading)
    ]
    assert len(messages) > 20
    known = [*_messages(PACKAGE), (ROOT / "Makefile").read_text(encoding="utf-8")]
    for message in messages:
        parts = [part.strip() for part in message.split("…")]
        parts = [part for part in parts if len(part) > 3]
        assert any(all(part in text for part in parts) for text in known), message


def _messages(folder: Path) -> list[str]:
    """All texts in the code, with an ellipsis where a value is filled in."""
    found = []
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(map(_piece, node.values)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.sub(r"\{\w+\}|%s", "…", node.value))
    return found


def _piece(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue)
    return "'…'" if node.conversion == ord("r") else "…"


def test_every_room_of_the_package_is_known_here() -> None:
    packages = {module.name for module in pkgutil.iter_modules(radical_haystack.__path__) if module.ispkg}
    assert packages == {*ROOMS, "app", "cli", "demo"}
