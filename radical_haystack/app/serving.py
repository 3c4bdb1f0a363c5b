# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Getting the app ready and serving it."""

from collections.abc import Sequence
from pathlib import Path

from haystack.utils import ComponentDevice

from radical_haystack.app.catalogue import Progress, prepare_catalogue
from radical_haystack.app.searching import Searcher
from radical_haystack.pipelines.indexes import open_index


def prepare(
    stores: Sequence[str | Path],
    *,
    model: str,
    catalogue: str | Path | None = None,
    device: ComponentDevice | None = None,
    progress: Progress = lambda step, done, total: None,
) -> Searcher:
    """
    Open the indexes and load the models.

    :param stores: The indexes' folders; if there are none, the drawn catalogue's, which is made on first use.
    :param model: The reranking model, as `RadicalRanker` takes it.
    :param catalogue: Where the drawn catalogue is kept; `None` for the user's cache directory.
    :param device: Where to run the models; `None` for the default device.
    :param progress: Called with a step's name, what is done of it and its whole.
    :raises StoreError: If an index cannot be used.
    :raises ImportError: If Gradio is not installed; the message says how to install it.
    """
    _require_gradio()
    paths = stores or [prepare_catalogue(catalogue, progress=progress)]
    progress("Opening the index" if len(paths) == 1 else f"Opening {len(paths)} indexes", 0, 0)
    searcher = Searcher([open_index(path) for path in paths], model=model, device=device)
    progress(f"Loading the reranker {model}", 0, 0)
    searcher.warm_up()
    return searcher


def serve(searcher: Searcher, *, host: str, port: int) -> None:
    """
    Serve the app until it is interrupted.

    :param searcher: Does the work.
    :param host: The address to listen at.
    :param port: The port.
    :raises OSError: If the port is taken.
    """
    from radical_haystack.app.interface import build_app, launch_options

    build_app(searcher).launch(**launch_options(host, port))


def _require_gradio() -> None:
    try:
        import gradio  # noqa: F401
    except ImportError as error:
        raise ImportError("The app needs Gradio: pip install 'radical-haystack[app]'") from error
