# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Experiments on a tiny random model: what the runner must keep whatever the model is, and what it stores."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from radical_haystack.evaluation import (
    CatalogueDataset,
    Dataset,
    DatasetQuery,
    Experiment,
    Method,
    Record,
    Results,
    ResumeError,
    evaluate_run,
    load_catalogue,
    load_fashioniq,
    measure_evidence,
    parse_methods,
    retrieve_pools,
    run_experiment,
)
from radical_haystack.evaluation.environment import decoder_shape
from radical_haystack.evaluation.results import pass_cost
from radical_haystack.pipelines.first_stages import first_stage_of
from radical_haystack.pruning import PRUNERS, PruningSchedule, prefill_cost
from radical_haystack.vlm import ListwiseVLM, Ranking
from tests.vlm.conftest import build_model, build_processor

SCHEDULE = PruningSchedule.from_entropies((0.9, 0.8, 0.5, 0.95, 0.7, 0.6), keep_ratio=0.5, k=2, first_layer=1)
METHODS = parse_methods(["dense,radical,random,visionzip,lowres,radical:layers=1+3"])
EXPERIMENT = Experiment(METHODS, queries=3, candidates=4, keep_ratios=(0.5, 0.25), seeds=(1, 2))


@pytest.fixture(scope="module")
def vlm(tiny_vlm: str) -> ListwiseVLM:
    return ListwiseVLM.load(tiny_vlm, device="cpu", schedule=SCHEDULE, num_pruning_layers=2)


@pytest.fixture(scope="module")
def catalogue() -> CatalogueDataset:
    return load_catalogue(queries=3, candidates=4)


@pytest.fixture(scope="module")
def results(vlm: ListwiseVLM, catalogue: CatalogueDataset) -> Results:
    return run_experiment(EXPERIMENT, vlm=vlm, dataset=catalogue, measure=measure_evidence)


class Stop(Exception):
    pass


def stop_after(rankings: int) -> Any:
    def progress(step: str, done: int, total: int) -> None:
        if step == "Ranking" and done >= rankings:
            raise Stop

    return progress


def test_every_query_is_ranked_by_every_method_for_every_seed(results: Results) -> None:
    keys = [record.key for record in results.records]
    expected = {
        (seed, query.id, method.name, ratio)
        for seed in (1, 2)
        for query in load_catalogue(queries=3, candidates=4).sample(3, seed=seed).queries
        for method in METHODS
        for ratio in ((1.0,) if method.is_dense else (0.5, 0.25))
    }
    assert len(keys) == len(set(keys))
    assert set(keys) == expected
    for record in results.records:
        assert sorted(record.order) == sorted(record.candidates)
        places = [record.candidates.index(name) for name in record.order]
        assert [record.scores[place] for place in places] == sorted(record.scores, reverse=True)
        assert record.target_rank == record.order.index(record.relevant[0]) + 1
        assert record.seconds["prefill"] > 0
        assert record.seconds["rank"] >= record.seconds["prefill"]


def test_dense_is_what_rank_gives(results: Results, vlm: ListwiseVLM, catalogue: CatalogueDataset) -> None:
    for seed in (1, 2):
        run = {}
        for query in catalogue.sample(3, seed=seed).queries:
            names = catalogue.candidates[query.id]
            images = [catalogue.image(catalogue.by_id[name]) for name in names]
            reference = catalogue.image(query.reference) if query.reference else None
            run[query.id] = [names[place] for place in vlm.rank(query.text, images, reference, pruner=None).order]
        assert results.run("dense", 1.0, seed) == run
        qrels = {query: catalogue.qrels[query] for query in run}
        measured = evaluate_run(run, qrels, relevant_from=catalogue.relevant_from)
        found = results.per_query("dense", 1.0)
        assert {query: found[seed, query] for query in run} == measured.per_query


