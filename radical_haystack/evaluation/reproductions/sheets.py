# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""A small table that reads the same for people, in Markdown, in LaTeX and as CSV."""

import csv
import io
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from radical_haystack.evaluation.bootstrap import Estimate

MISSING = "–"
"""What stands where there is no value."""

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "–": "--", "−": "$-$", "×": r"$\times$", "±": r"$\pm$",
    "Δ": r"$\Delta$", "≤": r"$\leq$", "≥": r"$\geq$",
})  # fmt: skip
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_<>|"} | {"\n": " "})


@dataclass(frozen=True)
class Sheet:
    """
    A table of texts.

    :param title: What it shows.
    :param columns: Names of the columns.
    :param rows: The cells, as many in each row as there are columns.
    :param name: What its files are called.
    :raises ValueError: If a row has another number of cells.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    name: str = "table"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"The table '{self.title}' has {len(self.columns)} columns, but a row of {len(row)}.")

    def markdown(self) -> str:
        """The table in Markdown, its title above it."""
        rule = "|".join([":--", *["--:"] * (len(self.columns) - 1)])
        lines = [" | ".join(markdown_text(cell) for cell in row) for row in (self.columns, *self.rows)]
        table = [f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])]
        return "\n".join([f"**{markdown_text(self.title)}**", "", *table, ""])

    def latex(self) -> str:
        """The table for a paper; it needs the package `booktabs`."""
        lines = [" & ".join(latex_text(cell) for cell in row) + r" \\" for row in (self.columns, *self.rows)]
        return "\n".join([
            r"% \usepackage{booktabs}",
            f"% {' '.join(self.title.split())}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ])  # fmt: skip

    def csv(self) -> str:
        """The table as comma-separated values."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}

    def __rich__(self) -> Table:
        table = Table(title=escape(self.title))
        for number, column in enumerate(self.columns):
            table.add_column(escape(column), justify="right" if number else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table


def latex_text(text: str) -> str:
    """
    A text in which LaTeX finds no commands.

    :param text: Any text.
    """
    return text.translate(_LATEX)


def markdown_text(text: str) -> str:
    """
    A text in which Markdown finds no markup, on one line.

    :param text: Any text.
    """
    return text.translate(_MARKDOWN).replace("](", "]\\(")


def percent(value: float | None, digits: int = 1) -> str:
    """
    A share in percent, without the sign.

    :param value: The share, or `None`.
    :param digits: Digits after the point.
    """
    return MISSING if value is None else f"{100 * value:.{digits}f}"


def interval(estimate: Estimate | None) -> str:
    """
    A mean of shares in percent, with its confidence interval.

    :param estimate: The mean, or `None`.
    """
    if estimate is None:
        return MISSING
    return f"{100 * estimate.mean:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def signed(estimate: Estimate | None) -> str:
    """
    A mean difference of shares in percentage points, with its confidence interval.

    :param estimate: The mean, or `None`.
    """
    if estimate is None:
        return MISSING
    return f"{100 * estimate.mean:+.1f} [{100 * estimate.low:+.1f}, {100 * estimate.high:+.1f}]"


def number(value: float | None, digits: int = 1, unit: str = "") -> str:
    """
    A number with its unit.

    :param value: The number, or `None`.
    :param digits: Digits after the point.
    :param unit: What follows it.
    """
    return MISSING if value is None else f"{value:.{digits}f}{unit}"
