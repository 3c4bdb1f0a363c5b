# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""A store on disk: closed and opened again, and killed at the worst moments."""

import os
from pathlib import Path

import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.pipelines import StoreError, StoreInfo, create_store, open_store, read_store_info, save_store
from radical_haystack.pipelines.stores import journal

INFO = StoreInfo(first_stage="bundled", dimension=3, root_path="/pictures")


def documents(*names: str, shift: float = 0.0) -> list[Document]:
    return [
        Document(id=name, meta={"file_path": f"{name}.png"}, embedding=[number + shift, 1.0, -2.5])
        for number, name in enumerate(names)
    ]


def contents(store: FAISSDocumentStore) -> dict[str, list[float] | None]:
    return {document.id: document.embedding for document in store.filter_documents()}


def nearest(store: FAISSDocumentStore, embedding: list[float]) -> list[str]:
    return [document.id for document in store.search(embedding, top_k=10)]


def test_created_filled_saved_and_opened_again(tmp_path: Path) -> None:
    store = create_store(tmp_path / "store", INFO)
    store.write_documents(documents("a", "b", "c"))
    save_store(store, tmp_path / "store")
    again = open_store(tmp_path / "store")
    assert contents(again) == contents(store)
    assert nearest(again, [2.0, 1.0, -2.5]) == ["c", "b", "a"]
    assert again.filter_documents()[0].meta == {"file_path": "a.png"}
    assert again.embedding_dim == 3
    assert read_store_info(tmp_path / "store") == INFO


def test_saved_store_is_an_ordinary_faiss_store(tmp_path: Path) -> None:
    store = create_store(tmp_path / "store", INFO)
    store.write_documents(documents("a", "b"))
    save_store(store, tmp_path / "store")
    assert contents(FAISSDocumentStore(index_path=store.index_path, embedding_dim=3)) == contents(store)
    assert contents(FAISSDocumentStore.from_dict(store.to_dict())) == contents(store)


def test_batches_in_the_journal_survive_without_a_save(tmp_path: Path) -> None:
    store = create_store(tmp_path / "store", INFO)
    store.write_documents(documents("a", "b"))
    save_store(store, tmp_path / "store")
    with journal(tmp_path / "store") as append:
        append(documents("c"))
        append(documents("a", "d", shift=7.0))
    again = open_store(tmp_path / "store")  # nobody saved: the writer was killed
    assert sorted(contents(again)) == ["a", "b", "c", "d"]
    assert contents(again)["a"] == [7.0, 1.0, -2.5]
    assert nearest(again, [8.0, 1.0, -2.5])[:2] == ["d", "a"]
    assert nearest(open_store(tmp_path / "store"), [8.0, 1.0, -2.5])[:2] == ["d", "a"]


def test_torn_last_line_is_left_out(tmp_path: Path) -> None:
    create_store(tmp_path / "store", INFO)
    with journal(tmp_path / "store") as append:
        append(documents("a", "b"))
    with open(tmp_path / "store" / "journal.jsonl", "a") as file:
        file.write('{"id": "torn", "embedd')
    assert sorted(contents(open_store(tmp_path / "store"))) == ["a", "b"]


@pytest.mark.parametrize("steps", range(4))
def test_kill_while_saving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Whatever replacement the kill hits, the documents are there and the index fits them."""
    store = create_store(tmp_path / "store", INFO)
    store.write_documents(documents("a", "b"))
    save_store(store, tmp_path / "store")
    store.write_documents(documents("b", "c", shift=5.0), policy=DuplicatePolicy.OVERWRITE)
    with journal(tmp_path / "store") as append:
        append(documents("b", "c", shift=5.0))

    class Killed(BaseException):
        pass

    done = []

    def kill_after_some(original: object) -> object:
        def step(*arguments: object) -> object:
            if len(done) == steps:
                raise Killed
            done.append(1)
            return original(*arguments)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", kill_after_some(os.replace))
        patch.setattr(Path, "unlink", kill_after_some(Path.unlink))
        if steps < 3:
            with pytest.raises(Killed):
                save_store(store, tmp_path / "store")
        else:
            save_store(store, tmp_path / "store")
    again = open_store(tmp_path / "store")
    assert contents(again) == {"a": [0.0, 1.0, -2.5], "b": [5.0, 1.0, -2.5], "c": [6.0, 1.0, -2.5]}
    assert nearest(again, [6.0, 1.0, -2.5]) == ["c", "b", "a"]


def test_half_made_store_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "journal.jsonl").touch()
    assert create_store(tmp_path / "store", INFO).count_documents() == 0


def test_new_store_needs_an_empty_place(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for taken in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(StoreError, match="something is there already"):
            create_store(taken, INFO)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="There is no store at '.*nowhere'"):
        open_store(tmp_path / "nowhere")


@pytest.mark.parametrize("file", ["store.json", "index.json", "index.faiss"])
def test_damaged_store_is_named(tmp_path: Path, file: str) -> None:
    store = create_store(tmp_path / "store", INFO)
    store.write_documents(documents("a"))
    save_store(store, tmp_path / "store")
    (tmp_path / "store" / file).write_text("{ nonsense")
    with pytest.raises(StoreError, match="The store at '.*store' is damaged"):
        open_store(tmp_path / "store")