def test_means_are_those_of_evaluate_run(vlm: ListwiseVLM, catalogue: CatalogueDataset) -> None:
    experiment = replace(EXPERIMENT, methods=parse_methods(["dense,random"]), queries=None, seeds=(7,))
    results = run_experiment(experiment, vlm=vlm, dataset=catalogue)
    measured = evaluate_run(
        results.run("random", 0.25, 7),
        catalogue.qrels,
        categories=catalogue.categories,
        relevant_from=catalogue.relevant_from,
    )
    assert results.groups == ("overall", "composed", "text")
    for group in results.groups:
        row = results.row("random", 0.25, group)
        assert (row.queries, row.rankings) == (measured.unconditional[group].queries,) * 2
        for metric, value in measured.unconditional[group].means.items():
            assert row.unconditional[metric].mean == pytest.approx(value)
            assert row.unconditional[metric].low <= value <= row.unconditional[metric].high + 1e-12
            assert row.conditional[metric].mean == pytest.approx(measured.conditional[group].means[metric])


def test_keeping_everything_is_dense(vlm: ListwiseVLM, catalogue: CatalogueDataset) -> None:
    experiment = replace(EXPERIMENT, methods=parse_methods(["dense,radical,random"]), keep_ratios=(1.0,), seeds=(1,))
    results = run_experiment(experiment, vlm=vlm, dataset=catalogue)
    for name in ("radical", "random"):
        for record, dense in zip(results.of_variant(name, 1.0), results.of_variant("dense", 1.0), strict=True):
            assert (record.order, record.scores, record.kept_share) == (dense.order, dense.scores, 1.0)
        row = results.row(name)
        assert row.difference.mean == 0
        assert row.flops_saved_pct <= 0  # what scoring costs
        assert row.kv_saved_pct == 0


def test_the_order_of_methods_changes_nothing(results: Results, tiny_vlm: str, catalogue: CatalogueDataset) -> None:
    fresh = ListwiseVLM.load(tiny_vlm, device="cpu", schedule=SCHEDULE, num_pruning_layers=2)
    experiment = replace(EXPERIMENT, methods=METHODS[::-1], keep_ratios=(0.25, 0.5))
    turned = run_experiment(experiment, vlm=fresh, dataset=catalogue, measure=measure_evidence)
    by_key = {record.key: replace(record, seconds={}) for record in turned.records}
    assert by_key == {record.key: replace(record, seconds={}) for record in results.records}
    for row in results.rows:
        other = turned.row(row.method, row.keep_ratio, row.group)
        assert (other.unconditional, other.difference, other.measured) == (
            row.unconditional,
            row.difference,
            row.measured,
        )


def test_interrupted_anywhere_it_goes_on(
    results: Results, vlm: ListwiseVLM, catalogue: CatalogueDataset, tmp_path: Path
) -> None:
    stored = None
    for rankings in (0, 1, 2, 9, 30, 40):
        with pytest.raises(Stop):
            run_experiment(
                EXPERIMENT,
                tmp_path,
                vlm=vlm,
                dataset=catalogue,
                measure=measure_evidence,
                progress=stop_after(rankings),
            )
        before, stored = stored, (tmp_path / "results.jsonl").read_bytes()
        assert before is None or stored.startswith(before)
    resumed = run_experiment(EXPERIMENT, tmp_path, vlm=vlm, dataset=catalogue, measure=measure_evidence)
    assert resumed.identity() == results.identity()
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert len(lines) == len(results.records)
    again = run_experiment(EXPERIMENT, tmp_path, vlm=vlm, dataset=catalogue, measure=measure_evidence)
    assert (tmp_path / "results.jsonl").read_text().splitlines() == lines
    assert again.records == resumed.records == Results.load(tmp_path).records
    assert again.rows == resumed.rows


SLOW = """
import sys, time
from radical_haystack.evaluation import Experiment, load_catalogue, parse_methods, run_experiment
from radical_haystack.vlm import ListwiseVLM
from tests.evaluation.test_run_experiment import EXPERIMENT, SCHEDULE

model, folder, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
vlm = ListwiseVLM.load(model, device="cpu", schedule=SCHEDULE, num_pruning_layers=2)
rank, calls = vlm.rank, []

def rank_then_wait(*args, **kwargs):
    ranking = rank(*args, **kwargs)
    calls.append(ranking)
    if len(calls) == last:
        print("waiting", flush=True)
        time.sleep(600)
    return ranking

vlm.rank = rank_then_wait
run_experiment(EXPERIMENT, folder, vlm=vlm, dataset=load_catalogue(queries=3, candidates=4))
"""


