# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Every pruning method by its name, from the ranker and from the command line."""

import json
from collections.abc import Callable
from pathlib import Path

from haystack import Document, Pipeline

from radical_haystack.components import RadicalRanker
from radical_haystack.pruning import PRUNERS, PruningSchedule

SCHEDULE = PruningSchedule((2, 4), (0.6, 0.2), 0.25)
Run = Callable[..., tuple[int, str, str]]


def test_the_ranker_takes_every_name(image_folder: Path, tiny_vlm: str) -> None:
    documents = [Document(meta={"file_path": path.name}) for path in sorted(image_folder.glob("*.png"))]
    for name in PRUNERS:
        pipeline = Pipeline()
        ranker = RadicalRanker(
            model=tiny_vlm, root_path=str(image_folder), pruner=name, keep_ratio=0.5, schedule=SCHEDULE
        )
        pipeline.add_component("ranker", ranker)
        pipeline = Pipeline.loads(pipeline.dumps())
        ranked = pipeline.run({"ranker": {"query": "a red shirt", "documents": documents}})["ranker"]["documents"]
        total = sum(document.meta["radical"]["total_tokens"] for document in ranked)
        kept = sum(document.meta["radical"]["kept_tokens"] for document in ranked)
        assert kept == total if name == "dense" else abs(kept - total / 2) <= 2


def test_the_command_line_takes_every_name(
    run_command: Run, image_folder: Path, tmp_path: Path, tiny_siglip: str
) -> None:
    store = tmp_path / "store"
    assert run_command("index", image_folder, "--store", store, "--first-stage", tiny_siglip)[0] == 0
    for name in ("fastv", "visionzip", "dynres-dti"):
        code, out, _ = run_command("search", "red", "--store", store, "--pruner", name, "--top-k", "3", "--json")
        assert code == 0
        assert len(json.loads(out)["results"]) == 3
    code, _, err = run_command("search", "red", "--store", store, "--pruner", "magic")
    assert code == 2
    (error,) = (line for line in err.splitlines() if line.startswith("error:"))
    assert "there is no pruner 'magic'; choose one of radical, dense, fastv" in error
