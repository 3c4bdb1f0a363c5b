# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The gallery on disk, and finding the bundled checkpoints."""

import json
import subprocess
import sys

import pytest
from PIL import Image

from radical_haystack.catalog import bundled_model_path, gallery_items, world_of, write_gallery


def test_items_are_distinct_held_out_and_grow_at_the_end():
    items = gallery_items(200)
    assert len({item.outfit for item in items}) == len({item.name for item in items}) == 200
    assert all(world_of(item.outfit) == "heldout" for item in items)
    assert gallery_items(50) == items[:50]
    assert gallery_items(50, seed=1) != items[:50]
    assert len({item.scene.shop_seed for item in items}) > 20


def test_folder_holds_readable_pictures_and_captions(tmp_path):
    records = write_gallery(tmp_path / "new" / "gallery", 5)
    folder = tmp_path / "new" / "gallery"
    assert json.loads((folder / "captions.json").read_text()) == records
    assert [r["caption"] for r in records] == [item.caption for item in gallery_items(5)]
    assert sorted(p.name for p in folder.iterdir()) == sorted(["captions.json", *(r["file"] for r in records)])
    for record in records:
        with Image.open(folder / record["file"]) as image:
            assert image.size == (256, 256)
            image.load()


def test_complete_pictures_are_kept_and_missing_ones_drawn(tmp_path):
    first = write_gallery(tmp_path, 4)
    kept, lost = tmp_path / first[0]["file"], tmp_path / first[1]["file"]
    before, content = kept.stat().st_mtime_ns, lost.read_bytes()
    lost.unlink()
    (tmp_path / "captions.json").unlink()
    assert write_gallery(tmp_path, 4) == first
    assert kept.stat().st_mtime_ns == before
    assert lost.read_bytes() == content


def test_an_unknown_model_is_named_with_the_known_ones():
    with pytest.raises(FileNotFoundError, match="No bundled model 'nothing'; known:"):
        bundled_model_path("nothing")


def test_importing_the_catalogue_does_not_import_torch():
    code = "import sys, radical_haystack.catalog; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
