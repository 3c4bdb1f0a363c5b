# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Opening an index: with the first stage it belongs to, and not if there is nothing in it to search."""

from collections.abc import Callable
from pathlib import Path

import pytest

from radical_haystack.evaluation.audit import run_audit
from radical_haystack.pipelines import StoreError, index_folder, search_folder
from radical_haystack.pipelines.explaining import explain_search
from radical_haystack.pipelines.indexes import open_index


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, tiny_siglip: str) -> Path:
    """The index of a folder without an image that can be read."""
    folder, path = tmp_path_factory.mktemp("images"), tmp_path_factory.mktemp("indexes") / "index"
    (folder / "broken.png").write_bytes(b"no image")
    index_folder(folder, path, first_stage=tiny_siglip)
    return path


def test_an_index_knows_what_made_it(image_folder: Path, tiny_siglip: str, tmp_path: Path) -> None:
    index_folder(image_folder, tmp_path / "index", first_stage=tiny_siglip)
    index = open_index(tmp_path / "index")
    assert len(index) == 12
    assert index.stage.name == index.info.first_stage == tiny_siglip
    assert Path(index.info.root_path) == image_folder
    index.require_documents()
    found = index.retrieval_pipeline(candidates=5).run({"embedder": {"text": "red"}})
    assert len(found["retriever"]["documents"]) == 5


# The retriever would say so too, but only after the models are loaded, and without the store's name.
@pytest.mark.parametrize(
    "use",
    [
        lambda path: search_folder(path, "red"),
        lambda path: explain_search(path, "red"),
        lambda path: run_audit(path, ["red"], group_by="folder"),
    ],
    ids=["search", "explain", "audit"],
)
def test_an_empty_index_is_refused_before_anything_is_loaded(empty: Path, use: Callable[[Path], object]) -> None:
    with pytest.raises(StoreError, match=f"The store at '{empty}' is empty"):
        use(empty)
