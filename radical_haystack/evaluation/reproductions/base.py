# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What a table or figure of the paper is here: a name, one sentence, and a function that measures it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from radical_haystack.evaluation.reproductions.sheets import Sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radical_haystack.evaluation.reproductions.session import Session, Settings


@dataclass(frozen=True)
class Comparison:
    """
    Rankings of the same queries by several methods, which several tables are made of.

    :param name: What its results are called.
    :param queries: How many queries of each category of the catalogue, when one table is asked for.
    :param queries_of_all: The same when all tables are.
    :param all_ratios: Whether methods are compared at all keep ratios, or at the first only.
    """

    name: str
    queries: int
    queries_of_all: int
    all_ratios: bool


METHODS = Comparison("methods", queries=30, queries_of_all=100, all_ratios=True)
"""The pruning methods against each other."""
VARIANTS = Comparison("variants", queries=12, queries_of_all=12, all_ratios=False)
"""RaDiCal against variants of itself."""


@dataclass(frozen=True)
class Outcome:
    """
    What a reproduction found.

    :param sheets: Its tables.
    :param notes: Sentences on what they say.
    :param figures: Its figures by name, drawn when they are asked for.
    :param values: What was measured, as plain values for JSON.
    """

    sheets: tuple[Sheet, ...]
    notes: tuple[str, ...] = ()
    figures: Mapping[str, "Callable[[], Figure]"] = field(default_factory=dict)
    values: Any = None


class Reproduction(ABC):
    """
    One table or figure of the paper. A new one is one file with a subclass, and a line in the registry.

    Class attributes: its `name`; its `number` in the paper; in one sentence what it `shows`; the `comparison` it is
    made from, if it is, with the `methods` it needs of that (see `parse_methods`); else how many `queries` of each
    category of the catalogue it takes when nothing is said, 0 for none.
    """

    name: ClassVar[str]
    number: ClassVar[str]
    shows: ClassVar[str]
    comparison: ClassVar[Comparison | None] = None
    methods: ClassVar[tuple[str, ...]] = ()
    queries: ClassVar[int] = 0

    def refusal(self, settings: "Settings") -> str | None:
        """
        Why it cannot be measured with these settings, in one sentence; `None` if it can.

        :param settings: What the user chose.
        """
        return None

    @abstractmethod
    def run(self, session: "Session") -> Outcome:
        """
        Measure it.

        :param session: The data, the models and what was measured already; its settings are not refused.
        """
