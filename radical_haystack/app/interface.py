# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The app's interface in Gradio: what is on the page, and what happens when something on it is used."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import gradio as gr

from radical_haystack.app import page
from radical_haystack.app.searching import (
    MAX_QUERY,
    MAX_UPLOAD_BYTES,
    Found,
    Reference,
    Searcher,
    SearchError,
    reference_from_file,
)
from radical_haystack.pruning import PRUNERS

_HERE = Path(__file__).parent
_FONTS = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica", "Arial", "sans-serif"]
_MONO = ["ui-monospace", "Consolas", "monospace"]
_FOCUS_QUERY = "() => document.querySelector('#rh-query textarea, #rh-query input').focus()"
_TO_RESULTS = "() => { if (innerWidth < 761) document.querySelector('#rh-status').scrollIntoView({block: 'start'}) }"
_ASK, _CHANGE = "What are you looking for?", "Like the reference image, but …"
_PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
_SESSIONS = 100
_WAITING = 32
_DAY = 86400

Update: TypeAlias = tuple[Any, Any]
"""New status and results."""

logger = logging.getLogger(__name__)


class Handlers:
    """
    What happens when something on the page is used. Each handler returns the new values of what it changes.

    :param searcher: Does the work.
    """

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def search(
        self, index: int, query: str, reference: Reference | None, pruner: str, keep_ratio: float
    ) -> Iterator[Update]:
        """
        Search, showing the first stage's order while the model is reading.

        :returns: Status and results, several times.
        """

        def steps() -> Iterator[Update]:
            yield page.working("Finding candidates …"), gr.skip()
            found = self._searcher.retrieve(index, query, reference)
            yield page.working(f"Reading {len(found.documents)} images in one prompt …"), page.first_results(found)
            yield self._reranked(found, pruner, keep_ratio)

        yield from _told(steps())

    def refine(
        self, index: int, query: str, reference: Reference | None, pruner: str, keep_ratio: float
    ) -> Iterator[Update]:
        """
        Search again after a setting was changed, with the former results in place until the new ones are there.

        :returns: Status and results, several times.
        """

        def steps() -> Iterator[Update]:
            yield page.working("Reading the images again …"), gr.skip()
            yield self._reranked(self._searcher.retrieve(index, query, reference), pruner, keep_ratio)

        if query.strip():
            yield from _told(steps())
        else:
            yield gr.skip(), gr.skip()

    def switch(
        self, index: int, query: str, reference: Reference | None, pruner: str, keep_ratio: float
    ) -> Iterator[Update]:
        """
        Turn to another index: search it for what is asked already, or say what can be asked.

        :returns: Status and results, several times.
        """
        if query.strip():
            yield from self.search(index, query, reference, pruner, keep_ratio)
        else:
            yield "", page.welcome(self._searcher.indexes[index])

    def caution(self, index: int) -> Any:
        """
        Say whether the models suit the images of an index.

        :returns: The note above the results.
        """
        text = page.caution(self._searcher.indexes[index], self._searcher.model)
        return gr.update(value=text, visible=bool(text))

    def pick(self, index: int, event: gr.EventData) -> tuple[Any, ...]:
        """
        Take a result as the reference.

        :returns: Reference, its picture, query and status.
        """
        try:
            reference = self._searcher.reference_from_result(index, str(getattr(event, "id", "")))
        except SearchError as error:
            return gr.skip(), gr.skip(), gr.skip(), page.problem(str(error))
        return reference, reference.image, _query_box(reference, clear=True), page.notice(_say_what(reference))

    def upload(self, file: dict[str, Any] | None) -> tuple[Any, ...]:
        """
        Take an uploaded file as the reference.

        :param file: The file as the browser names it, in Gradio's upload folder; Gradio takes no other.
        :returns: Reference, its picture, query and status.
        """
        if file is None or file.get("path") is None:
            return self.clear()
        try:
            reference = reference_from_file(file["path"], file.get("orig_name") or "the image")
        except SearchError as error:
            return None, None, _query_box(None), page.problem(str(error))
        return reference, gr.skip(), _query_box(reference), page.notice(_say_what(reference))

    def clear(self) -> tuple[Any, ...]:
        """
        Search without a reference again.

        :returns: Reference, its picture, query and status.
        """
        return None, None, _query_box(None), page.notice("The reference image is gone: a search by text again.")

    def example(self, event: gr.EventData) -> str:
        """
        Take over an example.

        :returns: The query.
        """
        return str(getattr(event, "text", ""))[:MAX_QUERY]

    def _reranked(self, found: Found, pruner: str, keep_ratio: float) -> Update:
        comparison = self._searcher.rank(found, pruner=pruner, keep_ratio=keep_ratio)
        return page.notice(page.outcome(comparison)), page.results(comparison)


