# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The app's HTML: what it says, and that nothing foreign gets into it as markup."""

import base64
import io
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from radical_haystack.app import page
from radical_haystack.app.interface import Handlers, build_app
from radical_haystack.app.searching import Candidate, Comparison, Reference, Searcher
from radical_haystack.components import ImageReadError
from radical_haystack.pipelines import index_folder
from radical_haystack.pipelines.indexes import Index, open_index

VOID = {"img", "input"}


class Elements(HTMLParser):
    """All elements with their attributes; open ones must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.found if name in (attributes.get("class") or "").split()]


@pytest.fixture(scope="module")
def comparison(searcher: Searcher) -> Comparison:
    return searcher.rank(searcher.retrieve(0, "a red dress"))


def decoded(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.partition("base64,")[2])))


def candidate(first_rank: int, rank: int) -> Candidate:
    return Candidate("id", "name", Image.new("RGB", (8, 8)), first_rank, rank)


@pytest.mark.parametrize(
    ("first_rank", "rank", "mark", "words"),
    [(7, 4, "▲3", "up 3 places, was 7"), (2, 3, "▼1", "down 1 place, was 2"), (5, 5, "=", "same place")],
)
def test_rank_changes(first_rank: int, rank: int, mark: str, words: str) -> None:
    shown = Elements(page.rank_change(candidate(first_rank, rank)))
    assert mark in shown.text
    assert words in shown.text


def test_both_orders_with_marks_bars_and_switches(comparison: Comparison) -> None:
    shown = Elements(page.results(comparison))
    count, stages = len(comparison.candidates), len(comparison.stages)
    assert len(shown.of_class("rh-card")) == 2 * count
    assert len(shown.of_class("rh-move")) == count
    assert len(shown.of_class("rh-veil")) == count * stages
    picks = [attributes["data-pick"] for attributes in shown.of_class("rh-pick")]
    assert picks == [candidate.document_id for candidate in comparison.reranked]
    radios = [attributes for tag, attributes in shown.found if tag == "input"]
    assert len(radios) == (count + 1) * (stages + 1)
    assert sum("checked" in attributes for attributes in radios) == count + 1
    assert len({attributes["name"] for attributes in radios}) == count + 1
    for label in ("first stage", "reading images", "vision encoder", "language model"):
        assert label in shown.text
    assert f"{comparison.total_tokens:,}" in shown.text


def test_pictures_have_texts_and_come_with_the_page(comparison: Comparison) -> None:
    shown = Elements(page.results(comparison))
    images = [attributes for tag, attributes in shown.found if tag == "img"]
    assert all("alt" in attributes for attributes in images)
    assert all(str(attributes["src"]).startswith("data:image/") for attributes in images)
    assert max(max(decoded(str(attributes["src"])).size) for attributes in images) <= page.THUMBNAIL


def test_a_page_is_small(comparison: Comparison) -> None:
    assert len(page.results(comparison)) < 1_000_000


def test_veils_cover_what_was_dropped() -> None:
    mask = np.array([[True, False, True], [False, False, True]])
    alpha = np.asarray(decoded(page.veil(mask)))[..., 3]
    assert ((alpha == 0) == mask).all()


def test_foreign_text_is_no_markup(comparison: Comparison) -> None:
    evil = "<img src=x onerror=alert(1)>\"'`${alert(1)}{{x}}"
    reference = Reference(evil, Image.new("RGB", (30, 20)))
    found = replace(comparison.found, query=evil, reference=reference, first_stage=evil)
    cards = tuple(replace(c, name=evil, document_id=evil) for c in comparison.candidates)
    broken = replace(cards[0], image=ImageReadError(evil), masks=())
    whole = replace(comparison, found=found, candidates=(broken, *cards[1:]), pruner=evil)
    for text in (page.results(whole), page.first_results(found), page.problem(evil), page.notice(evil)):
        shown = Elements(text)
        assert not any("onerror" in attributes for _, attributes in shown.found)
        assert all(attributes.get("src", "data:").startswith("data:") for _, attributes in shown.found)
    assert evil in Elements(page.problem(evil)).text


def test_names_stand_below_the_pictures(comparison: Comparison) -> None:
    long = "2019 Lisbon/the old town, first day, evening/IMG_20190412_183005.jpg"
    cards = [replace(c, name=f"holiday/{c.name}") for c in comparison.candidates]
    cards[0] = replace(cards[0], image=ImageReadError("It is gone."), masks=())
    cards[1] = replace(cards[1], name=long)
    shown = Elements(page.results(replace(comparison, candidates=tuple(cards))))
    names = [str(attributes["title"]) for attributes in shown.of_class("rh-file")]
    assert sorted(names) == sorted(2 * [card.name for card in cards])
    assert [shown.text.count(page.short_name(card.name)) for card in cards] == [2] * len(cards)
    assert long not in shown.text


@given(st.text(max_size=200).filter(lambda name: "…" not in name))
def test_short_names_keep_both_ends(name: str) -> None:
    short = page.short_name(name)
    head, _, tail = short.partition("…")
    assert len(short) <= 36
    assert short == name or (name.startswith(head) and name.endswith(tail) and min(len(head), len(tail)) > 12)


def test_while_the_model_reads(comparison: Comparison) -> None:
    shown = Elements(page.first_results(comparison.found))
    assert len(shown.of_class("rh-waiting")) == len(comparison.candidates)
    assert shown.of_class("rh-goes") == []
    assert all(candidate.name in shown.text for candidate in comparison.candidates)


def test_unreadable_candidate(comparison: Comparison) -> None:
    cards = list(comparison.candidates)
    cards[0] = replace(cards[0], image=ImageReadError("It is gone."), masks=(), score=None)
    shown = Elements(page.results(replace(comparison, candidates=tuple(cards))))
    assert "It is gone." in shown.text
    assert len(shown.of_class("rh-pick")) == len(cards) - 1


@pytest.mark.parametrize(
    ("pruner", "hint"), [("dense", "Nothing was pruned"), ("lowres", "makes the images themselves")]
)
def test_methods_without_pruning_layers_say_so(searcher: Searcher, pruner: str, hint: str) -> None:
    compared = searcher.rank(searcher.retrieve(0, "a red dress"), pruner=pruner)
    assert hint in Elements(page.results(compared)).text


def test_the_stages_of_pruning_are_explained(comparison: Comparison) -> None:
    text = Elements(page.results(comparison)).text
    assert "layer by layer and drops tokens on the way" in text
    assert f"“after {comparison.stages[-1].label}”" in text


def test_settings_are_explained(searcher: Searcher) -> None:
    infos = {block.elem_id: getattr(block, "info", "") for block in build_app(searcher).blocks.values()}
    assert "patch of an image" in infos["rh-keep-ratio"]
    assert "dense drops none" in infos["rh-pruner"]
    assert "Which images are searched" in infos["rh-index"]
    assert not any("--" in str(info) for info in infos.values())  # those are the terminal's words


def test_outcome(comparison: Comparison) -> None:
    moved = sum(candidate.moved != 0 for candidate in comparison.candidates)
    assert f"reranking moved {moved} of them" in page.outcome(comparison)
    assert "no schedule" in page.outcome(replace(comparison, calibrating=True))


def test_welcome(searcher: Searcher) -> None:
    shown = Elements(page.welcome(searcher.indexes[0]))
    assert f"{len(searcher.indexes[0])} images" in shown.text
    assert [attributes["data-example"] for attributes in shown.of_class("rh-chip")] == list(page.EXAMPLES)


@pytest.fixture
def photos(tmp_path: Path) -> Index:
    """An index of images that are not the drawn catalogue's."""
    (tmp_path / "photos").mkdir()
    for number in range(3):
        Image.new("RGB", (64, 48), (80 * number, 90, 90)).save(tmp_path / "photos" / f"{number}.jpg")
    (tmp_path / "photos" / "captions.json").write_text('[{"file": "0.jpg", "caption": "grey"}]', encoding="utf-8")
    index_folder(tmp_path / "photos", tmp_path / "store")
    return open_index(tmp_path / "store")


