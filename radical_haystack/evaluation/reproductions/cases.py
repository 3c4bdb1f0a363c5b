# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Figures 6 and 7: what was kept of the candidates where RaDiCal does well, and where it does not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from radical_haystack.evaluation.datasets import DatasetQuery
from radical_haystack.evaluation.records import Record
from radical_haystack.evaluation.reproductions.base import METHODS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet
from radical_haystack.evaluation.results import Results
from radical_haystack.evaluation.running import load_candidates, load_reference
from radical_haystack.viz import retention_overlay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("radical", "fastv")
"""The methods whose kept tokens are drawn."""
BEST = 5
"""How many of the first candidates in RaDiCal's order are drawn."""

Ranks = Mapping[str, int]
"""By method, the rank of the target."""


@dataclass(frozen=True)
class Rule:
    """
    How a query is chosen: of those that qualify, the one that is worst for a method; of equal ones the first id.

    :param name: What the picture is called.
    :param says: The rule in words.
    :param qualifies: Whether a query may be chosen.
    :param worst: The method.
    """

    name: str
    says: str
    qualifies: Callable[[Ranks], bool]
    worst: str


RULES = (
    Rule(
        "agrees",
        "dense and RaDiCal rank the target first and FastV does not",
        lambda ranks: ranks["dense"] == ranks["radical"] == 1 < ranks["fastv"],
        "fastv",
    ),
    Rule(
        "fails",
        "dense ranks the target first and RaDiCal does not",
        lambda ranks: ranks["dense"] == 1 < ranks["radical"],
        "radical",
    ),
)


class Cases(Reproduction):
    """Case studies."""

    name = "cases"
    number = "figures 6 and 7"
    shows = "Which tokens are kept for one query where RaDiCal does well and one where it does not, chosen by rule."
    comparison = METHODS
    methods = ("dense", "radical", "fastv", "random")

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(METHODS)
        ranks = target_ranks(results, session.keep_ratio, self.methods)
        queries = {query.id: query for query in session.dataset(results.experiment).queries}
        figures: dict[str, Callable[[], Figure]] = {}
        rows, notes = [], []
        for rule in RULES:
            chosen = choose(ranks, rule)
            if chosen is None:
                notes.append(f"There is no query here where {rule.says}.")
                continue
            query = queries[chosen]
            rows.append((
                rule.name,
                chosen,
                f"{'(reference) ' if query.reference else ''}{query.text}",
                *(str(ranks[chosen].get(method, MISSING)) for method in self.methods),
            ))  # fmt: skip
            notes.append(
                f"Picture “{rule.name}”: of the queries where {rule.says}, the one that {rule.worst} ranks lowest, of "
                f"equal ones the first by id ({chosen})."
            )
            figures[rule.name] = _picture(session, results, query, rule)
        sheet = Sheet(
            f"Rank of the target, R = {session.keep_ratio:g}",
            ("picture", "query", "text", *self.methods),
            tuple(rows),
        )
        notes.append(
            "Framed: the target. Dimmed: tokens that were dropped. Below each image: its rank and tokens kept."
        )
        return Outcome((sheet,), tuple(notes), figures, [dict(zip(sheet.columns, row, strict=True)) for row in rows])


def target_ranks(results: Results, keep_ratio: float, methods: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """
    By query and method the rank of its target, for the first seed and the queries whose target is a candidate.

    :param results: The results.
    :param keep_ratio: The keep ratio.
    :param methods: The methods.
    """
    found: dict[str, dict[str, int]] = {}
    for method in methods:
        for record in results.of_variant(method, 1.0 if method == "dense" else keep_ratio):
            if record.seed == results.experiment.seeds[0] and record.target_rank is not None:
                found.setdefault(record.query, {})[method] = record.target_rank
    return found


def choose(ranks: Mapping[str, Ranks], rule: Rule) -> str | None:
    """
    The query that a rule chooses; `None` if none qualifies.

    :param ranks: By query, the ranks of its target.
    :param rule: The rule.
    """
    qualified = [query for query in sorted(ranks) if rule.qualifies(ranks[query])]
    return max(qualified, key=lambda query: ranks[query][rule.worst], default=None)


def _picture(session: Session, results: Results, query: DatasetQuery, rule: Rule) -> "Callable[[], Figure]":
    """Rank once more, this time with what was kept where."""
    dataset, vlm, experiment = session.dataset(results.experiment), session.vlm(), results.experiment
    record = _record(results, query.id)
    images, _ = load_candidates(dataset, record.candidates)
    reference = load_reference(dataset, query)
    rankings = {
        method: vlm.rank(
            query.text,
            list(images.values()),
            reference,
            pruner=method,
            keep_ratio=session.keep_ratio,
            window_size=experiment.window_size,
            window_step=experiment.window_step,
        )
        for method in SHOWN
    }
    truth = {place for place, name in enumerate(images) if name in record.relevant}
    first = rankings["radical"].order
    order = dict.fromkeys([*first[:BEST], rankings["fastv"].order[0], *sorted(truth)])
    return partial(
        retention_overlay,
        {"RaDiCal": rankings["radical"], "FastV": rankings["fastv"]},
        order=list(order),
        truth=truth,
        labels=[f"candidate {place + 1}" for place in range(len(images))],
        title=f"{'Reference image and ' if query.reference else ''}“{query.text}” ({rule.name})",
    )


def _record(results: Results, query: str) -> Record:
    return next(record for record in results.records if record.query == query)
