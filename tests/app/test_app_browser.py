# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
The app in a real browser: Playwright driving Chromium.

Without Playwright or Chromium these tests are skipped, and the summary says so. Screenshots are kept in the folder that
`APP_SCREENSHOTS` names, else in pytest's temporary folder.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image

from radical_haystack.app.interface import build_app, launch_options
from radical_haystack.app.searching import Searcher
from radical_haystack.pipelines import StoreInfo, create_store
from radical_haystack.pipelines.indexes import open_index

from .conftest import CHROMIUM, Served

playwright = pytest.importorskip("playwright.sync_api", reason="NO BROWSER TESTS: playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="NO BROWSER TESTS: there is no chromium (apt-get install chromium)"),
]
expect = playwright.expect
expect.set_options(timeout=60_000)  # a machine that is busy with other tests takes its time

MODEL_TIMEOUT = 120_000
QUERY = "#rh-query textarea, #rh-query input"


FAINT = """() => {
    const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
    const ground = one => {
        for (; one; one = one.parentElement) {
            const colour = numbers(getComputedStyle(one).backgroundColor);
            if (colour.length === 3 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const ratio = one => {
        const [a, b] = [light(numbers(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    };
    const texts = [...document.querySelectorAll("#rh-title *, #rh-status *, .rh-results *")].filter(
        one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()) && !one.closest(".rh-sr"));
    return texts.filter(one => ratio(one) < 4.5).map(one => `${one.className}: ${one.innerText} ${ratio(one)}`);
}"""
"""Texts whose contrast with what lies behind them is below 4.5 (WCAG 2.2)."""


