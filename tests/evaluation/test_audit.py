# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The audit on a small index of drawn pictures, from the function and from the command line."""

import csv
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from haystack import Document
from PIL import Image

from radical_haystack.catalog import draw, gallery_items
from radical_haystack.components.image_loading import load_document_images
from radical_haystack.evaluation import audit as auditing
from radical_haystack.evaluation.audit import AuditQuery, audit_rankings, run_audit
from radical_haystack.evaluation.energy import EnergyMeter, MeterError
from radical_haystack.evaluation.exposure import NO_GROUP, audit_exposure
from radical_haystack.pipelines import calibrate_on_folder, index_folder
from radical_haystack.pruning import PruningSchedule
from radical_haystack.vlm import ListwiseVLM

Run = Callable[..., tuple[int, str, str]]
QUERIES = ["a red shirt", "blue trousers", "a striped dress"]
PICTURES = 14


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen drawn pictures in the folders of three shops, two of them in none."""
    root = tmp_path_factory.mktemp("pictures")
    for number, item in enumerate(gallery_items(PICTURES)):
        folder = root / ("" if number < 2 else f"shop-{number % 3}")
        folder.mkdir(exist_ok=True)
        draw(item.outfit, item.scene, 96).image.save(folder / f"{number:02d}.png")
    return root


@pytest.fixture(scope="module")
def store(pictures: Path, tmp_path_factory: pytest.TempPathFactory, tiny_siglip: str) -> Path:
    path = tmp_path_factory.mktemp("audit") / "store"
    index_folder(pictures, path, first_stage=tiny_siglip)
    return path


@pytest.fixture(scope="module")
def calibrated(pictures: Path, tiny_vlm: str) -> str:
    calibrate_on_folder(pictures, model=tiny_vlm, queries=["red"])
    return tiny_vlm


@pytest.fixture
def run(run_command: Run) -> Run:
    return partial(run_command, "audit")


def test_the_audit_of_an_index(store: Path, calibrated: str) -> None:
    steps: list[tuple[str, int, int]] = []
    found = run_audit(
        store,
        QUERIES,
        group_by="folder",
        methods=["random", "fastv", "dense", "random"],
        model=calibrated,
        candidates=9,
        keep_ratio=0.3,
        top_k=3,
        progress=lambda *at: steps.append(at),
    )
    assert list(found.orders) == list(found.costs) == ["dense", "random", "fastv"]
    assert list(found.shifts) == ["random", "fastv"]
    assert found.queries == tuple(QUERIES)
    for orders in found.orders.values():
        assert [len(order) for order in orders] == [9, 9, 9]
        assert [set(order) for order in orders] == [set(order) for order in found.orders["dense"]]
    assert found.orders["random"] != found.orders["dense"]
    runs = {name: dict(enumerate(orders)) for name, orders in found.orders.items()}
    groups = {file: file.split("/")[0] if "/" in file else None for order in found.orders["dense"] for file in order}
    for name, shifts in found.shifts.items():
        assert shifts == audit_exposure(runs["dense"], runs[name], groups, top_k=3)
    assert all(cost.seconds > 0 for cost in found.costs.values())
    assert (found.meter is None) != (found.no_meter is None)
    assert {(step, total) for step, _, total in steps} == {
        ("Retrieving", 3), ("Ranking (dense)", 3), ("Ranking (random)", 3), ("Ranking (fastv)", 3)
    }  # fmt: skip
    assert steps[-1] == ("Ranking (fastv)", 3, 3)


def test_a_method_that_keeps_everything_shifts_nothing(store: Path, calibrated: str) -> None:
    found = run_audit(
        store, QUERIES, group_by="folder", methods=["radical", "lowres"], model=calibrated, candidates=6, keep_ratio=1.0
    )
    for shifts in found.shifts.values():
        assert {shift.group for shift in shifts} <= {NO_GROUP, "shop-0", "shop-1", "shop-2"}
        for shift in shifts:
            for share in (shift.exposure, shift.top_k):
                assert share.dense == share.pruned
                assert (share.difference, share.low, share.high) == (0.0, 0.0, 0.0)


def test_the_files_and_the_table(run: Run, store: Path, calibrated: str, tmp_path: Path) -> None:
    queries, metadata, out = tmp_path / "queries.txt", tmp_path / "brands.csv", tmp_path / "new" / "audit"
    queries.write_text("\n".join(QUERIES))
    lines = [f"shop-{n % 3}/{n:02d}.png,{'Ada' if n % 2 else '[bold]Bea'}" for n in range(2, PICTURES)]
    metadata.write_text("\n".join(["file_path,brand", *lines]))
    words = [
        "--store",
        store,
        "--queries",
        queries,
        "--metadata",
        metadata,
        "--group-by",
        "brand",
        "--model",
        calibrated,
    ]
    words += ["--candidates", 14, "--top-k", 4, "--keep-ratio", 0.25, "--methods", "random", "qi-ei", "--out", out]
    code, printed, _ = run(*words, "--json")
    assert code == 0
    data = json.loads(printed)
    assert data == json.loads((out / "audit.json").read_text())
    assert (data["group_by"], data["top_k"], data["keep_ratio"], data["queries"]) == ("brand", 4, 0.25, QUERIES)
    documents = {entry["group"]: entry["documents"] for entry in data["shifts"]["random"]}
    assert documents == {"Ada": 6, "[bold]Bea": 6, NO_GROUP: 2}
    for shifts in data["shifts"].values():
        for measure in ("exposure", "top_k"):
            assert sum(entry[measure]["pruned"] for entry in shifts) == pytest.approx(1)
    with (out / "exposure.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * 2
    for row in rows:
        (entry,) = (one for one in data["shifts"][row["method"]] if one["group"] == row["group"])
        assert float(row["difference"]) == entry[row["measure"]]["difference"]
        assert float(row["high"]) == entry[row["measure"]]["high"]
        assert int(row["documents"]) == entry["documents"]

    code, printed, _ = run(*words)
    assert code == 0
    assert "[bold]Bea" in printed
    cells = [[cell.strip() for cell in line.split("│")][1:-1] for line in printed.splitlines() if "│" in line]
    for entry in (entry for shifts in data["shifts"].values() for entry in shifts):
        for measure in ("exposure", "top_k"):
            dense, pruned, change, low, high = (100 * value for value in entry[measure].values())
            interval = f"{low:+.1f} to {high:+.1f}" + (" *" if low > 0 or high < 0 else "")
            shares = [f"{dense:.1f}", f"{pruned:.1f}", f"{change:+.1f}", interval]
            assert [entry["group"], str(entry["documents"]), *shares] in cells
    # Where no meter can be read nothing stands that could be taken for a measurement.
    if data["meter"] is None:
        assert "No meter: " in printed
        assert printed.count("no meter") == 3
        assert [cost["joules"] for cost in data["costs"].values()] == [None] * 3
    assert str(out / "exposure.csv") in printed.replace("\n", "")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--group-by", "folder", "--store", "STORE"], ["--store", "--queries"]),
        (["--group-by", "folder", "--queries", "QUERIES"], ["--store", "--queries"]),
        (["--group-by", "folder", "--metadata", "QUERIES"], ["--metadata"]),
        (["--store", "STORE", "--queries", "QUERIES"], ["--group-by"]),
        (["--group-by", "age", "--store", "STORE", "--queries", "QUERIES"], ["'age'", "'folder'"]),
        (["--group-by", "folder", "--store", "STORE", "--queries", "/no/such.txt"], ["/no/such.txt"]),
        (["--group-by", "folder", "--store", "/no/store", "--queries", "QUERIES"], ["/no/store"]),
        (["--group-by", "folder", "--store", "STORE", "--queries", "QUERIES", "--methods", "magic"], ["magic"]),
        (["--group-by", "folder", "--store", "STORE", "--queries", "QUERIES", "--methods", "dense"], ["dense order"]),
        (["--group-by", "folder", "--store", "STORE", "--queries", "QUERIES", "--keep-ratio", "0"], ["keep ratio"]),
        (["--group-by", "folder", "--store", "STORE", "--queries", "QUERIES", "--top-k", "0"], ["--top-k"]),
        (["--group-by", "age"], ["'age'", "'colour'"]),
    ],
)
def test_mistakes_give_one_line(run: Run, store: Path, tmp_path: Path, words: list[str], parts: list[str]) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("red\n")
    names = {"STORE": store, "QUERIES": queries}
    code, printed, err = run(*(names.get(word, word) for word in words))
    (line,) = (line for line in err.splitlines() if line.startswith("error:"))
    assert (code, printed) == (2, "")
    assert all(part in line for part in parts), line


def test_a_model_without_a_schedule_is_refused(
    store: Path, tiny_vlm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ValueError, match="no pruning schedule, which radical needs.*calibrate --model"):
        run_audit(store, ["red"], group_by="folder", model=tiny_vlm)


def test_the_catalogue_without_an_index(run: Run, monkeypatch: pytest.MonkeyPatch, calibrated: str) -> None:
    monkeypatch.setattr(auditing.audit_catalogue, "__kwdefaults__", {
        **auditing.audit_catalogue.__kwdefaults__, "queries": 2
    })  # fmt: skip
    words = ["--group-by", "kind", "--candidates", 4, "--top-k", 2, "--model", calibrated, "--json"]
    code, printed, _ = run(*words)
    assert code == 0
    data = json.loads(printed)
    assert len(data["queries"]) == 2
    kinds = {entry["group"]: entry["documents"] for entry in data["shifts"]["radical"]}
    assert set(kinds) <= {"shirt", "jacket", "hoodie", "trousers", "skirt", "dress"}
    assert sum(kinds.values()) == 8


# The rankings themselves


@pytest.fixture
def vlm(tiny_vlm: str) -> ListwiseVLM:
    return ListwiseVLM.load(tiny_vlm, schedule=PruningSchedule((2, 4), (0.6, 0.2), 0.3), vision_cache_bytes=0)


def candidates(pictures: Path, count: int = 5) -> tuple[Document, ...]:
    files = sorted(path.relative_to(pictures).as_posix() for path in pictures.rglob("*.png"))
    return tuple(Document(meta={"file_path": file}) for file in files[:count])


def test_orders_are_those_of_the_ranker(vlm: ListwiseVLM, pictures: Path) -> None:
    documents = candidates(pictures)

    def load(some: Sequence[Document]) -> list:
        return load_document_images(some, root_path=str(pictures))

    found = audit_rankings(vlm, [AuditQuery("red", documents)], load, {}, group_by="any", keep_ratio=0.3)
    for method in ("dense", "radical"):
        ranking = vlm.rank("red", load(documents), pruner=method, keep_ratio=0.3)
        assert found.orders[method] == (tuple(documents[place].meta["file_path"] for place in ranking.order),)
    (shift,) = found.shifts["radical"]
    assert (shift.group, shift.documents, shift.exposure.dense, shift.exposure.low) == (NO_GROUP, 5, 1.0, None)


def test_images_that_cannot_be_read_are_left_out_and_named(vlm: ListwiseVLM, pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    documents = (*candidates(pictures, 3), Document(meta={"file_path": str(tmp_path / "broken.png")}))

    def load(some: Sequence[Document]) -> list:
        return load_document_images(some, root_path=str(pictures))

    found = audit_rankings(vlm, [AuditQuery("red", documents)], load, {}, group_by="any")
    assert list(found.unreadable) == [str(tmp_path / "broken.png")]
    assert all(len(order) == 3 for orders in found.orders.values() for order in orders)
    with pytest.raises(ValueError, match="None of the 1 candidates of the query 'red' can be read"):
        audit_rankings(vlm, [AuditQuery("red", documents[-1:])], load, {}, group_by="any")


@pytest.mark.parametrize(("lost_at", "expected"), [(None, {"dense": 4.0, "random": 4.0}), (4, None)])
def test_energy_is_counted_per_query(
    vlm: ListwiseVLM, pictures: Path, monkeypatch: pytest.MonkeyPatch, lost_at: int | None, expected: dict | None
) -> None:
    """A counter that grows by 4 joules whenever images are loaded; what happens between methods does not count."""
    state = {"total": 0.0, "last": 0.0, "reads": 0}

    class Counter:
        name = "a counter"

        def joules(self) -> float:
            state["reads"] += 1
            if state["reads"] == lost_at:
                raise MeterError("unplugged")
            taken, state["last"] = state["total"] - state["last"], state["total"]
            return taken

    def load(some: Sequence[Document]) -> list[Image.Image]:
        state["total"] += 4
        return load_document_images(some, root_path=str(pictures))

    monkeypatch.setattr(auditing, "open_meter", lambda device: EnergyMeter(Counter()))
    queries = [AuditQuery(text, candidates(pictures, 3)) for text in ("red", "blue")]
    found = audit_rankings(
        vlm,
        queries,
        load,
        {},
        group_by="any",
        methods=["random"],
        progress=lambda step, done, total: state.update(total=state["total"] + (done == total)),
    )
    if expected is None:
        assert (found.meter, found.no_meter) == (None, "unplugged")
        assert [cost.joules for cost in found.costs.values()] == [None, None]
    else:
        assert (found.meter, found.no_meter) == ("a counter", None)
        assert {name: cost.joules for name, cost in found.costs.items()} == expected


@pytest.mark.parametrize(
    ("queries", "options", "reason"),
    [
        ([], {}, "no queries"),
        (["red", "  "], {}, "Query 2 is blank"),
        (["red"], {"methods": []}, "needs a pruning method"),
        (["red"], {"top_k": 0}, "top_k must be at least 1"),
        (["red"], {"keep_ratio": 2.0}, "keep ratio"),
    ],
)
def test_what_cannot_be_audited(vlm: ListwiseVLM, queries: list[str], options: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        audit_rankings(vlm, [AuditQuery(text, ()) for text in queries], lambda some: [], {}, group_by="x", **options)
