# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The results as one Markdown document: for each table its command, what it shows, and what can be said of it."""

from collections.abc import Iterator
from pathlib import Path

from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.running import Finished, Report
from radical_haystack.evaluation.reproductions.sheets import markdown_text
from radical_haystack.evaluation.reproductions.writing import save_small

IMAGES = "images/results"
"""Where the document's pictures lie, relative to it."""

_SHORT_DIGEST = 23


def write_document(report: Report, path: str | Path) -> Path:
    """
    Write a Markdown document of all that was measured, with its pictures in `images/results/` beside it.

    :param report: What was measured.
    :param path: The document; its folder is made if it is not there.
    :returns: The document's absolute path.
    :raises ImportError: If there are figures and Matplotlib is not installed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [_opening(report), *(part for one in report.finished for part in _section(one, path.parent))]
    parts += [*_refused(report), *_discussion(report), _closing(report)]
    path.write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")
    return path.resolve()


def _opening(report: Report) -> str:
    catalogue = (
        " The data is the drawn catalogue and the model the small one that comes with this package, so that anyone can "
        "measure the same on a laptop without a network. They are not the paper's, whose values stand beside the "
        "measured ones for orientation. The same commands take real data and real models, for example\n\n"
        "    radical-haystack reproduce main --data flickr30k --root DIR --model Qwen/Qwen3-VL-4B-Instruct "
        "--first-stage qwen3-vl-embedding-2b --seeds 42 123 456 789 1024 --queries 1000"
        if report.settings.is_catalogue
        else ""
    )
    return (
        "# Results\n\n"
        f"Tables and figures of the paper ({published.SOURCE}), measured by this package. This page is written by "
        f"one command and never by hand:\n\n    {report.command} --markdown docs/results.md\n\n"
        f"A dash stands where a value is not known. Intervals are 95% bootstrap intervals over queries.{catalogue}"
    )


def _section(one: Finished, folder: Path) -> Iterator[str]:
    number = one.reproduction.number
    yield f"## {number[0].upper()}{number[1:]}: {one.reproduction.name}"
    yield f"{one.reproduction.shows}\n\n    {one.command}"
    for sheet in one.outcome.sheets:
        yield sheet.markdown()
    for name, draw in one.outcome.figures.items():
        own = one.reproduction.name
        file = f"{IMAGES}/{own if name == own else f'{own}-{name}'}.png"
        save_small(draw(), folder / file)
        yield f"![{markdown_text(one.reproduction.shows)}]({file})"
    if one.outcome.notes:
        yield "\n".join(f"- {markdown_text(note)}" for note in one.outcome.notes)


def _refused(report: Report) -> Iterator[str]:
    if report.refused:
        yield "## Not measured"
        yield "\n".join(f"- {markdown_text(reason)}" for reason in report.refused.values())


def _discussion(report: Report) -> Iterator[str]:
    """What the figures say, and reasons that hold whatever they are."""
    if not report.verdicts:
        return
    yield "## How RaDiCal compares, and where it does not win"
    yield "\n".join(f"- {markdown_text(text)}" for text in report.verdicts)
    if report.settings.is_catalogue:
        yield _REASONS


_REASONS = """Some reasons lie in this model and this data, and are worth knowing before the figures are carried over:

- The decoder is shallow. All pruning layers lie after the last DeepStack injection and before the last layer, so that
  there are few to choose from, they lie close together, and what is cut late saves little. Methods that cut at the
  decoder's input or in its first layers save more than any such schedule can, whatever they do to the ranking.
- The pictures are drawn. Garments are large, flat and few, so that an image that is made smaller still shows what is
  asked for, and a random fifth of its tokens may do so, too. Photographs with small details leave less room for that.
- The candidates differ from the target in one to three attributes by construction. What decides is small and lies at a
  known place; a method that spreads its budget evenly over candidates loses less than where most candidates are plainly
  wrong.
- Differences of a few points between methods are within the noise of this many queries: the intervals say which are."""


def _closing(report: Report) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in report.environment["packages"].items() if version)
    revision = report.model.revision
    lines = [
        f"Model: {markdown_text(report.settings.models[0])}"
        + (f", fingerprint `{revision[:_SHORT_DIGEST]}`" if revision else "")
        + f", {report.model.dtype}",
        f"Device: {markdown_text(report.environment['device'])}, {report.environment['threads']} threads",
        f"Python {report.environment['python']}, {markdown_text(packages)}",
        f"Time for all of it: {report.seconds / 60:.0f} minutes",
    ]
    return "## With what this was measured\n\n" + "\n".join(f"- {line}" for line in lines)
