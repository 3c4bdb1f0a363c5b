# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
The app's results as HTML.

Every picture is in the page itself, small, as a data URI: the server hands out no file of an index. All text that comes
from users, files or models goes through `escape`.
"""

import base64
from html import escape
from io import BytesIO

import numpy as np
from PIL import Image

from radical_haystack.app.searching import Candidate, Comparison, Found, Reference, name_of
from radical_haystack.catalog.gallery import is_gallery
from radical_haystack.components.bundled import BUNDLED_MODELS
from radical_haystack.components.image_loading import ImageReadError
from radical_haystack.pipelines.indexes import Index
from radical_haystack.pipelines.searching import CANDIDATES
from radical_haystack.viz.masks import TokenMask

THUMBNAIL = 224
"""Pixels of a picture's longer side."""
EXAMPLES = ("a red checked dress", "blue shorts with dots", "a yellow coat with stripes", "a green skirt with a pocket")
"""What the bundled catalogue can be asked."""

_NAME = 36
"""The most characters of a name below a picture; the tooltip has the whole."""
_VEIL = (38, 38, 44, 205)
"""What lies over dropped tokens, in RGBA."""


def welcome(index: Index) -> str:
    """
    What stands in place of results before the first search.

    :param index: The index that is searched.
    """
    if not len(index):
        return problem(
            f"The index '{index.path}' is empty. Fill it with: radical-haystack index FOLDER --store {index.path}, "
            "and start the app again."
        )
    tries = ""
    if is_gallery(index.info.root_path):
        buttons = "".join(
            f'<button type="button" class="rh-chip" data-example="{escape(text)}">{escape(text)}</button>'
            for text in EXAMPLES
        )
        tries = f'<p class="rh-tries"><span>Try</span> {buttons}</p>'
    return (
        f'<div class="rh-welcome"><p class="rh-lead">{len(index):,} images are ready.</p>'
        f"<p>Type what you are looking for and press Enter. The first stage fetches {CANDIDATES} candidates; the "
        "vision-language model then reads all of them in one prompt and orders them anew, dropping the visual tokens "
        f"that do not help to tell them apart.</p>{tries}</div>"
    )


def caution(index: Index, model: str) -> str:
    """
    What has to be known where a bundled model meets images it was not made for; nothing where none does.

    :param index: The index that is searched.
    :param model: The reranking model, as `RadicalRanker` takes it.
    """
    bundled, instead = [], []
    if index.info.first_stage in ("bundled", *BUNDLED_MODELS):
        bundled.append("first stage")
        instead.append("index the images into a new folder with <code>--first-stage siglip2-base-patch16-512</code>")
    if model in BUNDLED_MODELS:
        bundled.append("reranker")
        instead.append(
            "start the app with <code>--model Qwen/Qwen3-VL-4B-Instruct</code> (needs a GPU; without one, go by the "
            "first stage&#x27;s order)"
        )
    if not bundled or is_gallery(index.info.root_path) or not len(index):
        return ""
    return (
        f'<p class="rh-caution" role="note">The bundled {" and ".join(bundled)} '
        f"{'know' if len(bundled) > 1 else 'knows'} drawn outfits only; on these images, the order means nothing. "
        f"For photos, {' and '.join(instead)}.</p>"
    )


def working(text: str) -> str:
    """
    The line that says what is being done.

    :param text: What.
    """
    return f'<p class="rh-working"><span class="rh-spinner" aria-hidden="true"></span>{escape(text)}</p>'


def notice(text: str) -> str:
    """
    A line of information.

    :param text: The line.
    """
    return f'<p class="rh-notice">{escape(text)}</p>'


def problem(text: str) -> str:
    """
    A line that says what went wrong and what to do.

    :param text: The line.
    """
    return f'<p class="rh-problem" role="alert">{escape(text)}</p>'


def first_results(found: Found) -> str:
    """
    The first stage's order alone, while the model is reading.

    :param found: What it found.
    """
    candidates = [
        Candidate(document.id, name_of(document), image, rank, rank)
        for rank, (document, image) in enumerate(zip(found.documents, found.images, strict=True), start=1)
    ]
    cards = "".join(_first_card(candidate, None) for candidate in candidates)
    waiting = '<li class="rh-card rh-waiting" aria-hidden="true"><div class="rh-picture"></div></li>' * len(candidates)
    return _columns(found, cards, waiting, "")


def results(comparison: Comparison) -> str:
    """
    Both orders beside each other, with marks, timings and token bars.

    :param comparison: The comparison.
    """
    before = "".join(_first_card(candidate, candidate) for candidate in comparison.candidates)
    after = "".join(_reranked_card(comparison, candidate) for candidate in comparison.reranked)
    return _columns(comparison.found, before, after, _summary(comparison))


