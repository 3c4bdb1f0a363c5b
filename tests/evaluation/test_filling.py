# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""A store filled from a data set."""

from pathlib import Path

import pytest
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.evaluation import fill_store, load_catalogue, load_fashioniq
from radical_haystack.pipelines.first_stages import first_stage_of


def test_fill_and_search(fashioniq: Path, tiny_siglip: str) -> None:
    dataset = load_fashioniq(fashioniq)
    store = FAISSDocumentStore(embedding_dim=32)
    seen: list[tuple[int, int]] = []
    told: list[list[str]] = []
    report = fill_store(
        dataset,
        store,
        tiny_siglip,
        batch_size=4,
        written=lambda documents: told.append([document.id for document in documents if document.embedding]),
        progress=lambda *at: seen.append(at),
    )
    assert told == [[document.id for document in dataset.documents[start : start + 4]] for start in (0, 4, 8)]
    assert (report.indexed, report.unchanged, report.total, report.unreadable) == (9, 0, 9, {})
    assert seen == [(4, 9), (8, 9), (9, 9)]
    embedding = first_stage_of(tiny_siglip).text_embedder().run(text="is red")["embedding"]
    found = [document.id for document in store.search(embedding, top_k=9)]
    assert set(found) == set(dataset.by_id)
    query = dataset.queries[0]
    candidates = dataset.draw_candidates(query, found)
    assert set(candidates) == set(dataset.by_id) - {"dress/D2"}


def test_only_what_is_not_there_is_embedded(fashioniq: Path, tiny_siglip: str) -> None:
    dataset = load_fashioniq(fashioniq)
    (fashioniq / "images/D1.jpg").write_bytes(b"no image")
    store = FAISSDocumentStore(embedding_dim=32)
    first = fill_store(dataset.of_category("dress"), store, tiny_siglip)
    assert (first.indexed, first.total) == (3, 3)
    assert "not an image" in first.unreadable["images/D1.jpg"]
    second = fill_store(dataset, store, tiny_siglip)
    assert (second.indexed, second.unchanged, second.total) == (5, 3, 8)
    assert list(second.unreadable) == ["images/D1.jpg"]


def test_nothing_to_fill_with(tmp_path: Path, tiny_siglip: str, fashioniq: Path) -> None:
    for path in fashioniq.glob("images/*"):
        path.unlink()
    report = fill_store(load_fashioniq(fashioniq), FAISSDocumentStore(embedding_dim=32), tiny_siglip)
    assert (report.indexed, report.total) == (0, 0)


def test_images_must_be_in_files(tiny_siglip: str) -> None:
    with pytest.raises(ValueError, match="'catalogue' are not in files"):
        fill_store(load_catalogue(queries=1), FAISSDocumentStore(embedding_dim=32), tiny_siglip)


def test_the_catalogue_from_files(tmp_path: Path, tiny_siglip: str) -> None:
    dataset = load_catalogue(tmp_path, queries=1, candidates=4).of_category("text")
    report = fill_store(dataset, FAISSDocumentStore(embedding_dim=32), tiny_siglip)
    assert (report.indexed, report.unreadable) == (4, {})
