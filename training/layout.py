# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The listwise prompt as token ids and M-RoPE positions, in batches: what the package's prompts give one by one."""

import torch
from torch import Tensor

from training.vlm_model import GRID

SYSTEM = (
    "Rank the images by how well they match the query. Answer with their letters, best first, for example: C > A > F."
)
IDENTIFIERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TAIL = "<|im_end|>\n<|im_start|>assistant\n"


class Layout:
    """Token ids of the fixed parts of the prompt."""

    def __init__(self, tokenizer) -> None:
        def encode(text: str) -> list[int]:
            return tokenizer(text, add_special_tokens=False)["input_ids"]

        self.encode = encode
        self.head = encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n")
        self.letters = [encode(f"{letter}:")[0] for letter in IDENTIFIERS]
        self.before_image = encode(": <|vision_start|>")
        self.image = encode("<|image_pad|>")[0]
        self.after_image = encode("<|vision_end|>\n")
        self.reference = encode("Reference: <|vision_start|>")
        self.query = encode("Query:")
        self.tail = encode(TAIL)
        self.end = encode("<|im_end|>")[0]
        self.separator = encode(" > ")

    def prefix(self, letters: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """
        The part before the query.

        :param letters: Identifier number of each candidate, `(B, N)`.
        :param tokens: Which of an image's tokens are present, ascending, `(B, N, T)`.
        :returns: ids `(B, 1, P)`, positions `(3, B, 1, P)`, image positions `(B, 1, N * T)`.
        """
        batch, count = letters.shape
        kept = tokens.shape[2]
        letter_ids = torch.tensor(self.letters)[letters]
        block = [
            letter_ids[..., None],
            torch.tensor(self.before_image).expand(batch, count, -1),
            torch.full((batch, count, kept), self.image),
            torch.tensor(self.after_image).expand(batch, count, -1),
        ]
        blocks = torch.cat(block, dim=2)
        ids = torch.cat([torch.tensor(self.head).expand(batch, -1), blocks.flatten(1)], dim=1)
        lead, trail = 1 + len(self.before_image), len(self.after_image)
        span = lead + GRID + trail
        starts = len(self.head) + span * torch.arange(count)
        before = starts[:, None] + torch.arange(lead)
        after = starts[:, None] + lead + GRID + torch.arange(trail)
        image = image_positions(starts[:, None] + lead, tokens)
        text = torch.cat([before, torch.zeros(count, kept, dtype=torch.long), after], dim=1)
        positions = text.expand(3, batch, count, -1).clone()
        positions[..., lead : lead + kept] = image
        head = torch.arange(len(self.head)).expand(3, batch, -1)
        positions = torch.cat([head, positions.flatten(2)], dim=2)
        width = blocks.shape[2]
        index = len(self.head) + lead + width * torch.arange(count)[:, None] + torch.arange(kept)
        return ids[:, None], positions[:, :, None], index.flatten().expand(batch, 1, -1)

    def next_position(self, count: int) -> int:
        """The M-RoPE position of the first token behind a prefix of `count` candidates."""
        return len(self.head) + count * (1 + len(self.before_image) + GRID + len(self.after_image))

    def segments(self, texts: list[list[int]], start: int, *, reference: Tensor | None, answers: list[list[int]]):
        """
        Query segments, right-padded to one length.

        :param texts: Token ids of each query, with the leading space.
        :param start: Position of the first token.
        :param reference: Put a reference image before the query: which of its tokens are present, ascending, `(Q, V)`.
        :param answers: Token ids to follow the generation prompt, may be empty.
        :returns: ids `(Q, L)`, positions `(3, Q, L)`, image positions `(Q, V)` or None, index of the last prompt token
            `(Q,)`, query-token mask `(Q, L)`.
        """
        shown = 0 if reference is None else reference.shape[1]
        lead = [] if reference is None else [*self.reference, *[self.image] * shown, *self.after_image]
        rows = [[*lead, *self.query, *text, *self.tail] for text in texts]
        prompt_end = torch.tensor([len(row) - 1 for row in rows])
        full = [row + answer for row, answer in zip(rows, answers, strict=True)]
        width = max(map(len, full))
        ids = torch.tensor([row + [self.end] * (width - len(row)) for row in full])
        mask = torch.zeros_like(ids, dtype=torch.bool)
        for number, text in enumerate(texts):
            first = len(lead) + len(self.query)
            mask[number, first : first + len(text)] = True
        positions = torch.arange(start, start + width).expand(3, len(rows), -1).clone()
        index = None
        if reference is not None:
            first = len(self.reference)
            behind = first + shown
            positions[:, :, first:behind] = image_positions(torch.tensor(start + first), reference)
            positions[:, :, behind:] = torch.arange(width - behind) + start + first + GRID
            index = torch.arange(first, behind).expand(len(rows), -1)
        return ids, positions, index, prompt_end, mask


def image_positions(start: Tensor, tokens: Tensor) -> Tensor:
    """M-RoPE positions of image tokens: `start` broadcast over `tokens (..., T)`, to `(3, ..., T)`."""
    temporal = start.expand_as(tokens)
    return torch.stack([temporal, start + tokens // GRID, start + tokens % GRID])
