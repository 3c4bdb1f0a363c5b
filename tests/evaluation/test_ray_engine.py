# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The Ray engine on two workers of this machine: the same results as in one process."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from radical_haystack.evaluation import Experiment, Record, Results, measure_evidence, parse_methods, run_experiment
from radical_haystack.evaluation import ray_engine as engine

EXPERIMENT = Experiment(
    parse_methods(["dense,radical,random"]), queries=2, candidates=4, keep_ratios=(0.5,), seeds=(1, 2)
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One cluster for all tests here: starting one takes long."""
    engine._connect(engine._import_ray(), 2)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def experiment(tiny_vlm: str) -> Experiment:
    return Experiment.from_dict({**EXPERIMENT.to_dict(), "model": tiny_vlm})


def comparable(results: Results) -> list[object]:
    return [
        (*record.key, record.candidates, record.order, record.kept_tokens, record.target_rank, record.measured)
        for record in results.records
    ]


@pytest.mark.usefixtures("cluster")
def test_two_workers_give_the_same_as_one_process(experiment: Experiment, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    shared = run_experiment(
        experiment,
        tmp_path / "ray",
        measure=measure_evidence,
        engine="ray",
        workers=2,
        device="cpu",
        progress=lambda step, *at: steps.append(at) if step == "Ranking" else None,
    )
    local = run_experiment(experiment, tmp_path / "local", measure=measure_evidence, device="cpu")
    assert comparable(shared) == comparable(local)
    for one, other in zip(shared.records, local.records, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-5)
        assert one.passes[0].text == other.passes[0].text
        assert one.seconds["prefill"] > 0
    assert shared.model == local.model
    assert steps[0] == (0, steps[-1][1])
    assert steps[-1] == (len(local.records),) * 2
    config = json.loads((tmp_path / "ray" / "config.json").read_text())
    assert config["environments"][0]["workers"] == 2

    # What one engine has begun the other ends.
    file = tmp_path / "ray" / "results.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:30])
    resumed = run_experiment(
        experiment, tmp_path / "ray", measure=measure_evidence, engine="ray", workers=2, device="cpu"
    )
    assert comparable(resumed) == comparable(local)
    assert len(file.read_bytes().splitlines()) == len(lines)
    assert file.read_bytes().startswith(b"".join(lines[:3]))
    assert all(isinstance(record, Record) for record in resumed.records)


@pytest.mark.usefixtures("cluster")
def test_a_mistake_in_a_worker_is_one_here(experiment: Experiment) -> None:
    wrong = Experiment.from_dict({**experiment.to_dict(), "model": "/no/such/model"})
    with pytest.raises((OSError, ValueError), match="/no/such/model"):
        run_experiment(wrong, engine="ray", workers=1, device="cpu")
    assert ray.is_initialized()  # it was not the engine's own cluster


def test_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)  # whatever has set it before
    engine._import_ray()
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_at_least_one_worker(experiment: Experiment) -> None:
    with pytest.raises(ValueError, match="At least 1 worker"):
        run_experiment(experiment, engine="ray", workers=0)


def test_without_ray(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"radical-haystack\[ray\]"):
        run_experiment(experiment, engine="ray")
