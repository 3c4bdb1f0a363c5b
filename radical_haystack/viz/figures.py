# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What all figures share: where they come from, how they look, and how they are saved."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf", "svg")
"""Picture formats, told by a file's suffix."""

INK, SOFT, FAINT = "#1f1f1f", "#666666", "#d9d9d9"
ACCENT, TRUTH = "#0072b2", "#d55e00"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1f1f1f")
"""Okabe and Ito's colours, which colour-blind readers tell apart."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h", "d")
"""As many as there may be lines: in black and white the marker tells them apart."""

_DPI = 150
_SIZES = {"title": 10.5, "label": 9.0, "small": 7.5}


def require_matplotlib() -> None:
    """
    Make sure that figures can be drawn.

    :raises ImportError: If Matplotlib is not installed; the message says how to install it.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("Pictures need Matplotlib: pip install 'radical-haystack[viz]'") from error


def new_figure(width: float, height: float, **options: Any) -> "Figure":
    """
    An empty white figure that belongs to nobody else.

    :param width: In inches.
    :param height: In inches.
    :param options: More of Matplotlib's arguments.
    :raises ImportError: If Matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=_DPI, facecolor="white", **options)


def write(place: Any, x: float, y: float, text: str, size: str = "label", **options: Any) -> None:
    """
    Write text that may hold anything: dollar signs are no formula.

    :param place: A figure or axes.
    :param x: In the place's coordinates.
    :param y: In the place's coordinates.
    :param text: The text.
    :param size: `"title"`, `"label"` or `"small"`.
    :param options: More of Matplotlib's arguments.
    """
    place.text(x, y, text, **{"fontsize": _SIZES[size], "color": INK, "parse_math": False, **options})


def plain_axes(figure: "Figure", title: str, x_label: str, y_label: str) -> "Axes":
    """
    One pair of axes with a light grid.

    :param figure: The figure.
    :param title: What is shown.
    :param x_label: With its unit.
    :param y_label: With its unit.
    """
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=_SIZES["title"], color=INK, loc="left", parse_math=False)
    axes.set_xlabel(x_label, fontsize=_SIZES["label"], color=INK)
    axes.set_ylabel(y_label, fontsize=_SIZES["label"], color=INK)
    bare(axes)
    axes.grid(color=FAINT, linewidth=0.6)
    return axes


def bare(axes: "Axes") -> None:
    """
    Leave only the left and lower edge, and small figures on them.

    :param axes: The axes.
    """
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(SOFT)
    axes.tick_params(labelsize=_SIZES["small"], colors=SOFT, labelcolor=INK)
    axes.set_axisbelow(True)


def shortened(text: str, length: int) -> str:
    """
    Text on one line, with its middle left out if it is too long: both ends of a file name matter.

    :param text: The text.
    :param length: The most characters.
    """
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    tail = length // 3
    return f"{line[: length - tail - 1]}…{line[-tail:] if tail else ''}"


def labels_of(count: int, labels: Sequence[str] | None) -> list[str]:
    """
    What candidates are called.

    :param count: Number of candidates.
    :param labels: Given names; default: their numbers, counted from 0.
    :raises ValueError: If there are not as many names as candidates.
    """
    if labels is None:
        return [f"candidate {number}" for number in range(count)]
    if len(labels) != count:
        raise ValueError(f"There are {count} candidates, but {len(labels)} labels.")
    return list(labels)


def check_candidates(count: int, *chosen: Collection[int]) -> None:
    """
    Refuse candidates that do not exist.

    :param count: Number of candidates.
    :param chosen: Indices of candidates.
    :raises ValueError: If one is outside.
    """
    unknown = sorted({candidate for some in chosen for candidate in some if not 0 <= candidate < count})
    if unknown:
        raise ValueError(f"Candidates {unknown} do not exist: there are {count}, counted from 0.")


def check_picture_path(path: str | Path) -> Path:
    """
    Refuse a file that no picture can be saved to.

    :param path: The file.
    :returns: The same.
    :raises ValueError: If its suffix is not that of a known format.
    """
    path = Path(path)
    if path.suffix.lower().lstrip(".") not in FORMATS:
        raise ValueError(f"A picture is saved as {', '.join(FORMATS)}, not as '{path}'.")
    return path


def save_figure(figure: "Figure", path: str | Path) -> Path:
    """
    Save a figure in the format its file's suffix names.

    :param figure: The figure.
    :param path: A file ending in `.png`, `.pdf` or `.svg`; its folder is made if it is not there.
    :returns: The file's absolute path.
    :raises ValueError: If the suffix is another.
    """
    path = check_picture_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format=path.suffix.lower().lstrip("."))
    return path.resolve()
