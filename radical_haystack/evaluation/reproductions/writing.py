# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Outcomes as files: tables as CSV, LaTeX and Markdown, figures as PNG and SVG, everything as JSON."""

import json
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from radical_haystack.evaluation.outputs import FORMATS
from radical_haystack.evaluation.reproductions.running import Report
from radical_haystack.viz import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BYTES = 150 * 1024
"""The most that a picture for a document may have."""

_COLOURS = 96
_SMALLER = 0.85
_NARROWEST = 320


def write_results(report: Report, folder: str | Path) -> list[Path]:
    """
    Write each outcome into a folder of its name; files of an earlier time are replaced.

    :param report: What was measured.
    :param folder: The folder; made if it is not there.
    :returns: The files.
    :raises ImportError: If there are figures and Matplotlib is not installed.
    """
    written = []
    for one in report.finished:
        own = Path(folder) / one.reproduction.name
        own.mkdir(parents=True, exist_ok=True)
        for sheet in one.outcome.sheets:
            for suffix, text in (("csv", sheet.csv()), ("tex", sheet.latex()), ("md", sheet.markdown())):
                path = own / f"{sheet.name}.{suffix}"
                path.write_text(text, encoding="utf-8")
                written.append(path)
        for name, draw in one.outcome.figures.items():
            figure = draw()
            written += [save_figure(figure, own / f"{name}.{suffix}") for suffix in FORMATS]
        path = own / "result.json"
        path.write_text(json.dumps(one.to_dict(), indent=2) + "\n", encoding="utf-8")
        written.append(path)
    return written


def save_small(figure: "Figure", path: Path) -> None:
    """
    Save a figure as a PNG of few colours, made smaller until it has at most `MOST_BYTES`.

    :param figure: The figure.
    :param path: The file; its folder is made if it is not there.
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    picture = Image.open(buffer).convert("RGB")
    data = _few_colours(picture)
    while len(data) > MOST_BYTES and picture.width > _NARROWEST:
        size = (round(_SMALLER * picture.width), round(_SMALLER * picture.height))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
        data = _few_colours(picture)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _few_colours(picture: Image.Image) -> bytes:
    buffer = BytesIO()
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
