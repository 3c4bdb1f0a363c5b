# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The commands that fill an index and search it."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from radical_haystack.cli.shared import (
    DEFAULT_MODEL,
    AsJson,
    KeepRatio,
    Pruner,
    Store,
    TrustRemoteCode,
    messages,
    note_on_bundled_models,
    print_json,
    work,
)


def index(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of images; its subfolders are searched too.")],
    store: Store,
    first_stage: Annotated[
        str,
        typer.Option(
            help="A preset (bundled, qwen3-vl-embedding-2b, qwen3-vl-embedding-8b, jina-embeddings-v4, "
            "siglip2-base-patch16-512), or any sentence-transformers model for text and images."
        ),
    ] = "bundled",
    trust_remote_code: TrustRemoteCode = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Images per batch; a killed run loses one batch.")] = 32,
    as_json: AsJson = False,
) -> None:
    """Index a folder of images. Run again, it embeds only what is new or was changed."""
    _check_folder(folder)
    with work() as progress:
        progress("Loading the model", 0, 0)
        from radical_haystack.pipelines import index_folder

        report = index_folder(
            folder,
            store,
            first_stage=first_stage,
            trust_remote_code=trust_remote_code,
            batch_size=batch_size,
            progress=lambda *at: progress("Indexing", *at),
        )
    note_on_bundled_models(folder, first_stage)
    if as_json:
        return print_json({**asdict(report), "store": str(store)})
    for file, reason in report.unreadable.items():
        messages.print(f"Skipped {file}: {reason}", style="yellow", markup=False, highlight=False)
    print(
        f"{report.indexed} images indexed, {report.unchanged} unchanged, {report.removed} removed, "
        f"{len(report.unreadable)} unreadable; {report.total} in '{store}'."
    )


def search(
    query: Annotated[str, typer.Argument(help="What to look for; with --reference, what shall be different.")],
    store: Store,
    reference: Annotated[
        Path | None, typer.Option(metavar="IMG", help="An image to start from; it is not among the results itself.")
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, help="How many images to show.")] = 10,
    keep_ratio: KeepRatio = 0.2,
    pruner: Pruner = "radical",
    model: Annotated[
        str, typer.Option(help="Hub name or folder of the reranking model; none for the first stage's order.")
    ] = DEFAULT_MODEL,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
) -> None:
    """Search an index: retrieve, then rerank."""
    _check_search(query, store, reference)
    with work() as progress:
        progress("Loading the models", 0, 0)
        from radical_haystack.pipelines import read_store_info, search_folder

        documents = search_folder(
            store,
            query,
            reference_image=reference,
            trust_remote_code=trust_remote_code,
            model=None if model == "none" else model,
            top_k=top_k,
            keep_ratio=keep_ratio,
            pruner=pruner,
        )
        info = read_store_info(store)
    note_on_bundled_models(info.root_path, info.first_stage, model)
    results = [
        {"score": document.score, "file": document.meta["file_path"], **document.meta.get("radical", {"rank": place})}
        for place, document in enumerate(documents, start=1)
    ]
    if as_json:
        start = {} if reference is None else {"reference": str(reference)}
        return print_json({"query": query, **start, "results": results})
    title = query if reference is None else f"{reference.name}: {query}"
    Console().print(_table(results, escape(title), reranked=model != "none"))


def _check_folder(folder: Path) -> None:
    if folder.is_file():
        raise ValueError(f"'{folder}' is a file; give the folder that holds the images.")
    if not folder.is_dir():
        raise ValueError(f"There is no folder '{folder}'.")


def _check_search(query: str, store: Path, reference: Path | None) -> None:
    """Refuse now what `search_folder` would refuse after seconds of loading."""
    if not query.strip():
        raise ValueError("The query is blank.")
    if not (store / "store.json").is_file():
        raise ValueError(f"There is no store at '{store}'; index a folder of images into it first.")
    if reference is not None and not reference.is_file():
        raise ValueError(f"There is no image file '{reference}'.")


def _table(results: list[dict[str, Any]], title: str, *, reranked: bool) -> Table:
    caption = "score: higher is better; comparable within this search only; may be negative"
    table = Table("rank", "file", "score", title=title, caption=caption)
    for column in ("first stage", "tokens kept") if reranked else ():
        table.add_column(column)
    for result in results:
        score = "unreadable" if result["score"] is None else f"{result['score']:.3f}"
        row = [str(result["rank"]), escape(result["file"]), score]
        if reranked:
            row += [str(result["first_stage_rank"]), f"{result['kept_tokens']} of {result['total_tokens']}"]
        table.add_row(*row)
    return table
