# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the app's searches do, without a user interface."""

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from radical_haystack.app import searching
from radical_haystack.app.catalogue import prepare_catalogue
from radical_haystack.app.searching import Comparison, Reference, Searcher, SearchError, reference_from_file
from radical_haystack.pipelines import StoreError, StoreInfo, create_store, search_folder
from radical_haystack.pipelines.first_stages import first_stage_of
from radical_haystack.pipelines.indexes import open_index
from radical_haystack.pipelines.searching import CANDIDATES
from radical_haystack.pruning import PRUNERS

QUERY = "a red dress"


@pytest.fixture(scope="module")
def comparison(searcher: Searcher) -> Comparison:
    return searcher.rank(searcher.retrieve(0, QUERY), keep_ratio=0.2)


def order(comparison: Comparison) -> list[str]:
    return [candidate.name for candidate in comparison.reranked]


def test_both_orders_hold_the_same_candidates(comparison: Comparison) -> None:
    assert len(comparison.candidates) == CANDIDATES
    assert [candidate.first_rank for candidate in comparison.candidates] == list(range(1, CANDIDATES + 1))
    assert [candidate.rank for candidate in comparison.reranked] == list(range(1, CANDIDATES + 1))
    assert sum(candidate.moved for candidate in comparison.candidates) == 0
    assert all(c.first_rank - c.moved == c.rank for c in comparison.candidates)


def test_order_is_that_of_the_pipeline(catalogue: Path, comparison: Comparison) -> None:
    documents = search_folder(catalogue, QUERY, top_k=CANDIDATES, keep_ratio=0.2)
    assert order(comparison) == [document.meta["file_path"] for document in documents]
    by_name = {candidate.name: candidate for candidate in comparison.candidates}
    for document in documents:
        candidate, radical = by_name[document.meta["file_path"]], document.meta["radical"]
        assert candidate.first_rank == radical["first_stage_rank"]
        assert (candidate.kept_tokens, candidate.total_tokens) == (radical["kept_tokens"], radical["total_tokens"])
        assert candidate.score == pytest.approx(document.score, abs=1e-5)


