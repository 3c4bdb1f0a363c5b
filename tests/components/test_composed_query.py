# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Composed queries: what makes one, what is refused, and how the ranker and the filter take it."""

import asyncio
import random
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream, ImageContent
from haystack.utils import ComponentDevice
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from radical_haystack.components import (
    ComposedQuery,
    ComposedQueryBuilder,
    ImageReadError,
    RadicalRanker,
    ReferenceFilter,
)
from radical_haystack.pruning import PruningSchedule

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def picture(number: int, size: tuple[int, int] = (24, 16)) -> Image.Image:
    return Image.frombytes("RGB", size, random.Random(number).randbytes(3 * size[0] * size[1]))


def png(image: Image.Image) -> bytes:
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def document(number: int, **fields: Any) -> Document:
    blob = ByteStream(png(picture(number)), mime_type="image/png")
    return Document(**{"id": f"doc-{number}", "blob": blob, **fields})


def kinds(number: int, folder: Path) -> dict[str, Any]:
    """One picture in every form a reference may have."""
    path = folder / f"{number}.png"
    path.write_bytes(png(picture(number)))
    return {
        "PIL image": picture(number),
        "path": path,
        "path as text": str(path),
        "ByteStream": ByteStream(png(picture(number)), mime_type="image/png"),
        "ImageContent": ImageContent.from_file_path(str(path)),
        "Document": document(number),
    }


KINDS = ("PIL image", "path", "path as text", "ByteStream", "ImageContent", "Document")


@pytest.fixture(scope="module")
def ranker(tiny_vlm: str) -> RadicalRanker:
    schedule = PruningSchedule(layers=(1, 3), alphas=(0.6, 0.1), keep_ratio=0.5)
    return RadicalRanker(
        model=tiny_vlm, schedule=schedule, keep_ratio=0.3, device=ComponentDevice.from_str("cpu"), top_k=3
    )


def after_yaml(component: Any) -> Any:
    pipeline = Pipeline()
    pipeline.add_component("it", component)
    again = Pipeline.loads(pipeline.dumps())
    assert again.dumps() == pipeline.dumps()
    return again.get_component("it")


class TestComposedQuery:
    @given(parts=st.lists(words, max_size=4))
    def test_captions_are_joined_as_in_fashioniq(self, parts: list[str]) -> None:
        said = [part.strip() for part in parts if part.strip()]
        if said:
            assert ComposedQuery.from_captions("a.png", parts).text == " and ".join(said)
        else:
            with pytest.raises(ValueError, match="modification text of a composed query is blank"):
                ComposedQuery.from_captions("a.png", parts)

    @given(text=words.filter(str.strip))
    def test_one_caption_is_a_list_of_one(self, text: str) -> None:
        assert ComposedQuery.from_captions("a.png", text) == ComposedQuery.from_captions("a.png", [text])
        assert ComposedQuery.from_captions("a.png", text).text == text.strip()

    @pytest.mark.parametrize("text", ["", " \n", None])
    def test_blank_modification(self, text: Any) -> None:
        for make in (lambda: ComposedQuery(text, "a.png"), lambda: ComposedQuery.from_captions("a.png", text)):
            with pytest.raises(ValueError, match="modification text of a composed query is blank"):
                make()

    @pytest.mark.parametrize("captions", [5, ["is blue", 5], b"is blue"])
    def test_modification_that_is_no_text(self, captions: Any) -> None:
        with pytest.raises(ValueError, match="must be a text or several texts, not .*5|b'is blue'"):
            ComposedQuery.from_captions("a.png", captions)

    @pytest.mark.parametrize("reference", [None, 7, b"bytes", ["a.png"]])
    def test_reference_that_is_no_image(self, reference: Any) -> None:
        with pytest.raises(ValueError, match=f"must be an image .*, not {type(reference).__name__}"):
            ComposedQuery("is blue", reference)

    def test_reference_id_is_that_of_the_document(self) -> None:
        assert ComposedQuery("is blue", document(1)).reference_id == "doc-1"
        assert ComposedQuery("is blue", document(1), "other").reference_id == "other"
        assert ComposedQuery("is blue", picture(1)).reference_id is None


class TestBuilder:
    @pytest.mark.parametrize("kind", KINDS)
    def test_any_kind_of_reference(self, kind: str, tmp_path: Path) -> None:
        output = ComposedQueryBuilder().run(kinds(1, tmp_path)[kind], ["is blue", " has dots "])
        query = output["composed_query"]
        assert output["text"] == query.text == "is blue and has dots"
        assert query.reference_image.tobytes() == picture(1).tobytes()
        assert query.reference_id == ("doc-1" if kind == "Document" else None)

    def test_reference_id_of_ones_own(self) -> None:
        assert ComposedQueryBuilder().run(picture(1), "is blue", reference_id="x")["composed_query"].reference_id == "x"

    def test_input_is_left_as_it_is(self) -> None:
        given, captions = document(1), ["is blue", ""]
        before = deepcopy(given)
        ComposedQueryBuilder().run(given, captions)
        assert (given, captions) == (before, ["is blue", ""])

    def test_unreadable_reference_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "text.png").write_text("no image")
        builder = ComposedQueryBuilder()
        with pytest.raises(ImageReadError, match="text.png' cannot be read: it is not an image"):
            builder.run(tmp_path / "text.png", "is blue")
        with pytest.raises(ImageReadError, match="absent.png', where there is no file"):
            builder.run(tmp_path / "absent.png", "is blue")
        with pytest.raises(ImageReadError, match="Document 'x' has no image"):
            builder.run(Document(id="x", content="text"), "is blue")

    def test_paths_stay_under_the_root(self, tmp_path: Path) -> None:
        (tmp_path / "root").mkdir()
        kinds(1, tmp_path / "root")
        kinds(2, tmp_path)
        builder = ComposedQueryBuilder(root_path=str(tmp_path / "root"), file_path_meta_field="picture")
        for source in ("1.png", Document(meta={"picture": "1.png"})):
            assert builder.run(source, "is blue")["composed_query"].reference_image.tobytes() == picture(1).tobytes()
        with pytest.raises(ImageReadError, match="outside the root"):
            builder.run("../2.png", "is blue")

    def test_round_trip(self) -> None:
        again = after_yaml(ComposedQueryBuilder(file_path_meta_field="picture", root_path="/data"))
        assert (again.file_path_meta_field, again.root_path) == ("picture", "/data")


