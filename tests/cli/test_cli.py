# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command line: results for people and machines, and one plain line for mistakes."""

import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from radical_haystack.catalog import write_gallery
from radical_haystack.cli import main, shared
from radical_haystack.cli.shared import PRUNER_NAMES
from radical_haystack.pruning import PRUNERS

COST = (
    "cost --layers 36 --hidden 2560 --heads 32 --kv-heads 8 --head-dim 128 --intermediate 9728 "
    "--visual 2014 --text 166 --schedule 7,22,24,29 --keep-ratio 0.2"
).split()


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run a command in this process, from its words to its exit code."""

    def call(*words: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["radical-haystack", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Outcome(stop.value.code or 0, captured.out, captured.err)

    return call


def process(*words: str | Path) -> subprocess.CompletedProcess[str]:
    code = "from radical_haystack.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False)


def assert_one_line_error(outcome: Outcome, *parts: str) -> None:
    assert outcome.code == 2
    assert outcome.out == ""
    lines = [line for line in outcome.err.splitlines() if line.startswith("error:")]
    assert len(lines) == 1
    for part in parts:
        assert part in lines[0]
    assert "Traceback" not in outcome.err


def test_cost_reproduces_the_paper(run) -> None:
    outcome = run(*COST, "--json")
    assert outcome.code == 0
    result = json.loads(outcome.out)
    assert result["flops_saved_pct"] == pytest.approx(43.8, abs=2.5)
    assert result["kv_saved_pct"] == pytest.approx(39.0, abs=2.5)
    assert result["tflops_dense"] == pytest.approx(18.68, rel=0.02)
    saved = 100 * (1 - result["tflops_pruned"] / result["tflops_dense"])
    assert saved == pytest.approx(result["flops_saved_pct"])
    assert result["flops_saved_pct_executed"] < result["flops_saved_pct"]


def test_cost_for_people(run) -> None:
    outcome = run(*COST)
    assert outcome.code == 0
    assert "18.64" in outcome.out
    assert "38.9%" in outcome.out


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["nonsense"], ["nonsense"]),
        (["cost"], ["Missing option"]),
        ([*COST, "--keep-ratio", "0"], ["keep ratio", "0"]),
        ([*COST, "--keep-ratio", "lots"], ["--keep-ratio"]),
        ([*COST, "--schedule", "7,x"], ["--schedule", "7,x"]),
        ([*COST, "--schedule", "7,40"], ["layer 40"]),
        ([*COST, "--schedule", "9,7"], ["ascending"]),
        ([*COST, "--visual", "-1"], ["-1"]),
        ([*COST, "--heads", "0"], ["heads"]),
        ([*COST, "--frobnicate"], ["--frobnicate"]),
        (["search", "red", "--store", "/no/such/store"], ["no store", "/no/such/store"]),
        (["search", " ", "--store", "/no/such/store"], ["blank"]),
        (["search", "red", "--store", "/no/such/store", "--top-k", "0"], ["--top-k"]),
        (["search", "red"], ["--store"]),
        (["search", "red", "--store", "x", "--keep-ratio", "20"], ["--keep-ratio", "0.2 for 20%"]),
        (["search", "red", "--store", "x", "--pruner", "foo"], ["'foo'", "radical, dense"]),
        (["search", "red", "dress", "--store", "x"], ["in quotes"]),
        (["index", __file__, "--store", "x"], ["is a file"]),
        (["index", "/no/such/folder", "--store", "/no/such/store"], ["/no/such/folder"]),
        (["calibrate", "--model", "m", "--images", "/no/such/folder"], ["/no/such/folder"]),
        (["demo", "--queries", "0"], ["at least 1"]),
        (["data", "fashioniq"], ["--root"]),
        (["data", "flickr8k", "--root", "/no/such/folder"], ["flickr8k", "flickr30k"]),
        (["data", "mscoco", "--root", "/no/such/folder"], ["/no/such/folder"]),
    ],
)
def test_mistakes_give_one_line(run, words: list[str], parts: list[str]) -> None:
    assert_one_line_error(run(*words), *parts)


def test_cheap_mistakes_come_before_anything_is_loaded(run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "radical_haystack.pipelines", None)  # importing it would be another error
    assert_one_line_error(run("search", "red", "--store", tmp_path), "no store")
    assert_one_line_error(run("index", tmp_path / "nowhere", "--store", tmp_path), "no folder")
    (tmp_path / "store.json").touch()
    refused = run("search", "red", "--store", tmp_path, "--reference", tmp_path / "none.jpg")
    assert_one_line_error(refused, "There is no image file", "none.jpg")
    assert "Loading" not in refused.err


def test_bare_command_gives_help(run) -> None:
    outcome = run()
    assert (outcome.code, outcome.err) == (0, "")
    for word in ("Usage", "index", "search", "--version", "Rerank images"):
        assert word in outcome.out


def test_version(run) -> None:
    assert run("--version").out.startswith("radical-haystack ")


def test_warnings_about_a_default_config_are_hidden(run) -> None:
    run("--version")
    logger = logging.getLogger("transformers.configuration_utils")
    text = "Model config: {} must be `None` or an integer within the vocabulary (between 0 and 31999), got {}. This"
    for name, value, shown in (
        ("bos_token_id", 49406, False),
        ("eos_token_id", 49407, False),
        ("eos_token_id", 7, True),
    ):
        record = logging.makeLogRecord({"msg": text.format(name, value)})
        assert bool(logger.filter(record)) == shown


def test_every_pruner_is_known_and_listed(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert sorted(PRUNER_NAMES) == sorted(PRUNERS)
    shown = run("search", "--help").out
    assert all(name in shown for name in PRUNER_NAMES)


def test_progress_spins_until_it_counts(capsys: pytest.CaptureFixture[str]) -> None:
    steps = shared._Steps(console=Console(width=120))
    steps.add_task("Loading", total=None)
    steps.add_task("Indexing", total=4, completed=1)
    Console(width=120).print(*steps.get_renderables())
    first, second = capsys.readouterr().out.splitlines()
    assert "0/100" not in first
    assert first.rstrip().endswith("so far")
    assert "1/4" in second
    assert second.rstrip().endswith("left")


def test_exit_codes_of_a_real_process() -> None:
    for words, code in ((["--help"], 0), ([*COST, "--json"], 0), ([*COST, "--heads", "0"], 2), (["nonsense"], 2)):
        done = process(*words)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == (1 if code else 0)


def test_index_and_search(run, image_folder: Path, tmp_path: Path, tiny_siglip: str, tiny_vlm: str) -> None:
    folder, store = shutil.copytree(image_folder, tmp_path / "images"), tmp_path / "store"
    (folder / "broken.png").write_bytes(b"no image")
    indexed = json.loads(run("index", folder, "--store", store, "--first-stage", tiny_siglip, "--json").out)
    reason = indexed.pop("unreadable")["broken.png"]
    assert "not an image" in reason
    assert indexed == {"indexed": 12, "unchanged": 0, "removed": 0, "total": 12, "store": str(store)}
    again = run("index", folder, "--store", store, "--first-stage", tiny_siglip)
    assert "0 images indexed, 12 unchanged, 0 removed, 1 unreadable; 12 in" in again.out
    assert "Skipped broken.png" in again.err

    words = [
        "search",
        "a red [bold]shirt",
        "--store",
        store,
        "--model",
        tiny_vlm,
        "--top-k",
        "3",
        "--keep-ratio",
        "0.5",
    ]
    found = json.loads(run(*words, "--json").out)
    assert found["query"] == "a red [bold]shirt"
    assert [result["rank"] for result in found["results"]] == [1, 2, 3]
    assert all((folder / result["file"]).is_file() for result in found["results"])
    assert all(result["kept_tokens"] <= result["total_tokens"] for result in found["results"])
    table = run(*words).out
    assert all(Path(result["file"]).name in table for result in found["results"])

    refused = run("index", folder, "--store", store, "--first-stage", "bundled")
    assert_one_line_error(refused, tiny_siglip, "bundled")


def test_bundled_models_on_other_images_are_noted(run, image_folder: Path, tmp_path: Path, tiny_vlm: str) -> None:
    store, note = tmp_path / "store", "Note: for the drawn catalogue only, no use on other images such as photos: "
    assert f"{note}bundled. " in run("index", image_folder, "--store", store).err
    both = run("search", "red", "--store", store, "--top-k", "1", "--json")
    assert both.err.count(f"{note}bundled and catalog-vlm-tiny. ") == 1
    assert json.loads(both.out)["query"] == "red"
    assert f"{note}bundled. " in run("search", "red", "--store", store, "--model", tiny_vlm).err


def test_nothing_is_noted_on_the_drawn_catalogue(run, tmp_path: Path) -> None:
    write_gallery(tmp_path / "gallery", 2)
    assert "Note" not in run("index", tmp_path / "gallery", "--store", tmp_path / "store").err
    assert "Note" not in run("search", "red", "--store", tmp_path / "store").err


def test_search_without_a_reranker(run, image_folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    run("index", image_folder, "--store", tmp_path, "--first-stage", tiny_siglip)
    words = ["search", "red", "--store", tmp_path, "--model", "none", "--top-k", "4"]
    found = json.loads(run(*words, "--json").out)["results"]
    assert [result["rank"] for result in found] == [1, 2, 3, 4]
    assert [set(result) for result in found] == [{"score", "file", "rank"}] * 4
    assert [result["score"] for result in found] == sorted((result["score"] for result in found), reverse=True)
    shown = run(*words)
    assert "tokens kept" not in shown.out
    assert all(Path(result["file"]).name in shown.out for result in found)
    composed = run(*words, "--reference", image_folder / found[0]["file"], "--json")
    files = [result["file"] for result in json.loads(composed.out)["results"]]
    assert len(files) == 4
    assert found[0]["file"] not in files


def test_search_with_a_model_that_is_not_there(run, image_folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    store = tmp_path / "store"
    run("index", image_folder, "--store", store, "--first-stage", tiny_siglip)
    outcome = run("search", "red", "--store", store, "--model", str(tmp_path / "no-such-model"))
    assert_one_line_error(outcome, "no-such-model")


def test_calibrate(run, image_folder: Path, tiny_vlm: str) -> None:
    words = ["calibrate", "--model", tiny_vlm, "--images", image_folder, "--query", "red", "--query", "blue"]
    schedule = json.loads(run(*words, "--json").out)
    assert len(schedule["entropies"]) == 6
    assert len(schedule["layers"]) == len(schedule["alphas"])
    assert "prune here" in run(*words).out


def test_data(run, tmp_path: Path) -> None:
    names = [f"B{number:03d}" for number in range(8)]
    captions = [{"target": "B001", "candidate": "B002", "captions": ["is red", "has dots"]}]
    (tmp_path / "split.dress.val.json").write_text(json.dumps(names))
    (tmp_path / "cap.dress.val.json").write_text(json.dumps(captions))
    Image.new("RGB", (8, 8)).save(tmp_path / "B002.png")
    summary = json.loads(run("data", "fashioniq", "--root", tmp_path, "--json").out)
    assert summary["queries"] == 1
    assert summary["queries_by_category"] == {"dress": 1}
    assert summary["images"] == 1
    assert summary["missing_images"] == 7
    assert summary["missing_image_names"] == [name for name in names if name != "B002"]
    assert summary["candidates"] == 20
    shown = run("data", "fashioniq", "--root", tmp_path)
    assert shown.code == 0
    cells = [[cell.strip() for cell in line.split("│")] for line in shown.out.splitlines()]
    for label, count in (("queries", "1"), ("dress", "1"), ("images found", "1"), ("images missing", "7")):
        assert ["", label, count, ""] in cells
    assert "Missing: B000, B001, B003, B004, B005 and 2 more" in shown.err

    (tmp_path / "cap.dress.val.json").write_text('[\n{"target": "B001"}\n')
    assert_one_line_error(run("data", "fashioniq", "--root", tmp_path), "cap.dress.val.json", "line 3")


def test_data_of_karpathy(run, tmp_path: Path) -> None:
    image = {"filename": "1.jpg", "split": "test", "sentences": [{"raw": "a dog"}, {"raw": "a cat"}]}
    for name, file in (("flickr30k", "dataset_flickr30k.json"), ("mscoco", "dataset_coco.json")):
        (tmp_path / file).write_text(json.dumps({"images": [image]}))
        summary = json.loads(run("data", name, "--root", tmp_path, "--json").out)
        assert (summary["queries"], summary["missing_images"], summary["images"]) == (2, 1, 0)


def test_what_is_not_installed_gives_one_line(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "radical_haystack.evaluation", None)
    assert_one_line_error(run("data", "mscoco", "--root", "/no/such/folder"), "radical_haystack.evaluation")
