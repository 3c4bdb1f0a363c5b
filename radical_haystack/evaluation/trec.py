# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Runs and relevance judgements as files in the format of TREC, which every evaluation tool reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

_Number = TypeVar("_Number", int, float)

Run = Mapping[str, Sequence[str]]
"""By query id, the ids of the documents found, best first."""
Qrels = Mapping[str, Mapping[str, int]]
"""By query id and document id, the grade of relevance: 0 for none."""


def write_trec_run(path: str | Path, run: Run, *, tag: str = "radical-haystack") -> None:
    """
    Write a run: `query Q0 document rank score tag`.

    Tools order by score and break ties in their own ways; so the score written is one that falls by 1 with each rank,
    to 1 at the last. A query that found nothing leaves no line.

    :param path: The file.
    :param run: The run.
    :param tag: Name of the run.
    :raises ValueError: If the tag or an id has white space in it or is empty, or a query has a document twice.
    """
    check_run(run)
    _check_words([tag, *run, *(document for documents in run.values() for document in documents)])
    lines = [
        f"{query} Q0 {document} {rank} {len(documents) - rank + 1} {tag}\n"
        for query, documents in run.items()
        for rank, document in enumerate(documents, start=1)
    ]
    Path(path).write_text("".join(lines), encoding="utf-8")


def read_trec_run(path: str | Path) -> dict[str, list[str]]:
    """
    Read a run. The order is that of the scores; of equal ones the higher document id comes first, as in `trec_eval`.

    :param path: The file.
    :returns: By query id, the ids of the documents, best first.
    :raises ValueError: If a line is not as it should be; the message names it.
    """
    scored: dict[str, list[tuple[float, str]]] = {}
    for place, query, _, document, _, score, _ in _lines(path, "query Q0 document rank score tag"):
        scored.setdefault(query, []).append((_number(float, score, place), document))
    run = {query: [document for _, document in sorted(pairs, reverse=True)] for query, pairs in scored.items()}
    check_run(run)
    return run


def write_trec_qrels(path: str | Path, qrels: Qrels) -> None:
    """
    Write relevance judgements: `query 0 document grade`.

    :param path: The file.
    :param qrels: The judgements.
    :raises ValueError: If an id has white space in it or is empty.
    """
    _check_words([*qrels, *(document for grades in qrels.values() for document in grades)])
    lines = [f"{query} 0 {document} {grade}\n" for query, grades in qrels.items() for document, grade in grades.items()]
    Path(path).write_text("".join(lines), encoding="utf-8")


def read_trec_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """
    Read relevance judgements.

    :param path: The file.
    :returns: By query id and document id, the grade.
    :raises ValueError: If a line is not as it should be; the message names it.
    """
    qrels: dict[str, dict[str, int]] = {}
    for place, query, _, document, grade in _lines(path, "query 0 document grade"):
        qrels.setdefault(query, {})[document] = _number(int, grade, place)
    return qrels


def check_run(run: Run) -> None:
    """
    Refuse a run that has a document twice for one query.

    :param run: The run.
    :raises ValueError: If there is one; the message names it.
    """
    for query, documents in run.items():
        if len(set(documents)) < len(documents):
            twice = next(document for document in documents if documents.count(document) > 1)
            raise ValueError(f"The run has the document '{twice}' twice for the query '{query}'.")


def _lines(path: str | Path, form: str) -> Iterator[tuple[str, ...]]:
    """The place and the words of each line that is not blank."""
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), start=1):
        words = line.split()
        if words and len(words) != len(form.split()):
            raise ValueError(f"'{path}', line {number}: expected '{form}', found {line!r}.")
        if words:
            yield f"'{path}', line {number}", *words


def _number(kind: Callable[[str], _Number], word: str, place: str) -> _Number:
    try:
        return kind(word)
    except ValueError as error:
        raise ValueError(f"{place}: expected a number, found {word!r}.") from error


def _check_words(words: Iterable[str]) -> None:
    for word in words:
        if word.split() != [word]:
            raise ValueError(f"TREC files cannot hold the name {word!r}: it is empty or has white space in it.")