def build_app(searcher: Searcher) -> gr.Blocks:
    """
    Build the app.

    :param searcher: Does the work.
    """
    handlers = Handlers(searcher)
    with gr.Blocks(
        title="radical_haystack", analytics_enabled=False, fill_width=True, delete_cache=(_DAY, _DAY)
    ) as blocks:
        gr.HTML(
            "<h1>radical_haystack</h1><p>Retrieve images, then rerank them with a vision-language model that prunes "
            "its visual tokens.</p>",
            elem_id="rh-title",
        )
        reference = gr.State(None)
        with gr.Row(equal_height=False):
            with gr.Column(scale=4, min_width=300):
                query, button = _query_row()
                settings = _settings(searcher)
            with gr.Column(scale=1, min_width=230):
                picture = _reference_image()
        caution = page.caution(searcher.indexes[0], searcher.model)
        note = gr.HTML(caution, visible=bool(caution), elem_id="rh-caution")
        status = gr.HTML(
            html_template='<div role="status" aria-live="polite">${value}</div>', value="", elem_id="rh-status"
        )
        results = gr.HTML(
            page.welcome(searcher.indexes[0]),
            js_on_load=(_HERE / "actions.js").read_text(encoding="utf-8"),
            elem_id="rh-results",
        )
        index, pruner, keep_ratio = settings
        asked, shown = [index, query, reference, pruner, keep_ratio], [status, results]
        chosen = [reference, picture, query, status]
        for event in (query.submit, button.click):
            # A query sent while the one before is still being ranked must not get lost.
            searched = event(handlers.search, asked, shown, trigger_mode="always_last", **_PRIVATE)
            searched.then(None, js=_TO_RESULTS, **_PRIVATE)
        index.change(handlers.caution, index, note, trigger_mode="always_last", **_PRIVATE)
        index.change(handlers.switch, asked, shown, trigger_mode="always_last", **_PRIVATE)
        for setting in (pruner, keep_ratio):
            setting.change(handlers.refine, asked, shown, trigger_mode="always_last", **_PRIVATE)
        # Gradio would read the file itself and only say "Error" of one that is no image.
        picture.upload(handlers.upload, picture, chosen, preprocess=False, **_PRIVATE)
        picture.clear(handlers.clear, None, chosen, **_PRIVATE)  # `input` would hand over what was there before
        results.pick(handlers.pick, index, chosen, **_PRIVATE).then(None, js=_FOCUS_QUERY, **_PRIVATE)
        results.example(handlers.example, None, query, **_PRIVATE).then(handlers.search, asked, shown, **_PRIVATE)
    return blocks.queue(default_concurrency_limit=2, max_size=_WAITING, api_open=False)


def launch_options(host: str, port: int | None) -> dict[str, Any]:
    """
    How Gradio has to serve the app: nothing shared, nothing reported, no file handed out but uploads.

    :param host: The address to listen at.
    :param port: The port; `None` for a free one.
    """
    theme = gr.themes.Base(primary_hue="blue", neutral_hue="slate", font=_FONTS, font_mono=_MONO).set(
        # Gradio's own grey and blue are too faint to read for many (WCAG asks for a contrast of 4.5).
        body_text_color_subdued="*neutral_500",
        body_text_color_subdued_dark="*neutral_400",
        block_info_text_color="*neutral_500",
        color_accent="*primary_600",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
    )
    return {
        "server_name": host,
        "server_port": port,
        "share": False,
        "theme": theme,
        "css": (_HERE / "style.css").read_text(encoding="utf-8"),
        "allowed_paths": [],
        "max_file_size": MAX_UPLOAD_BYTES,
        "state_session_capacity": _SESSIONS,
        "enable_monitoring": False,
        "run_history": False,
        "ssr_mode": False,
        "pwa": False,
        "footer_links": [],
        "quiet": True,
    }


def _told(steps: Iterator[Update]) -> Iterator[Update]:
    """The steps of a search and, if one of them fails, what went wrong; results half shown are taken away then."""
    left: Any = gr.skip()
    try:
        for status, results in steps:
            left = "" if isinstance(results, str) else left
            yield status, results
    except (ValueError, OSError) as error:
        yield page.problem(str(error)), left
    except Exception:
        logger.exception("A search failed")
        yield page.problem("The search failed. The terminal that runs the app says why; then search again."), left


def _query_row() -> tuple[gr.Textbox, gr.Button]:
    with gr.Row(equal_height=True, elem_id="rh-ask"):
        query = gr.Textbox(
            label=_ASK,
            placeholder="Describe an image",
            max_lines=1,
            max_length=MAX_QUERY,
            autofocus=True,
            scale=5,
            min_width=200,
            elem_id="rh-query",
        )
        button = gr.Button("Search", variant="primary", scale=1, min_width=110, elem_id="rh-search")
    return query, button


def _settings(searcher: Searcher) -> tuple[gr.Dropdown, gr.Dropdown, gr.Slider]:
    with gr.Row():
        keep_ratio = gr.Slider(
            0.05,
            1.0,
            value=0.2,
            step=0.05,
            label="Keep ratio",
            info="Share of the visual tokens that is kept; each token is a patch of an image.",
            min_width=200,
            elem_id="rh-keep-ratio",
        )
        pruner = gr.Dropdown(
            list(PRUNERS),
            value="radical",
            label="Pruner",
            info="How to choose the tokens that the model drops; dense drops none.",
            filterable=False,
            min_width=180,
            elem_id="rh-pruner",
        )
        index = gr.Dropdown(
            [(index.label, number) for number, index in enumerate(searcher.indexes)],
            value=0,
            label="First stage and index",
            info=_about_indexes(len(searcher.indexes)),
            filterable=False,
            min_width=220,
            elem_id="rh-index",
        )
    return index, pruner, keep_ratio


def _about_indexes(count: int) -> str:
    if count > 1:
        return "Which images are searched, and which model finds the candidates."
    return "Which images are searched, and which model finds the candidates. The app was started with this one only."


def _reference_image() -> gr.Image:
    return gr.Image(
        label="Reference image (optional)",
        sources=["upload"],
        buttons=[],
        height=188,
        placeholder="Drop or choose an image, or pick a result",
        alt_text="The reference image",
        elem_id="rh-reference",
    )


def _query_box(reference: Reference | None, *, clear: bool = False) -> Any:
    """The query's field, whose meaning depends on whether there is a reference."""
    text: dict[str, Any] = {"value": ""} if clear else {}
    if reference is None:
        return gr.update(label=_ASK, placeholder="Describe an image", **text)
    return gr.update(label=_CHANGE, placeholder="is blue instead", **text)


def _say_what(reference: Reference) -> str:
    return f"The reference is {reference.name}. Say what shall be different, then press Enter."
