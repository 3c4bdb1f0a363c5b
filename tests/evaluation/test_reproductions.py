# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Every table and figure by name, from the command to its files, with a tiny random model on the drawn catalogue."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

import pytest
from PIL import Image

from radical_haystack.evaluation import Results, load_fashioniq, parse_methods
from radical_haystack.evaluation.reproductions import (
    REPRODUCTIONS,
    Report,
    Session,
    Settings,
    reproduce,
    write_document,
)
from radical_haystack.evaluation.reproductions.base import METHODS, VARIANTS
from radical_haystack.evaluation.reproductions.session import alike_methods
from radical_haystack.evaluation.reproductions.set_size import SIZES

NAMES = {
    "main", "efficiency", "ablations", "models", "strategies", "sensitivity", "retrievers", "dynres", "fashioniq",
    "single-image", "reliability", "pareto", "similarity", "set-size", "cases", "evidence",
}  # fmt: skip

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(run_command: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "240")
    return partial(run_command, "reproduce")


@pytest.fixture(scope="module")
def settings(tiny_vlm: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(models=(tiny_vlm,), queries=1, candidates=4, out=tmp_path_factory.mktemp("reproductions"))


@pytest.fixture(scope="module")
def report(settings: Settings) -> Report:
    """All of them at once."""
    return reproduce("all", settings)


def test_the_registry_is_complete(run: Run) -> None:
    assert set(REPRODUCTIONS) == NAMES
    code, printed, _ = run("--list", "--json")
    assert code == 0
    assert {one["name"] for one in json.loads(printed)} == NAMES
    code, printed, _ = run("--list")
    assert code == 0
    for name in NAMES:
        assert REPRODUCTIONS[name].number in printed


def test_all_at_once_shares_rankings(report: Report, settings: Settings) -> None:
    assert [one.reproduction.name for one in report.finished] == list(REPRODUCTIONS)
    assert report.refused == {}
    folders = sorted(folder.name.rsplit("-", 1)[0] for folder in (settings.out / "runs").iterdir())
    assert folders == sorted(["methods", "variants", "fashioniq", *(f"set-size-{size}" for size in SIZES)])
    for folder in (settings.out / "runs").iterdir():
        records = Results.load(folder).records
        once = Counter((record.key, record.keep_ratio) for record in records)
        assert max(once.values()) == 1
    assert {"dense", "radical", "random"} <= set(_methods(settings.out, "methods"))
    assert not {"dense", "radical", "random"} & set(_methods(settings.out, "variants"))


def test_rankings_taken_from_another_comparison_are_those_it_would_have_made(
    report: Report, settings: Settings, tiny_vlm: str
) -> None:
    alone = Session(Settings(models=(tiny_vlm,), queries=1, candidates=4), [REPRODUCTIONS["ablations"]])
    made = alone.compare(VARIANTS)
    both = Session(replace(settings, out=None), [REPRODUCTIONS["similarity"], REPRODUCTIONS["ablations"]])
    both.compare(METHODS)
    taken = both.compare(VARIANTS)
    assert taken.experiment.methods == made.experiment.methods
    assert [entry["order"] for entry in taken.identity()] == [entry["order"] for entry in made.identity()]
    assert [row.difference for row in taken.rows] == [row.difference for row in made.rows]


def test_methods_that_prune_alike_are_ranked_once(tiny_vlm: str) -> None:
    session = Session(Settings(models=(tiny_vlm,), queries=1, candidates=4), [REPRODUCTIONS["strategies"]])
    vlm = session.vlm()
    names = ["radical", "without-dti", "radical:k=4:gap=2", "radical:k=1", "fastv", "radical:k=1:gap=3", "random"]
    assert alike_methods(parse_methods(names), (0.2, 0.1), vlm) == {
        "radical:k=4:gap=2": "radical",
        "radical:k=1:gap=3": "radical:k=1",
    }
    # The six layers of this model leave the strategies no choice.
    results = session.compare(VARIANTS)
    orders = [record.order for record in results.of_variant("radical", 0.2)]
    assert [record.order for record in results.of_variant("radical:strategy=deep-only", 0.2)] == orders
    plain = session.experiment(["radical:strategy=deep-only"], 1)
    assert [record.order for record in session.run("plain", plain).records] == orders


def _methods(out: Path, name: str) -> list[str]:
    (folder,) = (out / "runs").glob(f"{name}-????????")
    return [method.name for method in Results.load(folder).experiment.methods]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_by_its_command(run: Run, tiny_vlm: str, tmp_path: Path, name: str) -> None:
    words = [name, "--model", tiny_vlm, "--candidates", 3, "--keep-ratio", 0.3, "--queries", 1]
    code, printed, errors = run(*words, "--out", tmp_path, "--json")
    assert code == 0, errors
    (one,) = json.loads(printed)["reproductions"]
    assert one["name"] == name
    assert one["command"] == " ".join(["radical-haystack", "reproduce", *map(str, words)])
    for table in one["tables"]:
        assert {len(row) for row in table["rows"]} <= {len(table["columns"])}
    assert any(table["rows"] for table in one["tables"]) or name == "cases"
    assert json.loads((tmp_path / name / "result.json").read_text())["tables"] == one["tables"]
    for file in (tmp_path / name).glob("*.csv"):
        assert file.with_suffix(".tex").exists()
        assert file.with_suffix(".md").exists()
        with file.open(newline="") as opened:
            assert next(csv.reader(opened)) in [table["columns"] for table in one["tables"]]


def test_alone_it_measures_what_it_measures_among_all(report: Report, settings: Settings, tiny_vlm: str) -> None:
    alone = reproduce("dynres", Settings(models=(tiny_vlm,), queries=1, candidates=4))
    among = next(one for one in report.finished if one.reproduction.name == "dynres")
    assert [row[:5] for row in alone.finished[0].outcome.sheets[0].rows] == [
        row[:5] for row in among.outcome.sheets[0].rows
    ]
    assert alone.finished[0].command == among.command


def test_people_read_tables_with_the_papers_value_beside(run: Run, tiny_vlm: str) -> None:
    code, printed, _ = run("main", "--model", tiny_vlm, "--queries", 1, "--candidates", 3, "--keep-ratio", 0.2)
    assert code == 0
    rows = {line.split()[1]: line for line in printed.splitlines() if line.startswith("│")}
    assert "84.04" in rows["dense"]
    assert "83.98" in rows["radical"]
    assert "72.99" in rows["fastv"]
    assert "–" in rows["qi-ei"]
    assert "another model and other data" in printed


def test_set_size_measures_each_size_in_one_prompt(report: Report, settings: Settings) -> None:
    one = next(one for one in report.finished if one.reproduction.name == "set-size")
    for size, row in zip(SIZES, one.outcome.sheets[0].rows, strict=True):
        (folder,) = (settings.out / "runs").glob(f"set-size-{size}-*")
        records = Results.load(folder).records
        assert {len(record.candidates) for record in records} == {size}
        assert {len(record.passes) for record in records} == {1}
        ranks = [record.order.index(record.relevant[0]) + 1 for record in records if record.method == "radical"]
        mean = fmean(1 / rank if rank <= 10 else 0.0 for rank in ranks)
        assert row[0] == str(size)
        assert row[2].startswith(f"{100 * mean:.1f} [")


def test_the_document_has_everything_and_small_pictures(report: Report, settings: Settings, tmp_path: Path) -> None:
    path = write_document(report, tmp_path / "docs" / "results.md")
    text = path.read_text(encoding="utf-8")
    for one in report.finished:
        assert re.search(rf"^## .*: {one.reproduction.name}$", text, re.MULTILINE)
        assert f"    {one.command}\n" in text
        for sheet in one.outcome.sheets:
            assert sheet.markdown().strip() in text
    pictures = re.findall(r"!\[[^\n]*\]\(([^)]+)\)", text)
    assert len(pictures) == len(set(pictures)) >= 6
    for picture in pictures:
        file = path.parent / picture
        assert file.stat().st_size <= 150 * 1024
        assert Image.open(file).mode == "P"
    assert sorted(file.name for file in (path.parent / "images/results").iterdir()) == sorted(
        Path(picture).name for picture in pictures
    )
    assert str(settings.out) not in text
    assert "where it does not win" in text
    assert report.model.revision is not None
    assert report.model.revision[:20] in text


def test_what_cannot_be_measured_is_left_out_of_all_and_refused_alone(fashioniq: Path, tiny_vlm: str) -> None:
    settings = Settings(data="fashioniq", root=str(fashioniq), models=(tiny_vlm,), queries=2, candidates=2)
    for name, part in (("evidence", "drawn catalogue"), ("fashioniq", "--first-stage"), ("single-image", "--records")):
        with pytest.raises(ValueError, match=part):
            reproduce(name, settings)
    assert {name for name in NAMES if REPRODUCTIONS[name].refusal(settings)} == {
        "evidence", "fashioniq", "retrievers", "single-image",
    }  # fmt: skip


def test_real_data_is_measured_by_arguments_alone(run: Run, fashioniq: Path, tiny_vlm: str, tiny_siglip: str) -> None:
    words = ["--data", "fashioniq", "--root", fashioniq, "--model", tiny_vlm, "--first-stage", tiny_siglip]
    code, printed, errors = run("fashioniq", *words, "--candidates", 2, "--seeds", "1,2", "--json")
    assert code == 0, errors
    (one,) = json.loads(printed)["reproductions"]
    dense = one["values"]["summary"][0]
    assert dense["queries"] == len(load_fashioniq(fashioniq).queries)
    assert dense["conditional_queries"] <= dense["queries"]
    assert one["tables"][0]["rows"][1][-1] == "39.79"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "--list"),
        (["nonsense"], "known: main"),
        (["main", "--data", "flickr30k"], "--root"),
        (["main", "--data", "elsewhere"], "known: catalogue"),
        (["main", "--seeds", "x"], "--seeds"),
        (["main", "--keep-ratio", "1.5"], "keep ratio"),
        (["single-image", "--records", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_mistakes_give_one_line(run: Run, words: list[str], part: str) -> None:
    code, printed, errors = run(*words)
    assert code == 2
    assert printed == ""
    (line,) = [line for line in errors.splitlines() if line.startswith("error:")]
    assert part in line
