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


_REASONS = """What to know of this model and this data before the figures are carried over:

- The decoder is shallow. RaDiCal's layers lie between the last DeepStack injection and the last layer, so that there
  are few to choose from, and what is cut late saves little. Methods that cut at the decoder's input or in its first
  layers save more than any such schedule can, whatever they do to the ranking.
- What a token says has been read by others before it leaves. The later the cut, the less it may matter which tokens it
  takes: random pruning at RaDiCal's layers can be a strong opponent, and MRR@10 need not follow the share of evidence
  that is kept to the end.
- The model was trained on pictures of one size. Methods that make images smaller show it something it has never seen,
  which a model for photographs of all sizes is used to.
- The model was trained with tokens missing: background at random before the decoder and, in half of the later batches,
  all but garments' tokens behind the middle layer. One that was not may bear pruning less well.
- Most candidates differ from the target in one to three attributes, by construction: what decides is small, and a
  method that drops it from a few candidates misjudges them.
- Differences of a few points are within the noise of so few queries: the intervals say which are."""


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
