# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How a ranking shows itself in a notebook: one small table of HTML that needs nothing else."""

import base64
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from radical_haystack.vlm.listwise import Ranking

SHOWN = 20
"""Rows of the table; of a longer ranking only the best are shown."""

_THUMBNAIL = (64, 48)
_SCORE_NAMES = {"log_probability": "log-probability", "reciprocal_rank": "1 / rank"}

# Colours are the notebook's own or half transparent, so that the table reads on light and on dark.
_STYLE = """
.radical-ranking { border-collapse: collapse; color: inherit; font-size: inherit; font-variant-numeric: tabular-nums; }
.radical-ranking caption { text-align: left; padding: .3em .5em; opacity: .8; }
.radical-ranking th, .radical-ranking td { padding: .2em .7em; text-align: right; vertical-align: middle;
  border-bottom: 1px solid rgba(128, 128, 128, .3); }
.radical-ranking th:nth-child(2), .radical-ranking td:nth-child(2) { text-align: left; }
.radical-ranking img { height: 40px; margin: 0 .6em 0 0; display: inline-block; vertical-align: middle;
  border-radius: 3px; }
.radical-ranking .bar { display: inline-block; width: 7em; height: .6em; margin-right: .6em; border-radius: 3px;
  background: rgba(128, 128, 128, .3); overflow: hidden; }
.radical-ranking .bar span { display: block; height: 100%; background: #3d8fd1; }
.radical-ranking .count { display: inline-block; min-width: 4.5em; }
"""


def ranking_html(ranking: "Ranking") -> str:
    """
    A table of a ranking, best candidate first: rank, image, score, and how many of its visual tokens were kept.

    :param ranking: The ranking.
    :returns: HTML that needs no other file. Images are embedded as thumbnails.
    """
    rows = "".join(_row(ranking, rank, candidate) for rank, candidate in enumerate(ranking.order[:SHOWN], start=1))
    score = _SCORE_NAMES[ranking.score_kind]
    head = f"<tr><th>rank</th><th>candidate</th><th>{score}</th><th>visual tokens kept</th></tr>"
    return (
        f"<style>{_STYLE}</style><table class='radical-ranking'><caption>{_caption(ranking)}</caption>"
        f"<thead>{head}</thead><tbody>{rows}</tbody></table>"
    )


def _caption(ranking: "Ranking") -> str:
    kept, total = sum(ranking.kept_tokens), sum(ranking.total_tokens)
    parts = [
        f"{len(ranking.order)} candidates",
        f"pruner: {escape(str(ranking.metadata.get('pruner')))}",
        f"{kept} of {total} visual tokens kept",
        f"{ranking.timings['total']:.2f} s",
    ]
    if ranking.fallback:
        parts.append("candidates that the model left out stand last, in first-stage order")
    if len(ranking.order) > SHOWN:
        parts.append(f"the best {SHOWN} are shown")
    return " · ".join(parts)


def _row(ranking: "Ranking", rank: int, candidate: int) -> str:
    kept, total = ranking.kept_tokens[candidate], ranking.total_tokens[candidate]
    share = 100 * kept / total if total else 0.0
    bar = (
        f"<span class='bar'><span style='width: {share:.1f}%'></span></span><span class='count'>{kept} / {total}</span>"
    )
    score = f"{ranking.scores[candidate]:.3f}"
    return f"<tr><td>{rank}</td><td>{_candidate(ranking, candidate)}</td><td>{score}</td><td>{bar}</td></tr>"


def _candidate(ranking: "Ranking", candidate: int) -> str:
    """Its number and, where they are at hand, its thumbnail and the name of its file."""
    if not ranking.images:
        return str(candidate)
    image = ranking.images[candidate]
    name = Path(str(getattr(image, "filename", ""))).name  # Pillow's images know the file they were opened from
    label = f"{candidate} · {name}" if name else str(candidate)
    return f"<img src='data:image/png;base64,{_thumbnail(image)}' alt=''>{escape(label)}"


def _thumbnail(image: Image.Image) -> str:
    small = image.convert("RGB")
    small.thumbnail(_THUMBNAIL)
    buffer = BytesIO()
    small.save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()