def test_outfits_are_suggested_for_the_drawn_catalogue_only(photos: Index) -> None:
    shown = Elements(page.welcome(photos))
    assert "3 images are ready" in shown.text
    assert shown.of_class("rh-chip") == []


def test_bundled_models_on_other_images_are_pointed_out(searcher: Searcher, photos: Index) -> None:
    both = Elements(page.caution(photos, "catalog-vlm-tiny")).text
    assert "bundled first stage and reranker know drawn outfits only" in both
    assert "--first-stage siglip2" in both
    assert "--model Qwen/" in both
    stage = Elements(page.caution(photos, "Qwen/Qwen3-VL-4B-Instruct")).text
    assert "bundled first stage knows" in stage
    assert "--model" not in stage
    other = replace(photos, info=replace(photos.info, first_stage="siglip2-base-patch16-512"))
    reranker = Elements(page.caution(other, "catalog-vlm-tiny")).text
    assert "bundled reranker knows" in reranker
    assert "--first-stage" not in reranker


def test_models_that_suit_the_images_need_no_note(searcher: Searcher, photos: Index) -> None:
    assert page.caution(searcher.indexes[0], searcher.model) == ""
    other = replace(photos, info=replace(photos.info, first_stage="siglip2-base-patch16-512"))
    assert page.caution(other, "Qwen/Qwen3-VL-4B-Instruct") == ""


def test_the_note_follows_the_index(searcher: Searcher, photos: Index) -> None:
    handlers = Handlers(Searcher([searcher.indexes[0], photos], model=searcher.model))
    assert handlers.caution(0)["visible"] is False
    assert handlers.caution(1)["visible"] is True
    assert "drawn outfits only" in handlers.caution(1)["value"]


def test_the_note_is_there_from_the_start(searcher: Searcher, photos: Index) -> None:
    blocks = build_app(Searcher([photos], model=searcher.model))
    (note,) = [block for block in blocks.blocks.values() if block.elem_id == "rh-caution"]
    assert note.visible
    assert "drawn outfits only" in note.value