def test_masks_shrink_from_stage_to_stage(comparison: Comparison) -> None:
    assert len(comparison.stages) > 1
    counts = [comparison.total_tokens, *(stage.tokens for stage in comparison.stages)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == comparison.kept_tokens == pytest.approx(0.2 * comparison.total_tokens, abs=4)
    for candidate in comparison.candidates:
        assert len(candidate.masks) == len(comparison.stages)
        assert candidate.masks[0].size == candidate.total_tokens
        assert int(candidate.masks[-1].sum()) == candidate.kept_tokens
        for wider, narrower in zip(candidate.masks, candidate.masks[1:], strict=False):
            assert not (narrower & ~wider).any()


@pytest.mark.parametrize("pruner", PRUNERS)
def test_every_pruner_can_be_compared(searcher: Searcher, pruner: str) -> None:
    found = searcher.retrieve(0, QUERY)
    small = replace(found, documents=found.documents[:4], images=found.images[:4])
    compared = searcher.rank(small, pruner=pruner, keep_ratio=0.5)
    assert compared.pruner == pruner
    assert (compared.kept_tokens == compared.total_tokens) == (pruner == "dense")


def test_times_are_told_by_step(comparison: Comparison) -> None:
    assert list(comparison.seconds) == ["first stage", "reading images", "vision encoder", "language model"]
    assert all(seconds >= 0 for seconds in comparison.seconds.values())
    assert comparison.seconds["language model"] > 0


def test_a_result_as_reference_is_not_found_again(searcher: Searcher, comparison: Comparison) -> None:
    first = comparison.reranked[0]
    reference = searcher.reference_from_result(0, first.document_id)
    assert reference.name == first.name
    found = searcher.retrieve(0, "is blue instead", reference)
    assert len(found.documents) == CANDIDATES
    assert first.document_id not in [document.id for document in found.documents]
    assert searcher.rank(found).found.reference is reference


def test_the_reference_changes_the_search(searcher: Searcher, comparison: Comparison) -> None:
    one, other = comparison.reranked[0], comparison.reranked[-1]
    found = [
        searcher.retrieve(0, "is blue instead", searcher.reference_from_result(0, candidate.document_id))
        for candidate in (one, other)
    ]
    assert [d.id for d in found[0].documents] != [d.id for d in found[1].documents]


def test_an_upload_of_an_indexed_picture_is_not_found_again(searcher: Searcher, comparison: Comparison) -> None:
    root = Path(searcher.indexes[0].info.root_path)
    name = comparison.reranked[0].name
    reference = reference_from_file(root / name, "mine.jpg")
    found = searcher.retrieve(0, "is blue instead", reference)
    assert name not in [document.meta["file_path"] for document in found.documents]


@pytest.mark.parametrize("query", ["", "  \n", None])
def test_blank_queries(searcher: Searcher, query: str | None) -> None:
    with pytest.raises(SearchError, match="Type what you are looking for"):
        searcher.retrieve(0, query)
    with pytest.raises(SearchError, match="Say what shall be different"):
        searcher.retrieve(0, query, Reference("r", Image.new("RGB", (64, 64))))


def test_long_queries(searcher: Searcher) -> None:
    with pytest.raises(SearchError, match="Shorten it"):
        searcher.retrieve(0, "red " * 500)


@pytest.mark.parametrize("index", [-1, 1])
def test_no_such_index(searcher: Searcher, index: int) -> None:
    with pytest.raises(SearchError, match="Choose one"):
        searcher.retrieve(index, QUERY)


@pytest.mark.parametrize("document_id", ["", "../../etc/passwd", "/etc/passwd", None, {"field": "id"}, 3])
def test_what_is_no_document_is_no_reference(searcher: Searcher, document_id: object) -> None:
    with pytest.raises(SearchError, match="not in the index"):
        searcher.reference_from_result(0, document_id)


def test_settings_out_of_range(searcher: Searcher) -> None:
    found = searcher.retrieve(0, QUERY)
    with pytest.raises(ValueError, match="keep ratio"):
        searcher.rank(found, keep_ratio=0)
    with pytest.raises(ValueError, match="Unknown pruner"):
        searcher.rank(found, pruner="magic")


def test_unreadable_candidates_come_last(searcher: Searcher) -> None:
    found = searcher.retrieve(0, QUERY)
    broken = [replace(d, meta={**d.meta, "file_path": "gone.jpg"}) if k in (0, 2) else d
              for k, d in enumerate(found.documents[:5])]  # fmt: skip
    images = tuple(searching.load_document_images(broken, root_path=searcher.indexes[0].info.root_path))
    compared = searcher.rank(replace(found, documents=tuple(broken), images=images))
    assert [c.first_rank for c in compared.reranked[-2:]] == [1, 3]
    assert [c.score is None for c in compared.reranked] == [False] * 3 + [True] * 2
    assert all("gone.jpg" in str(c.image) for c in compared.reranked[-2:])
    nothing = replace(found, documents=tuple(broken[:1]), images=images[:1])
    with pytest.raises(SearchError, match="Index their folder again"):
        searcher.rank(nothing)


def test_empty_index(tmp_path: Path, searcher: Searcher) -> None:
    stage = first_stage_of("bundled")
    create_store(tmp_path / "store", StoreInfo(stage.name, 96, str(tmp_path), stage.weights_digest))
    empty = Searcher([open_index(tmp_path / "store")], model=searcher.model)
    with pytest.raises(SearchError, match="radical-haystack index FOLDER"):
        empty.retrieve(0, QUERY)


def test_no_index(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store"):
        open_index(tmp_path)


def test_catalogue_is_made_once(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    store = prepare_catalogue(tmp_path, pictures=6, progress=lambda *at: steps.append(at))
    assert steps[-1] == ("Indexing the catalogue", 6, 6)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("catalogue-6/*.jpg")}
    assert len(times) == 6
    assert prepare_catalogue(tmp_path, pictures=6) == store
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert len(open_index(store)) == 6


def test_searches_in_threads_give_what_they_give_alone(searcher: Searcher) -> None:
    queries = ["a red dress", "blue shorts", "a green coat", "yellow trousers with dots"]

    def search(query: str) -> list[str]:
        return order(searcher.rank(searcher.retrieve(0, query)))

    alone = [search(query) for query in queries]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(search, queries * 2)) == alone * 2


def test_model_is_loaded_once(searcher: Searcher) -> None:
    fresh = Searcher(searcher.indexes, model=searcher.model)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: fresh.warm_up(), range(4)))
    loaded = fresh._vlm
    fresh.rank(fresh.retrieve(0, QUERY))
    assert fresh._vlm is loaded


def png(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("1", (width, height)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cannot be read"),
        (b"no image", "cannot be read"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "cannot be read"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "cannot be read"),
        (png(60, 60)[:45], "cannot be read"),
        (png(10_000, 5_001), "megapixels"),
        (png(20_000, 20_000), "cannot be read|megapixels"),
        (b"\0" * (searching.MAX_UPLOAD_BYTES + 1), "larger than 10 MB"),
    ],
    ids=["empty", "text", "svg", "eps", "truncated", "pixels", "bomb", "bytes"],
)
def test_uploads_that_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "upload").write_bytes(data)
    with pytest.raises(SearchError, match=message) as refusal:
        reference_from_file(tmp_path / "upload", "holiday.png")
    assert "'holiday.png'" in str(refusal.value)
    assert "Choose" in str(refusal.value)
    assert str(tmp_path) not in str(refusal.value)


def test_uploads_are_read_upright(tmp_path: Path) -> None:
    image = Image.fromarray(np.arange(24, dtype=np.uint8).reshape(4, 6))
    exif = Image.Exif()
    exif[274] = 6
    image.save(tmp_path / "turned.jpg", exif=exif)
    assert reference_from_file(tmp_path / "turned.jpg", "turned").image.size == (4, 6)