@dataclass
class Watched:
    """A page, and what went wrong on it and whom it asked."""

    page: Any
    problems: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def _console(self, message: Any) -> None:
        if message.type == "error":  # Gradio warns of its own stream of upload progress
            self.problems.append(f"console: {message.text} ({message.location})")

    def _request(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob"):
            self.hosts.add(parts.netloc)

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("APP_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def visit(chromium: Any, served: Served) -> Iterator[Callable[..., Any]]:
    """Open the app; in the end, nothing may have gone wrong on the page, and nothing may have left this machine."""
    opened: list[tuple[Watched, Any]] = []

    def open_page(url: str = served.url, *, width: int = 1440, height: int = 1000, **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        page = context.new_page()
        page.set_default_timeout(60_000)
        opened.append((Watched(page), context))
        page.goto(url)
        expect(page.locator(QUERY)).to_be_visible()
        expect(page.locator("#rh-results")).not_to_be_empty()
        return page

    yield open_page
    for watched, context in opened:
        context.close()
        assert watched.problems == []
        assert {host.partition(":")[0] for host in watched.hosts} == {"127.0.0.1"}


def search(page: Any, query: str) -> None:
    """Type and press Enter, as a user would, and wait for the reranked order."""
    page.locator(QUERY).click()
    page.locator(QUERY).fill("")
    page.keyboard.type(query)
    page.keyboard.press("Enter")
    expect(page.locator(".rh-asked")).to_contain_text(query, timeout=MODEL_TIMEOUT)
    expect(page.locator(".rh-move").first).to_be_visible(timeout=MODEL_TIMEOUT)


def reranked(page: Any) -> list[str]:
    return page.locator(".rh-after .rh-card").evaluate_all("cards => cards.map(card => card.dataset.document)")


def test_search_by_text(visit: Callable[..., Any], screenshots: Path) -> None:
    page = visit()
    page.screenshot(path=screenshots / "welcome.png")
    search(page, "a red checked dress")
    expect(page.locator("#rh-status")).to_contain_text("20 candidates in")
    before = page.locator(".rh-before .rh-card").evaluate_all("cards => cards.map(card => card.dataset.document)")
    after = reranked(page)
    assert len(after) == 20
    assert set(before) == set(after)
    for rank, document in enumerate(after, start=1):
        mark = page.locator(f'.rh-after [data-document="{document}"] .rh-move').inner_text()
        was = before.index(document) + 1
        assert f"was {was}" in mark if was != rank else "same place" in mark
        assert page.locator(f'.rh-before [data-document="{document}"] .rh-goes').inner_text() == f"→ {rank}"
    sizes = page.locator(".rh-fit img:not([hidden])").evaluate_all("all => all.map(one => one.naturalWidth)")
    assert len(sizes) == 40
    assert min(sizes) > 0
    page.screenshot(path=screenshots / "text.png", full_page=True)


def test_first_stage_is_shown_while_the_model_reads(visit: Callable[..., Any]) -> None:
    page = visit()
    page.evaluate(
        """() => {
            window.seen = [];
            new MutationObserver(() => {
                if (document.querySelector(".rh-spinner")) window.seen.push("working");
                if (document.querySelector(".rh-waiting")) window.seen.push("first stage");
            }).observe(document.body, {childList: true, subtree: true});
        }"""
    )
    search(page, "blue shorts")
    assert {"working", "first stage"} <= set(page.evaluate("window.seen"))
    expect(page.locator(".rh-spinner, .rh-waiting")).to_have_count(0)


def test_a_query_sent_during_a_search_is_searched_next(visit: Callable[..., Any]) -> None:
    page = visit()
    page.locator(QUERY).click()
    page.keyboard.type("a blue dress")
    page.keyboard.press("Enter")
    expect(page.locator(".rh-asked")).to_contain_text("a blue dress", timeout=MODEL_TIMEOUT)
    search(page, "a green dress")  # the blue ones are still being ranked


def test_retention_switches(visit: Callable[..., Any], screenshots: Path) -> None:
    page = visit(color_scheme="dark")
    search(page, "a red checked dress")
    card = page.locator(".rh-after .rh-card").nth(1)
    options, veils = card.locator("input[type=radio]"), card.locator(".rh-veil")
    stages = options.count() - 1
    assert stages == veils.count() >= 2
    assert [veil.is_visible() for veil in veils.all()] == [False] * stages
    shown = []
    for stage in range(stages):
        options.nth(stage + 1).check(force=True)
        assert [veil.is_visible() for veil in veils.all()] == [number == stage for number in range(stages)]
        shown.append(int(card.locator(".rh-tokens b").inner_text()))
    assert shown == sorted(shown, reverse=True)
    assert page.locator(".rh-veil:visible").count() == 1
    page.keyboard.press("ArrowLeft")  # the last option has the focus
    assert veils.nth(stages - 2).is_visible()

    totals = []
    for stage in range(stages):
        page.locator("input[data-tokens-all]").nth(stage + 1).check()
        totals.append(sum(map(int, page.locator(".rh-after .rh-tokens b").all_inner_texts())))
    assert totals == sorted(set(totals), reverse=True)
    assert page.locator(".rh-veil:visible").count() == 20
    assert page.locator(f'.rh-switch input[value="{stages - 1}"]:checked').count() == 20
    page.screenshot(path=screenshots / "tokens.png", full_page=True)
    page.locator("input[data-tokens-all]").first.check()
    assert page.locator(".rh-veil:visible").count() == 0


def test_the_layer_chosen_stays_for_the_next_search(visit: Callable[..., Any]) -> None:
    page = visit()
    search(page, "a red checked dress")
    page.locator("input[data-tokens-all]").nth(2).check()
    search(page, "blue shorts")
    expect(page.locator("input[data-tokens-all]").nth(2)).to_be_checked()
    assert page.locator(".rh-veil:visible").count() == 20
    assert page.locator('.rh-switch input[value="1"]:checked').count() == 20
    kept = page.locator(".rh-summary h2 small").nth(1)
    page.locator("#rh-pruner input").click()
    page.get_by_role("option", name="random").click()
    expect(kept).to_contain_text("kept by random", timeout=MODEL_TIMEOUT)
    expect(page.locator("input[data-tokens-all]").nth(2)).to_be_checked()
    expect(page.locator('.rh-veil[data-stage="1"]:visible')).to_have_count(20)
    page.locator(".rh-switch label").first.click()
    expect(page.locator(".rh-veil:visible")).to_have_count(19)
    page.locator("#rh-pruner input").click()
    page.get_by_role("option", name="dense").click()
    expect(kept).to_contain_text("kept by dense", timeout=MODEL_TIMEOUT)
    expect(page.locator("input[data-tokens-all]").first).to_be_checked()


def test_a_result_as_the_reference(visit: Callable[..., Any], screenshots: Path) -> None:
    page = visit()
    search(page, "a red checked dress")
    picked = reranked(page)[2]
    page.locator(".rh-pick").nth(2).click()
    expect(page.locator("#rh-status")).to_contain_text("Say what shall be different")
    expect(page.locator("#rh-reference img")).to_be_visible()
    expect(page.locator("#rh-query")).to_contain_text("Like the reference image, but")
    expect(page.locator(QUERY)).to_be_focused()
    expect(page.locator(QUERY)).to_have_value("")
    page.locator("#rh-keep-ratio input[type=range]").press("ArrowRight")
    search(page, "is blue instead")
    expect(page.locator(".rh-asked img")).to_be_visible()
    assert len(reranked(page)) == 20
    assert picked not in reranked(page)
    page.screenshot(path=screenshots / "composed.png", full_page=True)
    page.locator("#rh-reference").get_by_role("button", name=re.compile("clear|remove", re.I)).click()
    expect(page.locator("#rh-status")).to_contain_text("a search by text again")
    expect(page.locator("#rh-query")).to_contain_text("What are you looking for?")


def test_an_upload_as_the_reference(visit: Callable[..., Any], searcher: Searcher, tmp_path: Path) -> None:
    page = visit()
    upload = page.locator("#rh-reference input[type=file]")
    (tmp_path / "broken.png").write_bytes(b"no image")
    upload.set_input_files(tmp_path / "broken.png")
    expect(page.get_by_role("alert")).to_contain_text("'broken.png' cannot be read as an image. Choose another file")
    expect(page.locator("#rh-reference img")).to_have_count(0)
    Image.open(next(Path(searcher.indexes[0].info.root_path).glob("*.jpg"))).save(tmp_path / "mine.png")
    upload.set_input_files(tmp_path / "mine.png")
    expect(page.locator("#rh-status")).to_contain_text("The reference is mine.png")
    page.locator("#rh-search").click()
    expect(page.get_by_role("alert")).to_contain_text("Say what shall be different")
    search(page, "has stripes")
    expect(page.locator(".rh-asked img")).to_be_visible()


def test_settings_search_again(visit: Callable[..., Any]) -> None:
    page = visit()
    search(page, "a red checked dress")
    kept = page.locator(".rh-summary h2 small").nth(1)
    total = int(page.locator(".rh-count").first.inner_text().replace(",", ""))
    expect(kept).to_contain_text("kept by radical")
    page.locator("#rh-keep-ratio input[type=range]").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    expect(kept).to_have_text(re.compile(rf"^{total // 2:,}|^{total // 2 + 1:,}"), timeout=MODEL_TIMEOUT)
    page.locator("#rh-pruner input").click()
    page.get_by_role("option", name="dense").click()
    expect(kept).to_contain_text(f"{total:,} of {total:,} kept by dense", timeout=MODEL_TIMEOUT)
    expect(page.locator(".rh-panel").nth(1)).to_contain_text("Nothing was pruned")
    assert page.locator(".rh-switch").count() == 0


def test_blank_query(visit: Callable[..., Any]) -> None:
    page = visit()
    page.locator(QUERY).fill("   ")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Type what you are looking for")


def test_examples(visit: Callable[..., Any]) -> None:
    page = visit()
    page.locator(".rh-chip").nth(1).click()
    expect(page.locator(QUERY)).to_have_value("blue shorts with dots")
    expect(page.locator(".rh-move").first).to_be_visible(timeout=MODEL_TIMEOUT)


def test_keyboard_alone(visit: Callable[..., Any]) -> None:
    page = visit()
    page.locator(QUERY).focus()
    order = []
    for _ in range(12):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.closest('[id^=rh-]')?.id"))
    firsts = list(dict.fromkeys(name for name in order if name))
    assert firsts[:6] == ["rh-search", "rh-keep-ratio", "rh-pruner", "rh-index", "rh-reference", "rh-results"]
    page.locator(QUERY).focus()
    search(page, "a green coat")
    page.locator(".rh-pick").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(QUERY)).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone(visit: Callable[..., Any], screenshots: Path, scheme: str) -> None:
    page = visit(width=360, height=740, color_scheme=scheme, has_touch=True, is_mobile=True)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(float, re.findall(r"[\d.]+", ground)[:3])) < 200) == (scheme == "dark")
    search(page, "a red checked dress")
    assert page.evaluate(FAINT) == []
    page.locator("input[data-tokens-all]").nth(1).check()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    sizes = page.locator(".rh-switch label, .rh-pick, #rh-search").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => Math.min(box.width, box.height))"
    )
    assert min(sizes) >= 24  # WCAG 2.2, target size
    texts = page.locator(".rh-results *").evaluate_all(
        "all => all.filter(one => one.innerText?.trim()).map(one => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert min(texts) >= 12
    page.screenshot(path=screenshots / f"phone-{scheme}.png", full_page=True)


def test_empty_index(visit: Callable[..., Any], searcher: Searcher, tmp_path: Path) -> None:
    stage = searcher.indexes[0].stage
    create_store(tmp_path / "empty", StoreInfo(stage.name, 96, str(tmp_path), stage.weights_digest))
    blocks = build_app(Searcher([open_index(tmp_path / "empty"), searcher.indexes[0]], model=searcher.model))
    _, url, _ = blocks.launch(**{**launch_options("127.0.0.1", None), "prevent_thread_lock": True})
    try:
        page = visit(url)
        expect(page.get_by_role("alert")).to_contain_text("radical-haystack index FOLDER --store")
        page.locator("#rh-index input").click()
        page.get_by_role("option").nth(1).click()
        expect(page.locator(".rh-lead")).to_contain_text("images are ready")
        search(page, "a red dress")
    finally:
        blocks.close()
