# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that shows which parts of the images a search has looked at."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radical_haystack.cli.shared import (
    DEFAULT_MODEL,
    AsJson,
    KeepRatio,
    Model,
    Store,
    TrustRemoteCode,
    print_json,
    work,
)

if TYPE_CHECKING:
    from radical_haystack.pipelines.explaining import Explanation
    from radical_haystack.vlm import Ranking

DEFAULT_METHODS = ["radical", "random"]


def explain(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    store: Store,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The picture: a .png, .pdf or .svg file.")],
    methods: Annotated[
        list[str], typer.Option(metavar="NAME...", help="Pruning methods, one row each, such as radical fastv random.")
    ] = DEFAULT_METHODS,
    keep_ratio: KeepRatio = 0.2,
    top_k: Annotated[int, typer.Option(min=1, help="How many images to show, as the first method ranks them.")] = 8,
    model: Model = DEFAULT_MODEL,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
) -> None:
    """Draw which visual tokens of a search's candidates each pruning method keeps."""
    with work() as progress:
        from radical_haystack import viz

        viz.require_matplotlib()
        viz.check_picture_path(out)
        progress("Loading the models", 0, 0)
        from radical_haystack.pipelines.explaining import CANDIDATES, explain_search

        explanation = explain_search(
            store,
            query,
            methods=methods,
            model=model,
            candidates=max(CANDIDATES, top_k),
            keep_ratio=keep_ratio,
            trust_remote_code=trust_remote_code,
            progress=lambda *at: progress("Ranking", *at),
        )
        figure = viz.retention_overlay(
            explanation.rankings,
            explanation.images,
            order=next(iter(explanation.rankings.values())).order[:top_k],
            labels=[Path(file).name for file in _files(explanation)],
            title=f"“{query}”",
        )
        picture = viz.save_figure(figure, out)
    if as_json:
        return print_json(_result(explanation, picture))
    print(picture)


def _result(explanation: "Explanation", picture: Path) -> dict[str, Any]:
    """Every candidate with what each method kept of it; tokens are numbered row by row within their image."""
    files = _files(explanation)
    return {
        "query": explanation.query,
        "picture": str(picture),
        "methods": {name: _by_rank(ranking, files) for name, ranking in explanation.rankings.items()},
    }


def _by_rank(ranking: "Ranking", files: list[str]) -> list[dict[str, Any]]:
    from radical_haystack.viz import pruning_layers, token_masks

    layers = {layer: token_masks(ranking, layer) for layer in pruning_layers(ranking)}
    final = token_masks(ranking)
    return [
        {
            "rank": rank,
            "file": files[candidate],
            "score": ranking.scores[candidate],
            "total_tokens": ranking.total_tokens[candidate],
            "kept_tokens": ranking.kept_tokens[candidate],
            "grid": list(final[candidate].shape),
            "kept": final[candidate].ravel().nonzero()[0].tolist(),
            "layers": [
                {"layer": layer, "kept": masks[candidate].ravel().nonzero()[0].tolist()}
                for layer, masks in layers.items()
            ],
        }
        for rank, candidate in enumerate(ranking.order, start=1)
    ]


def _files(explanation: "Explanation") -> list[str]:
    return [str(document.meta["file_path"]) for document in explanation.documents]
