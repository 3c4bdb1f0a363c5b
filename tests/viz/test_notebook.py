# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What a ranking shows in a notebook."""

import base64
import re
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from radical_haystack.vlm import Ranking
from tests.vlm.conftest import noise

Rank = Callable[..., Ranking]
VOID = {"img"}


class Page(HTMLParser):
    """Collects tags, attributes and cells, and makes sure that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_rows_are_in_order(rank: Rank) -> None:
    ranking = rank()
    _, *rows = Page(ranking._repr_html_()).rows
    assert rows == [
        [
            str(rank),
            str(candidate),
            f"{ranking.scores[candidate]:.3f}",
            f"{ranking.kept_tokens[candidate]} / {ranking.total_tokens[candidate]}",
        ]
        for rank, candidate in enumerate(ranking.order, start=1)
    ]


def test_bars_are_as_long_as_the_share_kept(rank: Rank) -> None:
    ranking = rank()
    widths = [float(width) for width in re.findall(r"style='width: ([\d.]+)%'", ranking._repr_html_())]
    shares = [100 * ranking.kept_tokens[k] / ranking.total_tokens[k] for k in ranking.order]
    assert widths == pytest.approx(shares, abs=0.06)


def test_thumbnails_are_the_images(rank: Rank) -> None:
    colours = ["red", "lime", "blue"]
    images = [Image.new("RGB", (200, 100), colour) for colour in colours]
    ranking = rank(images)
    sources = [attributes["src"] for tag, attributes in Page(ranking._repr_html_()).tags if tag == "img"]
    for candidate, source in zip(ranking.order, sources, strict=True):
        thumbnail = Image.open(BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,"))))
        assert thumbnail.size == (64, 32)
        assert thumbnail.getpixel((5, 5)) == images[candidate].getpixel((5, 5))
    assert images[0].size == (200, 100)


def test_a_hostile_name_is_escaped(rank: Rank, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>'\"&amp;.png"
    noise(30, 30).save(tmp_path / name, format="PNG")
    ranking = rank([Image.open(tmp_path / name), noise(30, 30)])
    page = Page(ranking._repr_html_())
    assert [name in row[1] for row in page.rows[1:]] == [k == 0 for k in ranking.order]
    assert not [attributes for _, attributes in page.tags if "onerror" in attributes]
    assert str(tmp_path) not in ranking._repr_html_()


def test_nothing_is_loaded_from_elsewhere(rank: Rank) -> None:
    html = rank()._repr_html_()
    assert "://" not in html
    assert not re.search(r"url\(|<script|<link", html)


def test_long_rankings_show_their_best(rank: Rank) -> None:
    images = [noise(16, 16, seed=number) for number in range(23)]
    ranking = rank(images, window_size=23, window_step=23)
    html = ranking._repr_html_()
    _, *rows = Page(html).rows
    assert [row[1] for row in rows] == [str(k) for k in ranking.order[:20]]
    assert "the best 20 are shown" in html


def test_an_empty_ranking_and_one_without_images(rank: Rank) -> None:
    assert Page(rank([])._repr_html_()).rows[1:] == []
    ranking = rank()
    bare = Ranking(**{name: value for name, value in vars(ranking).items() if name != "images"})
    assert "<img" not in bare._repr_html_()
    assert bare == ranking
