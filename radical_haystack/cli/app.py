# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that serves the search app."""

from pathlib import Path
from typing import Annotated

import typer

from radical_haystack.cli.shared import DEFAULT_MODEL, Model, messages, work


def app(
    store: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Folder of an index; may be given several times. Default: the drawn catalogue, indexed on first use.",
        ),
    ] = None,
    catalogue: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the drawn catalogue is kept. Default: the user's cache.")
    ] = None,
    model: Model = DEFAULT_MODEL,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen at.")] = 7860,
) -> None:
    """Search in the browser: both orders side by side, and what became of the visual tokens."""
    with work() as progress:
        progress("Loading PyTorch, Haystack and Gradio", 0, 0)
        from radical_haystack.app import serving

        searcher = serving.prepare(store or [], model=model, catalogue=catalogue, progress=progress)
    messages.print(f"Search at http://{host}:{port} (stop with Ctrl+C)", highlight=False)
    serving.serve(searcher, host=host, port=port)
