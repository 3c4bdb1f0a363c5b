# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The demo's page: one HTML file with everything inside."""

import base64
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from radical_haystack.components.image_loading import load_image
from radical_haystack.demo.benchmark import Benchmark

if TYPE_CHECKING:
    from radical_haystack.demo.run import ShownQuery

METHOD_NAMES = {
    "first_stage": "First stage alone",
    "dense": "Reranked, not pruned",
    "radical_0.2": "Reranked, RaDiCal keeps 20%",
    "radical_0.1": "Reranked, RaDiCal keeps 10%",
    "random_0.2": "Reranked, random 20%",
}
"""What people read for the methods' names."""

_THUMBNAIL = (224, 224)


def write_report(
    path: Path,
    *,
    queries: Sequence["ShownQuery"],
    benchmark: Benchmark,
    benchmark_queries: int,
    composed_benchmark: Benchmark,
    composed_queries: int,
    candidates: int,
    pictures: int,
    keep_ratio: float,
) -> Path:
    """
    Write the page.

    :param path: The HTML file.
    :param queries: The queries to show.
    :param benchmark: The figures on held-out text queries.
    :param benchmark_queries: How many those were.
    :param composed_benchmark: The figures on held-out composed queries.
    :param composed_queries: How many those were.
    :param candidates: Candidates per query.
    :param pictures: Pictures in the index.
    :param keep_ratio: Share of the visual tokens kept in the searches shown.
    :returns: The file's absolute path.
    """
    environment = Environment(
        loader=PackageLoader("radical_haystack.demo", "."), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["thumbnail"] = _thumbnail
    page = environment.get_template("report.html.jinja").render(
        queries=queries,
        mrr=[_bar(name, value) for name, value in benchmark.mrr_at_10.items()],
        composed_mrr=[_bar(name, value) for name, value in composed_benchmark.mrr_at_10.items()],
        prefill_speedup=benchmark.prefill_speedup,
        prefill_dense=benchmark.prefill_seconds["dense"],
        prefill_pruned=benchmark.prefill_seconds["radical_0.2"],
        benchmark_queries=benchmark_queries,
        composed_queries=composed_queries,
        candidates=candidates,
        pictures=pictures,
        keep_ratio=keep_ratio,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path.resolve()


def _bar(name: str, value: float) -> dict[str, Any]:
    return {"name": METHOD_NAMES[name], "value": value, "plain": not name.startswith("radical")}


def _thumbnail(path: Path) -> str:
    """A small JPEG of a picture, in base64."""
    image = load_image(path)
    image.thumbnail(_THUMBNAIL)
    buffer = BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return base64.b64encode(buffer.getvalue()).decode()