def outcome(comparison: Comparison) -> str:
    """
    The comparison in one sentence.

    :param comparison: The comparison.
    """
    moved = sum(candidate.moved != 0 for candidate in comparison.candidates)
    count = len(comparison.candidates)
    seconds = sum(comparison.seconds.values())
    text = f"{count} candidates in {_duration(seconds)}; reranking moved {moved} of them."
    if comparison.calibrating:
        text += " Nothing was pruned: the model has no schedule yet and measures itself on its first searches."
    return text


def rank_change(candidate: Candidate) -> str:
    """
    The mark that shows where a candidate came from.

    :param candidate: The candidate.
    """
    places = abs(candidate.moved)
    if not places:
        return '<span class="rh-move rh-same" title="same place">=<span class="rh-sr"> same place</span></span>'
    up = candidate.moved > 0
    words = f"{'up' if up else 'down'} {places} {'place' if places == 1 else 'places'}, was {candidate.first_rank}"
    return (
        f'<span class="rh-move {"rh-up" if up else "rh-down"}" title="{words}"><span aria-hidden="true">'
        f'{"▲" if up else "▼"}{places}</span><span class="rh-sr">{words}</span></span>'
    )


def short_name(name: str) -> str:
    """
    A name that fits below a picture: long ones lose their middle, for folder and ending tell more.

    :param name: The name.
    """
    if len(name) <= _NAME:
        return name
    head = _NAME // 2 - 4
    return f"{name[:head]}…{name[head + 1 - _NAME :]}"


def picture(image: Image.Image) -> str:
    """
    A small copy of an image as a data URI.

    :param image: The image.
    """
    small = image.convert("RGB")
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    return _data_uri(small, "JPEG", quality=82)


def veil(mask: TokenMask) -> str:
    """
    What lies over an image's dropped tokens, one pixel per token, as a data URI.

    :param mask: The kept tokens, shape `(rows, columns)`.
    """
    pixels = np.zeros((*mask.shape, 4), dtype=np.uint8)
    pixels[~mask] = _VEIL
    return _data_uri(Image.fromarray(pixels), "PNG")


def _data_uri(image: Image.Image, form: str, **options: int) -> str:
    buffer = BytesIO()
    image.save(buffer, format=form, **options)
    return f"data:image/{form.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _columns(found: Found, before: str, after: str, summary: str) -> str:
    stage = escape(found.first_stage)
    return (
        f'<div class="rh-results">{_query(found.query, found.reference)}{summary}<div class="rh-columns">'
        f'<section aria-label="First stage"><h2>First stage <small>{stage}</small></h2>'
        f'<ol class="rh-grid rh-before" tabindex="0" aria-label="First-stage order">{before}</ol></section>'
        '<section aria-label="Reranked"><h2>Reranked <small>by the vision-language model</small></h2>'
        f'<ol class="rh-grid rh-after" aria-label="Reranked order">{after}</ol></section></div></div>'
    )


def _query(query: str, reference: Reference | None) -> str:
    """What was asked, since the fields above may say something else by now."""
    if reference is None:
        return f'<p class="rh-asked">“{escape(query)}”</p>'
    source = picture(reference.image)
    return (
        f'<p class="rh-asked"><img src="{source}" alt="{escape(reference.name)}"> like this, but “{escape(query)}”</p>'
    )


def _first_card(candidate: Candidate, ranked: Candidate | None) -> str:
    goes = "" if ranked is None else f'<span class="rh-goes">→ {ranked.rank}</span>'
    return (
        f'<li class="rh-card" data-document="{escape(candidate.document_id)}">{_image(candidate, "")}'
        f'<div class="rh-line"><span class="rh-rank">{candidate.first_rank}</span>{goes}</div></li>'
    )


def _reranked_card(comparison: Comparison, candidate: Candidate) -> str:
    veils = "".join(
        f'<img class="rh-veil" data-stage="{stage}" src="{veil(mask)}" alt="" hidden>'
        for stage, mask in enumerate(candidate.masks)
    )
    line = f'<span class="rh-rank">{candidate.rank}</span>{rank_change(candidate)}'
    if isinstance(candidate.image, ImageReadError):
        tokens = f'<p class="rh-unreadable">{escape(str(candidate.image))}</p>'
        pick = ""
    else:
        tokens = _token_bar(candidate) + _switch(comparison, candidate)
        pick = (
            f'<button type="button" class="rh-pick" data-pick="{escape(candidate.document_id)}" '
            f'title="Take this image as the reference" aria-label="Like this, number {candidate.rank}, but …">'
            "Like this, but …</button>"
        )
    return (
        f'<li class="rh-card" data-document="{escape(candidate.document_id)}" data-total="{candidate.total_tokens}">'
        f'{_image(candidate, veils)}<div class="rh-line">{line}</div>{tokens}{pick}</li>'
    )


def _image(candidate: Candidate, veils: str) -> str:
    image, name = candidate.image, escape(candidate.name)
    if isinstance(image, ImageReadError):
        broken = f'<div class="rh-picture rh-broken" role="img" aria-label="unreadable image {name}">?</div>'
        return broken + _name(candidate)
    width = 100 * min(1.0, image.width / image.height)
    return (
        f'<div class="rh-picture"><div class="rh-fit" style="width:{width:.1f}%;aspect-ratio:{image.width}/'
        f'{image.height}"><img src="{picture(image)}" alt="{name}" title="{name}">'
        f"{veils}</div></div>{_name(candidate)}"
    )


