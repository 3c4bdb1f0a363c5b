# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
How good is the search on your own images? First stage alone, all tokens kept (dense), and RaDiCal.

    python examples/evaluate_own_data.py                       # on drawn outfits; needs no network
    python examples/evaluate_own_data.py photos queries.csv    # your own; choose real models below first

Needs: pip install "radical-haystack[eval]". The CSV file has one line per query and image that answers it:

    query,file
    a dog by the sea,beach/rex.jpg
    a dog by the sea,beach/rex-2.jpg

A few dozen queries say something; a handful shows only that it runs.
"""

import csv
import sys

from haystack import Document, Pipeline
from haystack.document_stores.in_memory import InMemoryDocumentStore
from rich.console import Console
from rich.table import Table

from radical_haystack.catalog import write_gallery
from radical_haystack.components import RadicalRanker
from radical_haystack.components.image_loading import find_images
from radical_haystack.evaluation import METRICS, OVERALL, Dataset, DatasetQuery, evaluate_run, fill_store
from radical_haystack.pipelines import build_text_to_image_pipeline

# These two know the drawn outfits only. For photographs: "siglip2-base-patch16-512" (runs on a CPU) or
# "qwen3-vl-embedding-2b", and "Qwen/Qwen3-VL-4B-Instruct"; both are downloaded on first use.
FIRST_STAGE = "bundled"
MODEL = "catalog-vlm-tiny"
CANDIDATES = 10


def main(folder: str = "", judgements: str = "") -> None:
    """Measure on the folder and the judgements, or on drawn ones, and print a table."""
    if not folder:
        folder, judgements = "outfits", "queries.csv"
        draw(folder, judgements)
    dataset = read_dataset(folder, judgements)
    store = InMemoryDocumentStore()
    report = fill_store(dataset, store, FIRST_STAGE)
    print(f"{report.total} images, {len(dataset.queries)} queries, {len(report.unreadable)} files unreadable")

    pipeline = build_pipeline(store, folder)
    runs: dict[str, dict[str, list[str]]] = {"retriever": {}, "dense": {}, "ranker": {}}
    for query in dataset.queries:
        inputs = {"embedder": {"text": query.text}, "ranker": {"query": query.text}, "dense": {"query": query.text}}
        outputs = pipeline.run(inputs, include_outputs_from=set(runs))
        for name, run in runs.items():
            run[query.id] = [document.id for document in outputs[name]["documents"]]

    table = Table("", *METRICS, title=f"{CANDIDATES} candidates per query")
    for name, label in {"retriever": "first stage", "dense": "dense", "ranker": "RaDiCal, 20% kept"}.items():
        means = evaluate_run(runs[name], dataset.qrels).unconditional[OVERALL].means
        table.add_row(label, *(f"{means[metric]:.3f}" for metric in METRICS))
    Console().print(table)


def read_dataset(folder: str, judgements: str) -> Dataset:
    """All images of a folder, and the queries and relevant images that a CSV file names."""
    names = [path.relative_to(folder).as_posix() for path in find_images(folder)]
    by_file = {name: Document(meta={"file_path": name}) for name in names}
    qrels: dict[str, dict[str, int]] = {}
    with open(judgements, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            if line["file"] not in by_file:
                raise ValueError(f"'{judgements}' names '{line['file']}', which is not an image in '{folder}'.")
            qrels.setdefault(line["query"], {})[by_file[line["file"]].id] = 1
    return Dataset(
        name=judgements,
        root=folder,
        documents=tuple(by_file.values()),
        queries=tuple(DatasetQuery(id=text, text=text) for text in qrels),
        qrels=qrels,
    )


def build_pipeline(store: InMemoryDocumentStore, folder: str) -> Pipeline:
    """A search whose candidates go to two rankers: one keeps 20% of the visual tokens, the other all of them."""
    ranker = RadicalRanker(model=MODEL, root_path=folder, top_k=CANDIDATES)
    dense = RadicalRanker(model=MODEL, root_path=folder, top_k=CANDIDATES, pruner="dense")
    pipeline = build_text_to_image_pipeline(store, FIRST_STAGE, ranker=ranker, candidates=CANDIDATES)
    pipeline.add_component("dense", dense)
    pipeline.connect("retriever.documents", "dense.documents")
    return pipeline


def draw(folder: str, judgements: str) -> None:
    """Draw outfits, and write for some of them what they show as the query that they answer."""
    pictures = write_gallery(folder, 48)
    with open(judgements, "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["query", "file"])
        lines.writerows([picture["caption"], picture["file"]] for picture in pictures[::8])


if __name__ == "__main__":
    main(*sys.argv[1:])
