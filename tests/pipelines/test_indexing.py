# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Indexing a folder: complete, resumable, and honest about what it could not read."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from radical_haystack.pipelines import IndexReport, StoreError, index_folder, open_store, read_store_info


@pytest.fixture
def folder(image_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(image_folder, tmp_path / "images")


def names(store_path: Path) -> list[str]:
    return sorted(document.meta["file_path"] for document in open_store(store_path).filter_documents())


def test_every_image_is_indexed_once(folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    seen: list[tuple[int, int]] = []
    report = index_folder(
        folder, tmp_path / "s", first_stage=tiny_siglip, batch_size=5, progress=lambda *at: seen.append(at)
    )
    assert report == IndexReport(indexed=12, unchanged=0, removed=0, unreadable={}, total=12)
    assert seen == [(5, 12), (10, 12), (12, 12)]
    assert names(tmp_path / "s") == sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
    info = read_store_info(tmp_path / "s")
    assert (info.first_stage, info.dimension, info.root_path) == (tiny_siglip, 32, str(folder.resolve()))
    again = index_folder(folder, tmp_path / "s", first_stage=tiny_siglip)
    assert again == IndexReport(indexed=0, unchanged=12, removed=0, unreadable={}, total=12)


def test_embeddings_are_normalised_and_retrieve_themselves(folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    index_folder(folder, tmp_path / "s", first_stage=tiny_siglip)
    store = open_store(tmp_path / "s")
    for document in store.filter_documents():
        assert document.embedding is not None
        assert sum(value**2 for value in document.embedding) == pytest.approx(1, abs=1e-5)
        assert store.search(document.embedding, top_k=1)[0].id == document.id


def test_only_what_changed_is_embedded_again(folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    index_folder(folder, tmp_path / "s", first_stage=tiny_siglip)
    before = {d.meta["file_path"]: d for d in open_store(tmp_path / "s").filter_documents()}
    Image.new("RGB", (64, 64), "red").save(folder / "picture-01.png")
    Image.new("RGB", (64, 64), "blue").save(folder / "new.jpg")
    (folder / "picture-02.png").unlink()
    report = index_folder(folder, tmp_path / "s", first_stage=tiny_siglip)
    assert report == IndexReport(indexed=2, unchanged=10, removed=1, unreadable={}, total=12)
    after = {d.meta["file_path"]: d for d in open_store(tmp_path / "s").filter_documents()}
    assert after["picture-01.png"].id == before["picture-01.png"].id
    assert after["picture-01.png"].embedding != before["picture-01.png"].embedding
    assert after["picture-04.png"] == before["picture-04.png"]
    assert "picture-02.png" not in after


def test_unreadable_images_are_reported_by_name(folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    (folder / "broken.jpg").write_bytes(b"no image")
    (folder / "more" / "empty.png").touch()
    (folder / "outside.png").symlink_to(tmp_path / "secret.png")
    (folder / "gone.png").symlink_to(folder / "nothing.png")
    (folder / "notes.txt").write_text("not an image, and not meant as one")
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    report = index_folder(folder, tmp_path / "s", first_stage=tiny_siglip, batch_size=4)
    assert (report.indexed, report.total) == (12, 12)
    assert sorted(report.unreadable) == ["broken.jpg", "gone.png", "more/empty.png", "outside.png"]
    assert report.unreadable["broken.jpg"] == "it is not an image of a known format."
    assert report.unreadable["more/empty.png"] == "it is empty."
    assert "outside the root" in report.unreadable["outside.png"]
    assert "no file" in report.unreadable["gone.png"]
    assert not any("Document" in reason for reason in report.unreadable.values())


def test_heic_files_are_reported(folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    (folder / "IMG_1234.HEIC").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(64))
    report = index_folder(folder, tmp_path / "s", first_stage=tiny_siglip)
    assert (report.indexed, report.unreadable) == (12, {"IMG_1234.HEIC": "HEIC is not read; convert it to JPEG."})


def test_image_that_became_unreadable_leaves_the_store(folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    index_folder(folder, tmp_path / "s", first_stage=tiny_siglip)
    (folder / "picture-01.png").write_bytes(b"scrambled")
    report = index_folder(folder, tmp_path / "s", first_stage=tiny_siglip)
    assert (report.unchanged, report.total, list(report.unreadable)) == (11, 11, ["picture-01.png"])
    assert "picture-01.png" not in names(tmp_path / "s")


def test_folder_without_images(tmp_path: Path, tiny_siglip: str) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match="The folder '.*' holds no images"):
        index_folder(tmp_path, tmp_path / "s", first_stage=tiny_siglip)
    with pytest.raises(FileNotFoundError, match="There is no folder '.*nowhere'"):
        index_folder(tmp_path / "nowhere", tmp_path / "s", first_stage=tiny_siglip)
    assert not (tmp_path / "s").exists()


def test_store_of_another_first_stage_or_folder_is_refused(folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    index_folder(folder, tmp_path / "s", first_stage=tiny_siglip)
    with pytest.raises(StoreError, match=f"made with the first stage '{tiny_siglip}', not 'bundled'"):
        index_folder(folder, tmp_path / "s", first_stage="bundled")
    with pytest.raises(StoreError, match="made from the folder '.*images', not '.*more'"):
        index_folder(folder / "more", tmp_path / "s", first_stage=tiny_siglip)


def test_killed_indexer_loses_its_last_batch_only(folder: Path, tmp_path: Path, tiny_siglip: str) -> None:
    """A real process, killed with SIGKILL between two batches."""
    for number in range(60):
        Image.new("RGB", (32, 32), (number, 4 * number, 255 - number)).save(folder / f"extra-{number:02d}.png")
    code = (
        "import sys, time\n"
        "from radical_haystack.pipelines import index_folder\n"
        "index_folder(sys.argv[1], sys.argv[2], first_stage=sys.argv[3], batch_size=4,"
        " progress=lambda done, total: time.sleep(0.2))\n"
    )
    arguments = [sys.executable, "-c", code, str(folder), str(tmp_path / "s"), tiny_siglip]
    journal = tmp_path / "s" / "journal.jsonl"
    with subprocess.Popen(arguments) as process:
        try:
            while not journal.exists() or journal.read_bytes().count(b"\n") < 12:
                assert process.poll() is None
                time.sleep(0.02)
            written = journal.read_bytes().count(b"\n")
        finally:
            process.send_signal(signal.SIGKILL)
    report = index_folder(folder, tmp_path / "s", first_stage=tiny_siglip, batch_size=4)
    assert written <= report.unchanged < 72
    assert report.indexed == 72 - report.unchanged
    assert (report.total, len(names(tmp_path / "s"))) == (72, 72)
