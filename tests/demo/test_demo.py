# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The demo from drawing to report, on tiny random models: the figures mean nothing, the path is the real one."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from radical_haystack.catalog import gallery_items
from radical_haystack.demo import DemoResult, run_demo, write_report
from radical_haystack.demo.benchmark import METHODS, Benchmark, mrr_at_10
from radical_haystack.demo.run import ShownImage, ShownQuery, _changes


@pytest.fixture(scope="module")
def result(tiny_vlm: str, tiny_siglip: str, tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    output = tmp_path_factory.mktemp("demo")
    return run_demo(output, pictures=30, shown_queries=2, benchmark_queries=2, model=tiny_vlm, first_stage=tiny_siglip)


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def parsed(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def test_figures(result: DemoResult) -> None:
    figures = json.loads(json.dumps(result.to_dict()))
    assert set(figures["mrr_at_10"]) == {"first_stage", "dense", "radical_0.2", "radical_0.1", "random_0.2"}
    assert all(0 <= value <= 1 for value in figures["mrr_at_10"].values())
    assert set(figures["composed_mrr_at_10"]) == set(figures["mrr_at_10"])
    assert all(0 <= value <= 1 for value in figures["composed_mrr_at_10"].values())
    assert figures["composed_queries"] == 1
    times = figures["prefill_ms"]
    assert figures["prefill_speedup"] == pytest.approx(times["dense"] / times["radical_0.2"])
    assert Path(figures["report"]).is_file()
    assert (figures["pictures"], figures["benchmark_queries"], figures["benchmark_candidates"]) == (30, 2, 20)


def test_shown_queries(result: DemoResult) -> None:
    assert len({query.text for query in result.queries}) == 4
    assert [query.reference is None for query in result.queries] == [True, True, False, False]
    for query in result.queries:
        assert len(query.first_stage) == len(query.reranked) == 10
        assert [image.rank for image in query.reranked] == list(range(1, 11))
        kept = sum(image.kept_tokens for image in query.reranked)
        assert kept <= sum(image.total_tokens for image in query.reranked)
        first = {image.path: image.first_stage_rank for image in query.first_stage}
        assert all(first.get(image.path, image.first_stage_rank) == image.first_stage_rank for image in query.reranked)
        hits = {image.path: image.hit for image in query.first_stage}
        assert all(hits.get(image.path, image.hit) == image.hit for image in query.reranked)


def test_composed_searches_start_from_a_picture_of_the_gallery(result: DemoResult) -> None:
    for query in result.queries[2:]:
        assert query.reference is not None
        assert query.reference.is_file()
        for shown in (query.first_stage, query.reranked):
            assert query.reference not in [image.path for image in shown]
    figures = {query.reference: query for query in result.queries[2:]}
    assert len(figures) == 2


def test_changes_lead_to_a_picture_of_the_gallery() -> None:
    items = gallery_items(30)
    changes = _changes(items, 2)
    assert changes == _changes(items, 2)
    for reference, change in changes:
        assert change.reference == reference.outfit
        assert sum(change.matches(item.outfit) for item in items) == 1
        assert not change.matches(reference.outfit)


def test_report_needs_nothing_else(result: DemoResult) -> None:
    page = parsed(result.report)
    sources = [attributes["src"] or "" for tag, attributes in page.tags if tag == "img"]
    assert len(sources) == 4 * 20 + 2
    assert all(source.startswith("data:image/jpeg;base64,") for source in sources)
    assert not re.search(r"https?://", result.report.read_text(encoding="utf-8"))
    assert not {"script", "link"} & {tag for tag, _ in page.tags}


def test_run_again_uses_what_is_there(result: DemoResult, tiny_vlm: str, tiny_siglip: str) -> None:
    output = result.report.parent
    picture = next((output / "gallery-30").glob("*.jpg"))
    before = picture.stat().st_mtime_ns
    again = run_demo(output, pictures=30, shown_queries=2, benchmark_queries=1, model=tiny_vlm, first_stage=tiny_siglip)
    assert picture.stat().st_mtime_ns == before
    assert [query.text for query in again.queries] == [query.text for query in result.queries]
    assert [[image.path for image in query.reranked] for query in again.queries] == [
        [image.path for image in query.reranked] for query in result.queries
    ]


def test_report_escapes_text_and_marks_hits(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    text = '<script>alert("x")</script>'
    hit = ShownImage(
        tmp_path / "a.png", caption='"><b>', hit=True, rank=1, first_stage_rank=3, kept_tokens=2, total_tokens=8
    )
    miss = ShownImage(tmp_path / "a.png", caption="miss", hit=False, rank=2, first_stage_rank=1, total_tokens=0)
    benchmark = Benchmark(dict.fromkeys(("first_stage", *METHODS), 0.5), dict.fromkeys(METHODS, 0.1))
    report = write_report(
        tmp_path / "new" / "report.html",
        queries=[ShownQuery(text, (miss, hit), (hit, miss), 0.2, 0.1, tmp_path / "a.png")],
        benchmark=benchmark,
        benchmark_queries=1,
        composed_benchmark=benchmark,
        composed_queries=1,
        candidates=20,
        pictures=1,
        keep_ratio=0.2,
    )
    page = parsed(report)
    assert not {"script", "b"} & {tag for tag, _ in page.tags}
    assert [attributes.get("class") for tag, attributes in page.tags if tag == "li"] == [None, "hit", "hit", None]
    assert "▲2" in report.read_text(encoding="utf-8")
    assert "▼1" in report.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["pictures", "shown_queries", "benchmark_queries"])
def test_numbers_below_one_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        run_demo(tmp_path / "out", **{name: 0})
    assert not (tmp_path / "out").exists()


def test_mrr_at_10_by_hand() -> None:
    assert mrr_at_10([1, 2, 10, 11]) == pytest.approx((1 + 0.5 + 0.1 + 0) / 4)


@given(st.lists(st.integers(1, 30), min_size=1), st.data())
def test_mrr_at_10_rises_when_an_answer_moves_up(ranks: list[int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(ranks) - 1))
    better = [*ranks]
    better[place] = data.draw(st.integers(1, ranks[place]))
    assert mrr_at_10(better) >= mrr_at_10(ranks)
    assert 0 <= mrr_at_10(ranks) <= 1
