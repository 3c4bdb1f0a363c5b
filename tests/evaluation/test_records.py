# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Results as they are stored: nothing that was written is lost, wherever the writing stopped."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.evaluation import Pass, Record, Skipped, Stage
from radical_haystack.evaluation.folder import CONFIG, ExperimentFolder, ResumeError
from radical_haystack.evaluation.records import ResultsFile, entry_from_dict, read_results


def record(query: str = "q", seed: int = 42, method: str = "radical", keep_ratio: float = 0.2) -> Record:
    return Record(
        seed=seed,
        query=query,
        category="dress",
        method=method,
        keep_ratio=keep_ratio,
        candidates=("a", "b", "c"),
        order=("b", "a", "c"),
        scores=(-1.5, -0.1, None),
        score_kind="log_probability",
        relevant=("a",),
        target_rank=2,
        kept_tokens=(3, 1, 0),
        total_tokens=(10, 10, 0),
        passes=(Pass(20, 20, 30, (Stage(4, 20, 9, {"entropy": 0.8, "alpha": 0.25}), Stage(7, 9, 4))),),
        seconds={"prefill": 0.125},
        unreadable={"c": "Document 'c' cannot be read."},
        measured={"evidence": {"end": 0.5}},
    )


ENTRIES = [
    record("one"),
    record("zwei é\n"),
    Skipped(42, "three", "dress", "No image."),
    record("four", keep_ratio=0.1),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_json_brings_it_back(entry: Record | Skipped) -> None:
    assert entry_from_dict(json.loads(json.dumps(entry.to_dict()))) == entry


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("results") / "results.jsonl"
    with ResultsFile(path) as file:
        for entry in ENTRIES:
            file.append([entry])
    return path.read_bytes()


@given(data=st.data())
def test_a_file_cut_anywhere_loses_one_line_at_most(
    data: st.DataObject, whole: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    length = data.draw(st.integers(0, len(whole)))
    path = tmp_path_factory.mktemp("cut") / "results.jsonl"
    path.write_bytes(whole[:length])
    left = ENTRIES[: whole[:length].count(b"\n")]
    assert read_results(path) == left
    with ResultsFile(path) as file:
        assert file.entries == left
        file.append(ENTRIES[len(left) :])
    assert path.read_bytes() == whole


def test_a_line_that_is_no_result_is_named(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for wrong in (b"not json\n", b"{}\n", b"[1]\n", b'{"seed": 1}\n'):
        path.write_bytes(whole + wrong)
        with pytest.raises(ValueError, match="results.jsonl', line 5 is not a result of an evaluation"):
            read_results(path)
        with pytest.raises(ValueError, match="line 5"):
            ResultsFile(path)
        assert path.read_bytes() == whole + wrong


def test_what_is_appended_is_there_at_once(tmp_path: Path) -> None:
    with ResultsFile(tmp_path / "results.jsonl") as file:
        file.append([ENTRIES[0]])
        assert read_results(file.path) == [ENTRIES[0]]


def test_kept_share() -> None:
    assert record().kept_share == 4 / 20
    empty = Record.from_dict({**record().to_dict(), "kept_tokens": (0, 0, 0), "total_tokens": (0, 0, 0)})
    assert math.isnan(empty.kept_share)


class TestFolder:
    def test_refuses_another_configuration_by_its_first_difference(self, tmp_path: Path) -> None:
        folder = ExperimentFolder(tmp_path)
        config: dict[str, Any] = {
            "experiment": {"keep_ratios": [0.2], "methods": [{"name": "dense"}], "model": "m"},
            "measure": None,
        }
        folder.check(config)
        folder.write_config(config, {"python": "3"})
        folder.check(config)
        for changed, message in (
            ({"keep_ratios": [0.1]}, r"experiment.keep_ratios\[0\] is 0.2 there and 0.1 here"),
            ({"keep_ratios": [0.2, 0.1]}, r"experiment.keep_ratios is \[0.2\] there and \[0.2, 0.1\] here"),
            ({"methods": [{"name": "radical"}]}, r'experiment.methods\[0\].name is "dense" there and "radical" here'),
            ({"model": "x" * 100}, 'experiment.model is "m" there and "xxx.*[.][.][.] here'),
            ({"new": 1}, "experiment.new is null there and 1 here"),
        ):
            with pytest.raises(ResumeError, match=message):
                folder.check({**config, "experiment": {**config["experiment"], **changed}})
        with pytest.raises(ResumeError, match='measure is null there and "mine" here'):
            folder.check({"measure": "mine"})

    def test_tuples_are_lists(self, tmp_path: Path) -> None:
        folder = ExperimentFolder(tmp_path)
        folder.write_config({"experiment": {"seeds": (1, 2)}}, {})
        folder.check({"experiment": {"seeds": (1, 2)}})

    def test_environments_are_kept_beside_each_other(self, tmp_path: Path) -> None:
        folder = ExperimentFolder(tmp_path / "new")
        for version in ("1", "1", "2"):
            folder.write_config({"experiment": {}}, {"torch": version})
        config = folder.read_config()
        assert config is not None
        assert config["environments"] == [{"torch": "1"}, {"torch": "2"}]
        assert sorted(path.name for path in folder.path.iterdir()) == [CONFIG]

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", "3"])
    def test_broken_configuration(self, tmp_path: Path, text: str) -> None:
        (tmp_path / CONFIG).write_text(text)
        with pytest.raises(ResumeError, match=CONFIG):
            ExperimentFolder(tmp_path).read_config()

    def test_results_without_a_configuration(self, tmp_path: Path) -> None:
        ExperimentFolder(tmp_path).results.write_text("")
        with pytest.raises(ResumeError, match="has results, but no config.json"):
            ExperimentFolder(tmp_path).check({"experiment": {}})
