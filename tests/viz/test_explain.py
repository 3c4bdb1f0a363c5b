# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The `explain` command, on a small store with tiny models."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from radical_haystack.pipelines import calibrate_on_folder, index_folder

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(run_command: Run) -> Run:
    return partial(run_command, "explain")


@pytest.fixture(scope="module")
def store(image_folder: Path, tmp_path_factory: pytest.TempPathFactory, tiny_siglip: str) -> Path:
    path = tmp_path_factory.mktemp("explain") / "store"
    index_folder(image_folder, path, first_stage=tiny_siglip)
    return path


@pytest.fixture(scope="module")
def calibrated(image_folder: Path, tiny_vlm: str) -> str:
    calibrate_on_folder(image_folder, model=tiny_vlm, queries=["red"])
    return tiny_vlm


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_picture_is_drawn_and_its_path_printed(
    run: Run, store: Path, calibrated: str, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"picture.{suffix}"
    code, printed, _ = run("a red shirt", "--store", store, "--out", out, "--model", calibrated, "--top-k", 4)
    assert code == 0
    assert printed == f"{out}\n"
    assert out.stat().st_size > 1000
    if suffix == "svg":
        assert out.read_text(encoding="utf-8").count("<image") == 3 * 4  # the images and two methods, four candidates


def test_json_tells_the_kept_tokens(run: Run, store: Path, image_folder: Path, calibrated: str, tmp_path: Path) -> None:
    out = tmp_path / "picture.png"
    words = ["red", "--store", store, "--out", out, "--model", calibrated, "--keep-ratio", "0.4", "--json"]
    code, printed, _ = run(*words, "--methods", "radical", "fastv", "dense")
    assert code == 0
    result = json.loads(printed)
    assert result["query"] == "red"
    assert Path(result["picture"]) == out
    assert Image.open(out).format == "PNG"
    assert list(result["methods"]) == ["radical", "fastv", "dense"]
    for name, candidates in result["methods"].items():
        assert [candidate["rank"] for candidate in candidates] == list(range(1, 13))
        assert len({candidate["file"] for candidate in candidates}) == 12
        for candidate in candidates:
            assert (image_folder / candidate["file"]).is_file()
            rows, columns = candidate["grid"]
            assert candidate["total_tokens"] == rows * columns
            assert len(candidate["kept"]) == candidate["kept_tokens"]
            assert all(0 <= token < rows * columns for token in candidate["kept"])
            assert len({layer["layer"] for layer in candidate["layers"]}) == {"dense": 0, "fastv": 1}.get(name, 4)
            if candidate["layers"]:
                assert candidate["layers"][-1]["kept"] == candidate["kept"]
        total = sum(candidate["total_tokens"] for candidate in candidates)
        kept = sum(candidate["kept_tokens"] for candidate in candidates)
        assert kept == total if name == "dense" else kept / total == pytest.approx(0.4, abs=0.05)


def test_methods_may_be_repeated_or_stand_together(run: Run, store: Path, calibrated: str, tmp_path: Path) -> None:
    words = ["--store", store, "--out", tmp_path / "a.png", "--model", calibrated, "--json"]
    together = run("--methods", "fastv", "random", *words, "--", "red")
    apart = run("red", "--methods", "fastv", *words, "--methods", "random")
    assert json.loads(together[1]) == json.loads(apart[1])


def test_a_model_without_a_schedule_is_refused_where_one_is_needed(
    run: Run, store: Path, tiny_vlm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    words = ["red", "--store", store, "--out", tmp_path / "a.png", "--model", tiny_vlm, "--methods"]
    code, _, errors = run(*words, "radical", "fastv")
    assert code == 2
    assert errors.splitlines()[-1].startswith("error:")
    assert "radical-haystack calibrate --model" in errors
    assert run(*words, "fastv", "visionzip")[0] == 0


def test_the_readme_shows_a_small_picture_beside_its_command() -> None:
    root = Path(__file__).parents[2]
    readme = (root / "README.md").read_text(encoding="utf-8")
    command, shown, picture = re.search(
        r"(explain .*?) --out (\S+).*?\]\((docs/images/\S+)\)", readme, re.DOTALL
    ).groups()
    assert "```python" not in command
    assert Path(shown).name == Path(picture).name
    assert (root / picture).stat().st_size < 300_000


def test_unreadable_images_are_left_out(
    run: Run, image_folder: Path, tiny_siglip: str, calibrated: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(image_folder, tmp_path / "images")
    index_folder(folder, tmp_path / "store", first_stage=tiny_siglip)
    files = sorted(path for path in folder.rglob("*.png"))
    files[3].write_bytes(b"broken")
    words = ["red", "--store", tmp_path / "store", "--out", tmp_path / "a.png", "--model", calibrated, "--json"]
    shown = {found["file"] for found in json.loads(run(*words)[1])["methods"]["radical"]}
    assert shown == {str(file.relative_to(folder)) for file in files if file != files[3]}
    for file in files:
        file.unlink()
    code, _, errors = run(*words)
    assert code == 2
    assert "error: No image of the 12 candidates can be read" in errors


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["red", "--out", "a.gif"], "png, pdf, svg"),
        (["red", "--out", "a.png", "--methods", "radical", "nonsense"], "nonsense"),
        ([" ", "--out", "a.png"], "blank"),
        (["red", "--out", "a.png", "--keep-ratio", "2"], "keep ratio"),
        (["red", "--out", "a.png", "--top-k", "0"], "--top-k"),
        (["red", "--out", "a.png", "--store", "/no/such/store"], "/no/such/store"),
        (["red"], "--out"),
        (["--out", "a.png", "--methods", "radical", "red"], "query"),
    ],
)
def test_mistakes_give_one_line(
    run: Run, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], part: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed, errors = run(*words, *([] if "--store" in words else ["--store", store]))
    assert (code, printed) == (2, "")
    lines = [line for line in errors.splitlines() if line.startswith("error:")]
    assert len(lines) == 1
    assert part.lower() in lines[0].lower()
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_one_line_says_how_to_get_it(
    run: Run, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, errors = run("red", "--store", store, "--out", tmp_path / "a.png")
    assert code == 2
    assert "error: Pictures need Matplotlib: pip install 'radical-haystack[viz]'" in errors
