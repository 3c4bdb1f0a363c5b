# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""TREC files: written, read back, and read alike by `ir-measures`."""

from itertools import pairwise
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.evaluation import (
    evaluate_run,
    read_trec_qrels,
    read_trec_run,
    write_trec_qrels,
    write_trec_run,
)

words = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=8)
runs = st.dictionaries(words, st.lists(words, unique=True, min_size=1, max_size=30), max_size=5)
judgements = st.dictionaries(words, st.dictionaries(words, st.integers(0, 20), min_size=1), max_size=5)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trec") / "file.txt"


@given(run=runs)
def test_runs_come_back_in_their_order(file: Path, run: dict[str, list[str]]) -> None:
    write_trec_run(file, run, tag="mine")
    assert read_trec_run(file) == run
    scored = list(ir_measures.read_trec_run(str(file))) if run else []
    for query, documents in run.items():
        pairs = [(entry.score, entry.doc_id) for entry in scored if entry.query_id == query]
        assert [document for _, document in pairs] == documents
        assert all(high > low for (high, _), (low, _) in pairwise(pairs))


@given(qrels=judgements)
def test_judgements_come_back(file: Path, qrels: dict[str, dict[str, int]]) -> None:
    write_trec_qrels(file, qrels)
    assert read_trec_qrels(file) == qrels
    theirs: dict[str, dict[str, int]] = {}
    for entry in ir_measures.read_trec_qrels(str(file)) if qrels else []:
        theirs.setdefault(entry.query_id, {})[entry.doc_id] = entry.relevance
    assert theirs == qrels


def test_form(tmp_path: Path) -> None:
    write_trec_run(tmp_path / "run", {"q1": ["b", "a"], "q2": []}, tag="mine")
    assert (tmp_path / "run").read_text() == "q1 Q0 b 1 2 mine\nq1 Q0 a 2 1 mine\n"
    write_trec_qrels(tmp_path / "qrels", {"q1": {"a": 10, "b": 0}})
    assert (tmp_path / "qrels").read_text() == "q1 0 a 10\nq1 0 b 0\n"


def test_metrics_of_the_files_are_those_of_the_run(tmp_path: Path) -> None:
    run, qrels = {"q": ["a", "z", "m"], "p": ["z", "b"]}, {"q": {"z": 3, "m": 1}, "p": {"b": 1}}
    write_trec_run(tmp_path / "run", run)
    write_trec_qrels(tmp_path / "qrels", qrels)
    measures = [ir_measures.RR @ 10, ir_measures.R @ 1, ir_measures.R @ 5, ir_measures.R @ 10]
    theirs = ir_measures.calc_aggregate(
        measures,
        list(ir_measures.read_trec_qrels(str(tmp_path / "qrels"))),
        list(ir_measures.read_trec_run(str(tmp_path / "run"))),
    )
    ours = evaluate_run(read_trec_run(tmp_path / "run"), read_trec_qrels(tmp_path / "qrels"))
    expected = [theirs[measure] for measure in measures]
    assert list(ours.unconditional["overall"].means.values()) == pytest.approx(expected)
    assert ours == evaluate_run(run, qrels)


def test_runs_of_others_are_ordered_as_trec_eval_does(tmp_path: Path) -> None:
    """By score, whatever the ranks and lines say; the higher id first among equals."""
    lines = ["q Q0 a 1 0.5 t", "q Q0 c 2 0.5 t", "", "q Q0 low 3 -1e3 t", "q\tQ0\tbest 9  7 t", "q Q0 b 5 0.5 t"]
    (tmp_path / "run").write_text("\n".join(lines))
    assert read_trec_run(tmp_path / "run") == {"q": ["best", "c", "b", "a", "low"]}
    qrels = {"q": {"b": 1}}
    theirs = ir_measures.calc_aggregate([ir_measures.RR], qrels, list(ir_measures.read_trec_run(str(tmp_path / "run"))))
    assert theirs[ir_measures.RR] == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", ["", "a b", "a\tb", "a\n", " a", "a\u00a0b"])
def test_names_that_do_not_fit_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    with pytest.raises(ValueError, match="white space"):
        write_trec_run(path, {"q": [name]})
    with pytest.raises(ValueError, match="white space"):
        write_trec_run(path, {name: ["d"]})
    with pytest.raises(ValueError, match="white space"):
        write_trec_run(path, {"q": ["d"]}, tag=name)
    with pytest.raises(ValueError, match="white space"):
        write_trec_qrels(path, {"q": {name: 1}})
    with pytest.raises(ValueError, match="white space"):
        write_trec_qrels(path, {name: {"d": 1}})
    assert not path.exists()


def test_a_document_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'d' twice for the query 'q'"):
        write_trec_run(tmp_path / "run", {"q": ["d", "e", "d"]})
    (tmp_path / "run").write_text("q Q0 d 1 2 t\nq Q0 d 2 1 t\n")
    with pytest.raises(ValueError, match="'d' twice for the query 'q'"):
        read_trec_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("read", "text", "found"),
    [
        (read_trec_run, "q Q0 d 1 2 t\nq Q0 d2 1 t\n", "q Q0 d2 1 t"),
        (read_trec_run, "\nq Q0 d 1 high t", "high"),
        (read_trec_qrels, "q 0 d 1\nq 0 d\n", "q 0 d"),
        (read_trec_qrels, "q 0 d 1\nq 0 e 1.5\n", "1.5"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, read, text: str, found: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(ValueError, match=f"file', line 2: .*'{found}'"):
        read(tmp_path / "file")
