# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The listwise prompt: its template, its token ids, where its parts lie, and how its answer is read."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import torch
from torch import Tensor

IDENTIFIERS: tuple[str, ...] = tuple(ascii_uppercase + ascii_lowercase)
"""The candidates' names in the prompt, each a single token: at most 52 candidates in one pass."""

_LONE_LETTER = re.compile(r"(?<![^\W_])(?<!\w['’])[A-Za-z](?![^\W_]|['’]\w)")

_QUERY_MARK = "\ue000query\ue001"
"""Stands for the query while the chat template is rendered: the query itself never meets the template."""


@dataclass(frozen=True)
class PromptTemplate:
    """
    The words around the images. Candidates come first, the query last, so that the query's tokens see every candidate.

    :param system: The system message; empty for none.
    :param candidate: One line per candidate, with `{identifier}` and `{image}`.
    :param reference: The line of a composed query's reference image, with `{image}`.
    :param query: The query's line, with `{query}`.
    :raises ValueError: If a part misses one of its placeholders or repeats it.
    """

    system: str = (
        "Rank the images by how well they match the query. "
        "Answer with their letters, best first, for example: C > A > F."
    )
    candidate: str = "{identifier}: {image}\n"
    reference: str = "Reference: {image}\n"
    query: str = "Query: {query}"

    def __post_init__(self) -> None:
        needed = {"candidate": ("{identifier}", "{image}"), "reference": ("{image}",), "query": ("{query}",)}
        for part, placeholders in needed.items():
            for placeholder in placeholders:
                if getattr(self, part).count(placeholder) != 1:
                    raise ValueError(f"The prompt template's {part!r} must contain {placeholder} exactly once.")

    def to_dict(self) -> dict[str, str]:
        """The template as plain strings, for `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, str]) -> "PromptTemplate":
        """
        Rebuild a template from `to_dict`; parts that are missing take their defaults.

        :param data: Part name to text.
        :raises ValueError: If a part is unknown.
        """
        unknown = sorted(set(data) - set(cls.__dataclass_fields__))
        if unknown:
            raise ValueError(f"Unknown part of a prompt template: {', '.join(unknown)}.")
        return cls(**data)

    def messages(self, identifiers: Sequence[str], query: str, *, with_reference: bool) -> list[dict[str, Any]]:
        """
        The chat messages for a processor's chat template.

        :param identifiers: One identifier per candidate, in prompt order.
        :param query: The query's text.
        :param with_reference: Whether a reference image precedes the query.
        """
        content: list[dict[str, str]] = []
        for identifier in identifiers:
            content += _with_image(self.candidate.replace("{identifier}", identifier))
        if with_reference:
            content += _with_image(self.reference)
        content.append({"type": "text", "text": self.query.replace("{query}", query)})
        user = {"role": "user", "content": content}
        return [{"role": "system", "content": self.system}, user] if self.system else [user]


def _with_image(line: str) -> list[dict[str, str]]:
    before, after = line.split("{image}")
    parts = [{"type": "text", "text": before}, {"type": "image"}, {"type": "text", "text": after}]
    return [part for part in parts if part.get("text") != ""]


@dataclass(frozen=True)
class PromptLayout:
    """
    Where the parts of one prompt lie in its token sequence. All tensors are int64 and ascending, except as stated.

    :param length: Number of tokens in the prompt, `S`.
    :param candidate_positions: Positions of the candidates' visual tokens, shape `(V,)`.
    :param candidate_index: The candidate each of them belongs to, shape `(V,)`, values `0..N-1`.
    :param text_positions: Rows for the attention of text to images, shape `(rows,)`: the text tokens after the last
        candidate image, without image tokens and without the markers around images [choice].
    :param query_positions: Positions of the query's content tokens, shape `(Q,)`; may be empty.
    :param reference_positions: Positions of the protected reference image's visual tokens; may be empty.
    """

    length: int
    candidate_positions: Tensor
    candidate_index: Tensor
    text_positions: Tensor
    query_positions: Tensor
    reference_positions: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))

    @property
    def candidates(self) -> int:
        """Number of candidates, `N`."""
        return int(self.candidate_index[-1]) + 1 if self.candidate_index.numel() else 0

    @property
    def tokens_per_candidate(self) -> tuple[int, ...]:
        """Number of visual tokens of each candidate, `M_k`."""
        return tuple(torch.bincount(self.candidate_index, minlength=self.candidates).tolist())

    @classmethod
    def from_input_ids(
        cls,
        input_ids: Tensor,
        image_token_id: int,
        *,
        candidates: int | None = None,
        query_positions: Tensor | None = None,
        marker_ids: Sequence[int] = (),
    ) -> "PromptLayout":
        """
        Find the layout of a prompt built elsewhere: each run of image tokens is an image, candidates come first.

        :param input_ids: The prompt's token ids, shape `(S,)` or `(1, S)`.
        :param image_token_id: The id that stands for one visual token.
        :param candidates: How many of the images are candidates; the others are protected. Default: all.
        :param query_positions: Positions of the query's content tokens. Default: all text after the last candidate.
        :param marker_ids: Ids of the markers around images, which are no text.
        :raises ValueError: If there are fewer images than candidates, or no text after the last candidate.
        """
        ids = input_ids.detach().cpu().reshape(-1)
        is_image = ids == image_token_id
        starts = is_image & ~torch.cat([is_image.new_zeros(1), is_image[:-1]])
        image_of = torch.cumsum(starts, 0) - 1
        total = int(starts.sum())
        count = total if candidates is None else candidates
        if not 0 < count <= total:
            raise ValueError(f"The prompt holds {total} images; {count} candidates were asked for.")
        is_candidate = is_image & (image_of < count)
        last = int(is_candidate.nonzero()[-1])
        is_text = ~is_image & ~torch.isin(ids, torch.tensor(list(marker_ids), dtype=ids.dtype))
        is_text[: last + 1] = False
        text = is_text.nonzero().flatten()
        if text.numel() == 0:
            raise ValueError("The prompt has no text after its last candidate image, so nothing attends to all images.")
        return cls(
            length=ids.numel(),
            candidate_positions=is_candidate.nonzero().flatten(),
            candidate_index=image_of[is_candidate],
            text_positions=text,
            query_positions=text if query_positions is None else query_positions.cpu(),
            reference_positions=(is_image & ~is_candidate).nonzero().flatten(),
        )


@dataclass(frozen=True)
class Prompt:
    """
    One prompt, ready for the model.

    :param input_ids: Token ids, shape `(1, S)`, int64.
    :param token_types: 1 for visual tokens, 0 for text, shape `(1, S)`.
    :param layout: Where its parts lie.
    """

    input_ids: Tensor
    token_types: Tensor
    layout: PromptLayout


class PromptBuilder:
    """
    Builds prompts with a processor's own chat template and tokenizer.

    :param processor: A Hugging Face processor with a chat template and a fast tokenizer.
    :param template: The words around the images.
    :raises ValueError: If an identifier is not a single token, or the tokenizer cannot tell where a token came from.
    """

    def __init__(self, processor: Any, template: PromptTemplate | None = None) -> None:
        self.template = template or PromptTemplate()
        self._processor = processor
        self._tokenizer = processor.tokenizer
        if not self._tokenizer.is_fast:
            raise ValueError("The prompt needs a fast tokenizer (one that reports character offsets).")
        self._image_id: int = processor.image_token_id
        self._markers = [processor.vision_start_token_id, processor.vision_end_token_id]
        self._structure = _structure_pattern(self._tokenizer)
        self.identifier_ids = tuple(self._single_token(identifier) for identifier in IDENTIFIERS)

    def _single_token(self, identifier: str) -> int:
        ids = self._tokenizer(identifier, add_special_tokens=False)["input_ids"]
        if len(ids) != 1:
            raise ValueError(f"The identifier {identifier!r} is {len(ids)} tokens for this tokenizer; it must be one.")
        return int(ids[0])

    def render(self, query: str, count: int, *, with_reference: bool) -> str:
        """
        The prompt as text, one placeholder per image.

        :param query: The query; text in it that would read as a special token is broken up.
        :param count: Number of candidates.
        :param with_reference: Whether the prompt holds a reference image.
        """
        before, text, after = self._render(query, count, with_reference=with_reference)
        return before + text + after

    def build(self, query: str, candidate_tokens: Sequence[int], reference_tokens: int | None = None) -> Prompt:
        """
        Build the token ids and the layout of one prompt.

        :param query: The query; it is untrusted text and never becomes prompt structure.
        :param candidate_tokens: Number of visual tokens of each candidate, in prompt order.
        :param reference_tokens: Number of visual tokens of the reference image, for a composed query.
        :raises ValueError: If the query is blank, or there are no candidates or more than `len(IDENTIFIERS)`.
        """
        counts = [*candidate_tokens] + ([] if reference_tokens is None else [reference_tokens])
        before, text, after = self._render(query, len(candidate_tokens), with_reference=reference_tokens is not None)
        encoded = self._tokenizer(before + text + after, add_special_tokens=False, return_offsets_mapping=True)
        ids = torch.tensor(encoded["input_ids"])
        offsets = torch.tensor(encoded["offset_mapping"])
        in_query = (offsets[:, 1] > len(before)) & (offsets[:, 0] < len(before) + len(text))
        repeats = torch.ones_like(ids)
        repeats[ids == self._image_id] = torch.tensor(counts)
        ids = ids.repeat_interleave(repeats)
        layout = PromptLayout.from_input_ids(
            ids,
            self._image_id,
            candidates=len(candidate_tokens),
            query_positions=in_query.repeat_interleave(repeats).nonzero().flatten(),
            marker_ids=self._markers,
        )
        return Prompt(ids[None], (ids == self._image_id).long()[None], layout)

    def _render(self, query: str, count: int, *, with_reference: bool) -> tuple[str, str, str]:
        """The text before, of and after the query."""
        text = self._plain(query)
        if not text:
            raise ValueError("The query is blank.")
        if not 0 < count <= len(IDENTIFIERS):
            raise ValueError(f"One prompt takes 1 to {len(IDENTIFIERS)} candidates, got {count}.")
        messages = self.template.messages(IDENTIFIERS[:count], _QUERY_MARK, with_reference=with_reference)
        rendered = self._processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        before, after = rendered.split(_QUERY_MARK)
        return before, text, after

    def _plain(self, query: str) -> str:
        """The query on one line, with everything the tokenizer would read as structure broken up."""
        # On one line, so that a query cannot imitate the template's lines.
        text = " ".join(query.split())
        while broken := self._structure.search(text):
            cut = broken.start() + 1
            text = f"{text[:cut]} {text[cut:]}"
        return text


def _structure_pattern(tokenizer: Any) -> re.Pattern[str]:
    """Matches the added tokens that structure prompts: the special ones and everything in brackets of any kind."""
    special = set(tokenizer.all_special_tokens)
    added = [
        str(token.content)
        for token in tokenizer.added_tokens_decoder.values()
        if token.special or token.content in special or re.search(r"[<>\[\]|]", token.content)
    ]
    names = sorted((name for name in added if len(name) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, names)) or r"(?!)")


@dataclass(frozen=True)
class Permutation:
    """
    An order read from generated text.

    :param order: All candidates, best first.
    :param missing: How many of them the text did not name; they stand at the end in first-stage order.
    :param repeated: How many identifiers came more than once and were ignored.
    :param unknown: How many identifiers named no candidate and were ignored.
    """

    order: tuple[int, ...]
    missing: int
    repeated: int
    unknown: int

    @property
    def fallback(self) -> bool:
        """Whether any part of the order is the first stage's."""
        return self.missing > 0


def parse_permutation(text: str, count: int) -> Permutation:
    """
    Read a permutation such as `C > A > F` tolerantly: other text is skipped.

    An identifier is a letter that stands alone: in `[C] > (A), B.` all three count, in `Certainly` none does. Where the
    text has a `>`, prose before the first and after the last one is left out, so that `I think C > A` starts with C.

    :param text: What the model wrote.
    :param count: Number of candidates.
    """
    named = [IDENTIFIERS.index(letter) for letter in _lone_letters(text)]
    known = [index for index in named if index < count]
    first = list(dict.fromkeys(known))
    missing = [index for index in range(count) if index not in set(first)]
    return Permutation(
        order=(*first, *missing),
        missing=len(missing),
        repeated=len(known) - len(first),
        unknown=len(named) - len(known),
    )


def _lone_letters(text: str) -> list[str]:
    parts = [_LONE_LETTER.findall(part) for part in text.split(">")]
    if len(parts) > 1:
        parts = [parts[0][-1:], *parts[1:-1], parts[-1][:1]]
    return [letter for part in parts for letter in part]