class TestReferenceFilter:
    @pytest.mark.parametrize("kind", KINDS)
    def test_found_by_its_content(self, kind: str, tmp_path: Path) -> None:
        given = [document(number) for number in range(5)]
        reference = kinds(3, tmp_path)[kind]
        for query in (
            ComposedQuery("is blue", reference, "an id that none has"),
            ComposedQueryBuilder().run(reference, "is blue")["composed_query"],
        ):
            assert ReferenceFilter().run(given, query)["documents"] == [*given[:3], given[4]]

    def test_found_by_its_id(self) -> None:
        # Its picture need not be readable, and a copy under another id is another document.
        given = [document(0), Document(id="me", content="no picture"), document(2), document(0, id="copy")]
        assert ReferenceFilter().run(given, ComposedQuery("is blue", picture(0), "me"))["documents"] == [
            given[0],
            *given[2:],
        ]

    @given(
        numbers=st.lists(st.integers(0, 6), max_size=12),
        reference=st.integers(0, 6),
        top_k=st.none() | st.integers(1, 13),
        broken=st.sets(st.integers(0, 11)),
    )
    def test_nothing_else_is_lost(
        self, numbers: list[int], reference: int, top_k: int | None, broken: set[int]
    ) -> None:
        given = [
            Document(id=f"broken-{place}") if place in broken else document(number, id=str(place))
            for place, number in enumerate(numbers)
        ]
        before = deepcopy(given)
        output = ReferenceFilter(top_k=top_k).run(given, ComposedQuery("is blue", picture(reference)))["documents"]
        expected = [
            each
            for place, (each, number) in enumerate(zip(given, numbers, strict=True))
            if place in broken or number != reference
        ]
        assert output == expected[:top_k]
        assert given == before

    def test_same_bytes_of_another_shape_are_another_picture(self) -> None:
        wide, high = picture(1, (24, 16)), picture(1, (16, 24))
        assert wide.tobytes() == high.tobytes()
        given = [Document(blob=ByteStream(png(high), mime_type="image/png"))]
        assert ReferenceFilter().run(given, ComposedQuery("is blue", wide))["documents"] == given

    def test_paths_under_the_root(self, tmp_path: Path) -> None:
        kinds(1, tmp_path)
        kinds(2, tmp_path)
        given = [Document(id=str(number), meta={"picture": f"{number}.png"}) for number in (1, 2)]
        chosen = ReferenceFilter(root_path=str(tmp_path), file_path_meta_field="picture")
        assert chosen.run(given, ComposedQuery("is blue", picture(2)))["documents"] == given[:1]

    def test_invalid_top_k(self) -> None:
        with pytest.raises(ValueError, match="ReferenceFilter: top_k must be > 0, but got 0"):
            ReferenceFilter(top_k=0)

    def test_round_trip(self) -> None:
        again = after_yaml(ReferenceFilter(top_k=7, file_path_meta_field="picture", root_path="/data"))
        assert (again.top_k, again.file_path_meta_field, again.root_path) == (7, "picture", "/data")


class TestRanker:
    def test_same_as_text_and_reference_image(self, ranker: RadicalRanker, tmp_path: Path) -> None:
        given = [document(number) for number in range(5)]
        expected = ranker.run("is blue", documents=given, reference_image=picture(9))
        assert len(expected["documents"]) == 3
        for reference in kinds(9, tmp_path).values():
            query = ComposedQuery("is blue", reference)
            assert ranker.run(documents=given, composed_query=query) == expected
        query = ComposedQueryBuilder().run(picture(9), "is blue")["composed_query"]
        assert asyncio.run(ranker.run_async(documents=given, composed_query=query)) == expected
        assert ranker.run("is blue", documents=given) != expected

    @pytest.mark.parametrize("more", [{"query": "is red"}, {"query": "is blue"}, {"reference_image": picture(1)}])
    def test_two_queries_are_refused(self, ranker: RadicalRanker, more: dict[str, Any]) -> None:
        for documents in ([], [document(0)]):
            with pytest.raises(ValueError, match="RadicalRanker: composed_query takes the place of query"):
                ranker.run(documents=documents, composed_query=ComposedQuery("is blue", picture(9)), **more)

    def test_no_query_is_refused(self, ranker: RadicalRanker) -> None:
        with pytest.raises(ValueError, match="a query or a composed_query is needed, but got query=None"):
            ranker.run(documents=[document(0)])
        with pytest.raises(ValueError, match="a query or a composed_query is needed"):
            ranker.run(documents=[document(0)], reference_image=picture(9))