def test_killed_it_loses_the_ranking_in_flight(
    vlm: ListwiseVLM, tiny_vlm: str, catalogue: CatalogueDataset, tmp_path: Path
) -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", SLOW, tiny_vlm, str(tmp_path / "killed"), "8"]
    process = subprocess.Popen(
        words, cwd=root, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    file = tmp_path / "killed" / "results.jsonl"
    stored = file.read_bytes()
    assert stored.endswith(b"\n")
    # Seven rankings were done; those that two seeds share have two lines.
    assert len({json.dumps([line["query"], line["method"], line["keep_ratio"]]) for line in lines_of(file)}) >= 4
    assert len(Results.load(file.parent).records) == len(stored.splitlines())
    file.write_bytes(stored[:-20])  # and the machine stopped in the middle of a line
    resumed = run_experiment(EXPERIMENT, tmp_path / "killed", vlm=vlm, dataset=catalogue)
    whole = run_experiment(EXPERIMENT, tmp_path / "whole", vlm=vlm, dataset=catalogue)
    assert resumed.identity() == whole.identity()
    assert file.read_bytes().startswith(stored[: stored[:-20].rindex(b"\n") + 1])


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_another_experiment_is_refused(vlm: ListwiseVLM, catalogue: CatalogueDataset, tmp_path: Path) -> None:
    experiment = replace(EXPERIMENT, methods=parse_methods(["dense"]), queries=1, seeds=(1,))
    run_experiment(experiment, tmp_path, vlm=vlm, dataset=catalogue)
    stored = (tmp_path / "results.jsonl").read_bytes()
    for changed, dataset, message in (
        (replace(experiment, keep_ratios=(0.5,)), catalogue, "experiment.keep_ratios is .* there"),
        (replace(experiment, seeds=(3,)), catalogue, r"experiment.seeds\[0\] is 1 there and 3 here"),
        (experiment, replace(catalogue, missing=catalogue.documents[:1]), "dataset.missing_images is 0 there and 1"),
    ):
        with pytest.raises(ResumeError, match=message):
            run_experiment(changed, tmp_path, vlm=vlm, dataset=dataset)
    with pytest.raises(ResumeError, match="measure is null there and .*measure_evidence"):
        run_experiment(experiment, tmp_path, vlm=vlm, dataset=catalogue, measure=measure_evidence)
    other = tmp_path / "other"
    build_model(seed=1).save_pretrained(other)
    build_processor().save_pretrained(other)
    with pytest.raises(ResumeError, match=r'model.revision is "sha256:.* there and "sha256:'):
        run_experiment(experiment, tmp_path, vlm=ListwiseVLM.load(str(other), schedule=SCHEDULE), dataset=catalogue)
    assert (tmp_path / "results.jsonl").read_bytes() == stored


def test_the_same_model_in_another_folder_goes_on(
    vlm: ListwiseVLM, tiny_vlm: str, catalogue: CatalogueDataset, tmp_path: Path
) -> None:
    experiment = replace(EXPERIMENT, methods=parse_methods(["dense"]), queries=1, seeds=(1,))
    run_experiment(experiment, tmp_path / "out", vlm=vlm, dataset=catalogue)
    moved = shutil.copytree(tiny_vlm, tmp_path / "moved")
    again = ListwiseVLM.load(str(moved), device="cpu", schedule=SCHEDULE, num_pruning_layers=2)
    assert len(run_experiment(experiment, tmp_path / "out", vlm=again, dataset=catalogue).records) == 1


def test_what_is_stored_beside_the_results(vlm: ListwiseVLM, catalogue: CatalogueDataset, tmp_path: Path) -> None:
    experiment = replace(EXPERIMENT, methods=parse_methods(["dense"]), queries=1, seeds=(1,))
    run_experiment(experiment, tmp_path, vlm=vlm, dataset=catalogue)
    config = json.loads((tmp_path / "config.json").read_text())
    assert Experiment.from_dict(config["experiment"]) == experiment
    assert config["dataset"]["queries"] == 6
    assert config["model"]["kind"] == "qwen3_vl"
    assert config["model"]["revision"].startswith("sha256:")
    assert tuple(config["model"]["schedule"]["layers"]) == SCHEDULE.layers
    (environment,) = config["environments"]
    assert {"torch", "transformers", "haystack-ai", "radical-haystack"} <= set(environment["packages"])
    assert environment["packages"]["torch"]
    assert environment["python"] == sys.version.split()[0]
    assert environment["device"].startswith("cpu")


def test_random_has_a_seed_of_its_own_for_every_query(vlm: ListwiseVLM, catalogue: CatalogueDataset) -> None:
    experiment = Experiment(
        parse_methods(["random,radical"]), queries=None, candidates=4, keep_ratios=(0.25,), seeds=(1, 2)
    )
    results = run_experiment(experiment, vlm=vlm, dataset=catalogue)

    def kept(method: str, seed: int) -> list[tuple[int, ...]]:
        return [record.kept_tokens for record in results.of_variant(method, 0.25) if record.seed == seed]

    assert kept("radical", 1) == kept("radical", 2)
    assert kept("random", 1) != kept("random", 2)
    # All prompts are equally long, yet do not lose the same places.
    assert {record.total_tokens for record in results.records} == {(16,) * 4}
    assert len(set(kept("random", 1))) > 1


def test_tokens_add_up(results: Results, catalogue: CatalogueDataset) -> None:
    for record in results.records:
        (one,) = record.passes
        assert one.full == sum(record.total_tokens)
        left = one.stages[-1].kept if one.stages else one.visual
        assert left == sum(record.kept_tokens)
        assert record.kept_share == pytest.approx(record.keep_ratio, abs=0.06)
        if record.method == "radical":
            assert tuple(stage.layer for stage in one.stages) == SCHEDULE.layers
            assert all({"entropy", "alpha"} <= set(stage.figures) for stage in one.stages)
        if record.method == "visionzip":
            assert [stage.layer for stage in one.stages] == [-1]
        if record.method == "lowres":
            assert one.visual == sum(record.kept_tokens) < one.full
        dense = next(r for r in results.of_variant("dense", 1.0) if r.key[:2] == record.key[:2])
        assert one.text == dense.passes[0].text


def test_cost_on_paper(results: Results, vlm: ListwiseVLM) -> None:
    shape = decoder_shape(vlm.model.config)
    assert shape is not None
    (one,) = results.of_variant("radical", 0.25)[0].passes
    exact = prefill_cost(shape, one.full, one.text, SCHEDULE.with_keep_ratio(0.25))
    assert pass_cost(shape, one) == exact
    dense = results.row("dense")
    assert (dense.flops_saved_pct, dense.kv_saved_pct, dense.prefill_speedup) == (0, 0, 1)
    assert dense.difference is None
    for ratio in (0.5, 0.25):
        row = results.row("radical", ratio)
        assert row.flops_saved_pct_executed < row.flops_saved_pct < 100
        assert results.row("visionzip", ratio).flops_saved_pct > row.flops_saved_pct
    assert results.row("radical", 0.25).kv_saved_pct > results.row("radical", 0.5).kv_saved_pct


def test_evidence_is_measured(results: Results) -> None:
    dense, pruned = results.row("dense"), results.row("radical", 0.25)
    assert dense.measured["evidence.end.target"].mean == 1
    assert pruned.measured["evidence.end.chance"].mean == pytest.approx(pruned.kept_share)
    assert f"evidence.layers.{SCHEDULE.layers[0]}.target" in pruned.measured
    assert not results.row("lowres", 0.25).measured


def test_a_measure_sees_what_was_ranked(vlm: ListwiseVLM, catalogue: CatalogueDataset) -> None:
    def best(dataset: Dataset, query: DatasetQuery, documents: Sequence[str], ranking: Ranking) -> dict[str, Any]:
        return {"best": documents[ranking.order[0]]}

    experiment = replace(EXPERIMENT, queries=2, seeds=(1,))
    for record in run_experiment(experiment, vlm=vlm, dataset=catalogue, measure=best).records:
        assert record.measured == {"best": record.order[0]}


class TestUnreadable:
    @pytest.fixture
    def dataset(self, fashioniq: Path) -> Dataset:
        dataset = load_fashioniq(fashioniq).of_category("dress")
        (fashioniq / "images" / "D3.jpg").write_bytes(b"no image")
        return dataset

    def run(self, vlm: ListwiseVLM, dataset: Dataset, *names: str) -> Results:
        methods = parse_methods(names or ["dense,radical,lowres"])
        experiment = Experiment(methods, dataset="fashioniq", queries=None, candidates=3, keep_ratios=(0.5,))
        return run_experiment(experiment, vlm=vlm, dataset=dataset)

    def test_a_candidate_is_ranked_last_with_the_reason(self, vlm: ListwiseVLM, dataset: Dataset) -> None:
        results = self.run(vlm, dataset)
        hit = [record for record in results.records if "dress/D3" in record.candidates]
        assert {record.method for record in hit} == {"dense", "radical", "lowres"}
        for record in hit:
            place = record.candidates.index("dress/D3")
            assert record.order[-1] == "dress/D3"
            assert (record.scores[place], record.kept_tokens[place], record.total_tokens[place]) == (None, 0, 0)
            assert list(record.unreadable) == ["dress/D3"]
            assert "not an image" in record.unreadable["dress/D3"]
            assert sum(record.total_tokens) > 0
        target = [record for record in hit if record.relevant == ("dress/D3",)]
        assert {record.target_rank for record in target} == {3}
        assert results.row("dense").unreadable == len([record for record in hit if record.method == "dense"])

    def test_a_query_without_its_reference_is_skipped(
        self, vlm: ListwiseVLM, dataset: Dataset, fashioniq: Path
    ) -> None:
        (fashioniq / "images" / "D4.jpg").unlink()
        results = self.run(vlm, dataset)
        assert [(entry.query, entry.seed) for entry in results.skipped] == [("dress/2", 42)]
        assert "D4.jpg" in results.skipped[0].skipped
        assert {record.query for record in results.records} == {"dress/1", "dress/3"}
        assert results.row("dense").queries == 2

    def test_nothing_to_rank(self, vlm: ListwiseVLM, dataset: Dataset, fashioniq: Path) -> None:
        gone = [document for document in dataset.documents if document.id in ("dress/D1", "dress/D4")]
        only = replace(dataset, candidates={"dress/1": ("dress/D3",)}, queries=dataset.queries[:1])
        results = self.run(vlm, only, "dense", "radical", "visionzip", "lowres", "dynres-dti")
        assert len(gone) == 2
        for record in results.records:
            assert (record.order, record.target_rank, record.passes) == (("dress/D3",), None, ())

    def test_skipped_queries_are_not_tried_again(
        self, vlm: ListwiseVLM, dataset: Dataset, fashioniq: Path, tmp_path: Path
    ) -> None:
        (fashioniq / "images" / "D4.jpg").unlink()
        experiment = Experiment(parse_methods(["dense"]), dataset="fashioniq", queries=None, candidates=3)
        done: list[tuple[int, int]] = []
        for _ in range(2):
            run_experiment(
                experiment,
                tmp_path / "out",
                vlm=vlm,
                dataset=dataset,
                progress=lambda step, *at: done.append(at) if step == "Ranking" else None,
            )
        assert done == [(0, 3), (1, 3), (2, 3), (3, 3), (3, 3)]
        assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 3


def test_more_candidates_than_fit_a_window(vlm: ListwiseVLM, catalogue: CatalogueDataset) -> None:
    experiment = replace(EXPERIMENT, queries=2, seeds=(1,), window_size=3, window_step=1)
    results = run_experiment(experiment, vlm=vlm, dataset=catalogue)
    for record in results.records:
        assert len(record.passes) == 2
        assert all(one.full == 48 for one in record.passes)
        assert record.score_kind == "reciprocal_rank"
    assert results.row("radical", 0.25).kv_saved_pct > 0


def test_written_permutations(vlm: ListwiseVLM, catalogue: CatalogueDataset) -> None:
    experiment = replace(EXPERIMENT, methods=parse_methods(["radical"]), queries=1, seeds=(1,), keep_ratios=(0.5,))
    (record,) = run_experiment(replace(experiment, scoring="generate"), vlm=vlm, dataset=catalogue).records
    (by_logits,) = run_experiment(experiment, vlm=vlm, dataset=catalogue).records
    assert record.score_kind == "reciprocal_rank"
    assert record.passes == by_logits.passes
    assert record.seconds["prefill"] < record.seconds["rank"] / 4


def test_a_model_without_a_schedule_is_calibrated_first(
    tiny_vlm: str, catalogue: CatalogueDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = shutil.copytree(tiny_vlm, tmp_path / "model")
    dense = Experiment(parse_methods(["dense"]), queries=2, candidates=4, model=str(model))
    assert run_experiment(dense, device="cpu").model.schedule is None
    pruned = replace(dense, methods=parse_methods(["radical"]))
    results = run_experiment(pruned, tmp_path / "out", device="cpu")
    assert results.model.schedule is not None
    assert all(record.kept_share < 0.3 for record in results.records)
    remembered = ListwiseVLM.load(str(model), device="cpu").schedule()
    assert remembered == replace(results.model.schedule, model=remembered.model)
    # Only a profile tells other layers; a model that is handed over keeps the schedule it was given.
    given = ListwiseVLM.load(str(model), device="cpu", schedule=PruningSchedule((1, 3), (0.5, 0.0), 0.5))
    with pytest.raises(LookupError, match="calibrate"):
        run_experiment(replace(dense, methods=(Method("k", k=1),)), vlm=given, dataset=catalogue)


def test_a_published_schedule_gives_way_to_a_profile_where_one_is_needed(
    tiny_vlm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = shutil.copytree(tiny_vlm, tmp_path / "Qwen3-VL-4B-Instruct")
    assert ListwiseVLM.load(str(model), device="cpu").schedule().layers == (7, 22, 24, 29)
    experiment = Experiment((Method("one", k=1),), queries=1, candidates=4, model=str(model))
    (record,) = run_experiment(experiment, device="cpu").records
    assert len(record.passes[0].stages) == 1


def test_a_first_stage_finds_the_candidates_once(
    vlm: ListwiseVLM, tiny_siglip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = load_catalogue(tmp_path / "images", queries=3, candidates=4)
    experiment = Experiment(
        parse_methods(["dense"]), queries=None, candidates=3, pool=5, first_stage=tiny_siglip, seeds=(1, 2)
    )
    steps: list[str] = []
    results = run_experiment(
        experiment, tmp_path / "out", vlm=vlm, dataset=dataset, progress=lambda step, *_: steps.append(step)
    )
    assert any("Embedding" in step for step in steps)
    pools = json.loads((tmp_path / "out" / "pools.json").read_text())["pools"]
    assert set(pools) == {query.id for query in dataset.queries}
    for record in results.records:
        assert len(record.candidates) == 3
        assert [name for name in pools[record.query] if name in record.candidates] == list(record.candidates)
        assert all(dataset.by_id[name].meta["category"] == record.category for name in record.candidates)
        assert (record.target_rank is None) == (not set(record.relevant) & set(record.candidates))
    assert len({record.candidates for record in results.records}) > 6  # seeds draw different ones
    row = results.row("dense")
    assert row.conditional_queries <= row.queries
    steps.clear()
    again = run_experiment(
        experiment, tmp_path / "out", vlm=vlm, dataset=dataset, progress=lambda step, *_: steps.append(step)
    )
    assert again.records == results.records
    assert not any("Embedding" in step for step in steps)


def test_embeddings_survive_an_interruption(vlm: ListwiseVLM, tiny_siglip: str, tmp_path: Path) -> None:
    dataset = load_catalogue(tmp_path / "images", queries=5, candidates=10)
    experiment = Experiment(parse_methods(["dense"]), queries=1, candidates=3, category="text", first_stage=tiny_siglip)
    seen: list[int] = []

    def progress(step: str, done: int, total: int) -> None:
        if "Embedding" in step:
            seen.append(done)
            if done == 32 and len(seen) == 1:
                raise Stop

    with pytest.raises(Stop):
        run_experiment(experiment, tmp_path / "out", vlm=vlm, dataset=dataset, progress=progress)
    for path in (tmp_path / "images").glob("text-*"):
        if not path.name.endswith("-reference.png") and int(path.stem[-7:-3]) < 4:
            path.unlink()  # 30 of the 32 that are embedded: they are not read again
    run_experiment(experiment, tmp_path / "out", vlm=vlm, dataset=dataset, progress=progress)
    ((query, found),) = json.loads((tmp_path / "out" / "pools.json").read_text())["pools"].items()
    whole = load_catalogue(tmp_path / "images", queries=5, candidates=10)
    assert retrieve_pools(
        replace(whole, queries=tuple(q for q in whole.queries if q.id == query)), first_stage_of(tiny_siglip), 3
    ) == {query: found}
    assert not (tmp_path / "out" / "embeddings").exists()


def test_embeddings_of_another_first_stage_are_not_taken(vlm: ListwiseVLM, tiny_siglip: str, tmp_path: Path) -> None:
    dataset = load_catalogue(tmp_path / "images", queries=1, candidates=4)
    experiment = Experiment(parse_methods(["dense"]), queries=1, candidates=3, category="text", first_stage=tiny_siglip)

    def stop(step: str, done: int, total: int) -> None:
        if "Embedding" in step or step == "Loading the model":
            raise Stop

    for interrupted in (experiment, replace(experiment, first_stage="bundled"), experiment):
        with pytest.raises(Stop):
            run_experiment(interrupted, tmp_path / "out", vlm=vlm, dataset=dataset, progress=stop)
    run_experiment(replace(experiment, first_stage="bundled"), tmp_path / "out", vlm=vlm, dataset=dataset)
    stored = json.loads((tmp_path / "out" / "pools.json").read_text())
    assert stored["of"]["first_stage"] == "bundled"
    part = dataset.of_category("text")
    assert stored["pools"] == retrieve_pools(part, first_stage_of("bundled"), 3)


def test_a_missing_reference_costs_the_first_stage_its_query(
    vlm: ListwiseVLM, tiny_siglip: str, fashioniq: Path
) -> None:
    dataset = load_fashioniq(fashioniq)
    (fashioniq / "images" / "D4.jpg").unlink()
    experiment = Experiment(
        parse_methods(["dense"]), dataset="fashioniq", queries=None, candidates=2, first_stage=tiny_siglip
    )
    results = run_experiment(experiment, vlm=vlm, dataset=dataset)
    assert [entry.query for entry in results.skipped] == ["dress/2"]
    assert len(results.records) == 4


def test_all_pruners_side_by_side(vlm: ListwiseVLM, catalogue: CatalogueDataset) -> None:
    experiment = Experiment(parse_methods(["all"]), queries=1, candidates=4, keep_ratios=(0.5,))
    results = run_experiment(experiment, vlm=vlm, dataset=catalogue)
    assert [row.method for row in results.rows] == list(PRUNERS)
    assert all(row.kept_share == pytest.approx(1 if row.method == "dense" else 0.5, abs=0.04) for row in results.rows)


def test_results_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no results"):
        Results.load(tmp_path)


def test_unfinished_results_can_be_read(vlm: ListwiseVLM, catalogue: CatalogueDataset, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        run_experiment(EXPERIMENT, tmp_path, vlm=vlm, dataset=catalogue, progress=stop_after(4))
    results = Results.load(tmp_path)
    assert 1 <= len(results.records) < 10
    assert all(isinstance(record, Record) for record in results.records)
    assert json.loads(json.dumps(results.to_dict()))["summary"]


def test_one_result_per_key(results: Results) -> None:
    twice = Results.of(results.experiment, results.model, [list(results.records), list(results.records)])
    assert twice.records == results.records


def test_mistakes(vlm: ListwiseVLM, catalogue: CatalogueDataset) -> None:
    with pytest.raises(ValueError, match="Unknown engine 'spark': choose one of local, ray"):
        run_experiment(EXPERIMENT, engine="spark", dataset=catalogue)
    with pytest.raises(ValueError, match="hand none over"):
        run_experiment(EXPERIMENT, engine="ray", vlm=vlm, dataset=catalogue)


def test_nothing_is_left_on_the_model(vlm: ListwiseVLM, results: Results) -> None:
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in vlm.model.modules())
