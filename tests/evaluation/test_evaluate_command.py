# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""`radical-haystack evaluate`: what it prints and writes, how it goes on, and one plain line for mistakes."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from radical_haystack.evaluation import Results
from radical_haystack.pruning import PRUNERS

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(run_command: Run) -> Run:
    return partial(run_command, "evaluate")


def small(model: str) -> list[object]:
    return ["--model", model, "--device", "cpu", "--queries", 2, "--candidates", 3]


def test_json_and_folder(run: Run, tiny_vlm: str, tmp_path: Path) -> None:
    words = [*small(tiny_vlm), "--methods", "dense", "radical:k=2", "--keep-ratio", 0.5, 0.25, "--seeds", "1,2"]
    code, out, err = run(*words, "--out", tmp_path / "out", "--json")
    assert code == 0, err
    result = json.loads(out)
    overall = [row for row in result["summary"] if row["group"] == "overall"]
    assert [(row["method"], row["keep_ratio"]) for row in overall] == [
        ("dense", 1.0), ("radical:k=2", 0.5), ("radical:k=2", 0.25),
    ]  # fmt: skip
    assert all(0 <= row["unconditional"]["MRR@10"]["low"] <= row["unconditional"]["MRR@10"]["mean"] for row in overall)
    assert overall[1]["measured"]["evidence.end.chance"]["mean"] == pytest.approx(overall[1]["kept_share"])
    assert result["experiment"]["seeds"] == [1, 2]
    assert {Path(file).name for file in result["files"]} >= {"summary.csv", "summary.tex", "pareto.png", "qrels.txt"}
    assert all(Path(file).is_file() for file in result["files"])
    stored = Results.load(tmp_path / "out")
    assert len(stored.records) == 12
    lines = (tmp_path / "out" / "results.jsonl").read_bytes()

    code, out, err = run(*words, "--out", tmp_path / "out")
    assert code == 0, err
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == lines
    assert "radical:k=2" in out
    assert str(tmp_path / "out") in out

    code, out, err = run(*words, "--out", tmp_path / "out", "--candidates", 4)
    assert (code, out) == (2, "")
    (error,) = [line for line in err.splitlines() if line.startswith("error:")]
    assert "experiment.candidates is 3 there and 4 here" in error


def test_a_data_set_of_one_s_own(run: Run, tiny_vlm: str, fashioniq: Path) -> None:
    (fashioniq / "images" / "D4.jpg").unlink()
    code, out, err = run(
        *small(tiny_vlm), "--data", "fashioniq", "--root", fashioniq, "--category", "dress", "--queries", 0,
        "--methods", "dense,random", "--json",
    )  # fmt: skip
    assert code == 0, err
    result = json.loads(out)
    assert [skipped["query"] for skipped in result["skipped"]] == ["dress/2"]
    assert result["summary"][0]["queries"] == 2
    assert result["summary"][0]["measured"] == {}


def test_table(run: Run, tiny_vlm: str) -> None:
    code, out, err = run(*small(tiny_vlm), "--methods", "dense")
    assert code == 0, err
    assert "2 queries of catalogue, 3 candidates each" in " ".join(out.split())
    assert "error" not in err


def test_all_are_all_pruners(run: Run, tiny_vlm: str, tmp_path: Path) -> None:
    words = ["--model", tiny_vlm, "--device", "cpu", "--queries", 1, "--candidates", 3]
    code, out, err = run(*words, "--methods", "all", "--keep-ratio", 0.5, "--json")
    assert code == 0, err
    assert [row["method"] for row in json.loads(out)["summary"]] == list(PRUNERS)


def test_interrupted_it_says_how_to_go_on(
    run: Run, tiny_vlm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("radical_haystack.evaluation.run_experiment", interrupt)
    code, out, err = run(*small(tiny_vlm), "--out", tmp_path / "out")
    assert (code, out) == (130, "")
    assert "the same command goes on" in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--data", "flickr8k"], ["flickr8k", "catalogue, fashioniq, flickr30k, mscoco"]),
        (["--data", "mscoco"], ["mscoco", "folder"]),
        (["--data", "mscoco", "--root", "/no/such/folder"], ["/no/such/folder"]),
        (["--methods", "magic"], ["magic", "radical"]),
        (["--methods", "fastv:k=2"], ["fastv"]),
        (["--keep-ratio", "0"], ["keep ratio", "0"]),
        (["--keep-ratio", "lots"], ["--keep-ratio"]),
        (["--seeds", "x"], ["--seeds", "x"]),
        (["--queries", "-1"], ["--queries"]),
        (["--candidates", "0"], ["--candidates"]),
        (["--window-size", "53"], ["--window-size"]),
        (["--scoring", "magic"], ["magic", "logits"]),
        (["--engine", "spark"], ["spark", "local, ray"]),
        (["--pool", "3"], ["pool of 3"]),
        (["--category", "shoes", "--queries", "1"], ["shoes", "text"]),
        (["--model", "/no/such/model", "--queries", "1"], ["/no/such/model"]),
        (["--first-stage", "jina-embeddings-v4", "--queries", "1", "--candidates", "2"], ["trust"]),
    ],
)
def test_mistakes_give_one_line(run: Run, words: list[str], parts: list[str], tmp_path: Path) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    errors = [line for line in err.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    for part in parts:
        assert part in errors[0]
    assert "Traceback" not in err