def _name(candidate: Candidate) -> str:
    """The name below a picture; screen readers have it from the picture already."""
    name = escape(short_name(candidate.name))
    return f'<p class="rh-file" title="{escape(candidate.name)}" aria-hidden="true">{name}</p>'


def _token_bar(candidate: Candidate) -> str:
    share = 100 * candidate.kept_tokens / max(candidate.total_tokens, 1)
    return (
        f'<p class="rh-tokens"><span class="rh-bar" aria-hidden="true"><span style="width:{share:.1f}%"></span></span>'
        f'<span><b>{candidate.kept_tokens}</b><span class="rh-sr"> of</span> / {candidate.total_tokens}'
        f'<span class="rh-sr"> tokens</span></span></p>'
    )


def _switch(comparison: Comparison, candidate: Candidate) -> str:
    """Radio buttons, one for the whole image and one for each stage; the arrow keys move among them."""
    if not candidate.masks:
        return ""
    options = [("", "all", "the whole image", candidate.kept_tokens)]
    for number, (stage, mask) in enumerate(zip(comparison.stages, candidate.masks, strict=True)):
        short = "in" if stage.layer < 0 else str(stage.layer)
        options.append((str(number), short, f"tokens left after {stage.label}", int(mask.sum())))
    name = f"rh-tokens-{candidate.rank}"
    buttons = "".join(
        f'<label title="{title}"><input type="radio" name="{name}" value="{value}" data-tokens="{tokens}" '
        f'aria-label="{title}"{"" if value else " checked"}><span>{short}</span></label>'
        for value, short, title, tokens in options
    )
    return (
        f'<fieldset class="rh-switch"><legend class="rh-sr">Tokens of number {candidate.rank} shown</legend>'
        f"{buttons}</fieldset>"
    )


def _summary(comparison: Comparison) -> str:
    return f'<div class="rh-summary">{_timing(comparison)}{_funnel(comparison)}</div>'


def _timing(comparison: Comparison) -> str:
    whole = max(sum(comparison.seconds.values()), 1e-9)
    parts = "".join(
        f'<span class="rh-part rh-part-{number}" style="flex-grow:{max(seconds / whole, 0.004):.4f}"></span>'
        for number, seconds in enumerate(comparison.seconds.values())
    )
    legend = "".join(
        f'<li><span class="rh-dot rh-part-{number}" aria-hidden="true"></span>{escape(step)} '
        f"<b>{_duration(seconds)}</b></li>"
        for number, (step, seconds) in enumerate(comparison.seconds.items())
    )
    return (
        f'<section class="rh-panel" aria-label="Time"><h2>Time <small>{_duration(whole)} in all</small></h2>'
        f'<div class="rh-stack" aria-hidden="true">{parts}</div><ul class="rh-legend">{legend}</ul></section>'
    )


def _funnel(comparison: Comparison) -> str:
    """The tokens of all candidates together, stage by stage: a bar each, which is also the switch for all pictures."""
    total = comparison.total_tokens
    rows = [("", "", "all", total)]
    rows += [
        (str(number), str(stage.layer), f"after {stage.label}", stage.tokens)
        for number, stage in enumerate(comparison.stages)
    ]
    bars = "".join(
        f'<label class="rh-row"><input type="radio" name="rh-tokens-all" value="{value}" data-tokens-all="{layer}"'
        f'{"" if value else " checked"}><span class="rh-name">{escape(name)}</span><span class="rh-bar" '
        f'aria-hidden="true"><span style="width:{100 * tokens / max(total, 1):.1f}%"></span></span>'
        f'<span class="rh-count">{tokens:,}</span></label>'
        for value, layer, name, tokens in rows
    )
    share = f"{comparison.kept_tokens:,} of {total:,} kept by {escape(comparison.pruner)}"
    return (
        f'<section class="rh-panel" aria-label="Visual tokens"><h2>Visual tokens <small>{share}</small></h2>'
        f'<fieldset class="rh-funnel"><legend class="rh-sr">Tokens shown on all pictures</legend>{bars}</fieldset>'
        f"{_no_layers(comparison)}</section>"
    )


def _no_layers(comparison: Comparison) -> str:
    if comparison.stages:
        label = comparison.stages[-1].label
        return (
            '<p class="rh-hint">The model reads the images layer by layer and drops tokens on the way: “after '
            f"{escape(label)}” is what it had left there. Choose a line to see it on the pictures.</p>"
        )
    if comparison.kept_tokens < comparison.total_tokens:
        text = f"{comparison.pruner} makes the images themselves smaller instead of dropping tokens of them."
    else:
        text = "Nothing was pruned."
    return f'<p class="rh-hint">{escape(text)}</p>'


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
