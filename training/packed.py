# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Fast forward passes over the weights of an unmodified Qwen3-VL, for training only.

`vision_features` batches equal-sized images. `PackedDecoder` encodes the prefix of a candidate set once and runs many
query segments behind it, each seeing the prefix and itself but not the other segments: the same function as one prompt
per query, for a fraction of the cost. `tests/training/test_packed.py` holds both against the library's own forward.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.models.qwen3_vl.modeling_qwen3_vl import (
    apply_rotary_pos_emb,
    apply_rotary_pos_emb_vision,
)


def patchify(images: Tensor, patch: int = 8, merge: int = 2) -> Tensor:
    """`(B, 3, H, W)` in [-1, 1] to `(B, patches, 3 * 2 * patch * patch)` in the processor's merge-block order."""
    batch, channels, height, width = images.shape
    rows, cols = height // (patch * merge), width // (patch * merge)
    x = images.view(batch, channels, rows, merge, patch, cols, merge, patch)
    x = x.permute(0, 2, 5, 3, 6, 1, 4, 7)
    x = x.reshape(batch, rows * cols * merge * merge, channels, 1, patch, patch).expand(-1, -1, -1, 2, -1, -1)
    return x.reshape(batch, rows * cols * merge * merge, -1)


def patch_coordinates(rows: int, cols: int, merge: int = 2) -> Tensor:
    """Row and column of each patch in merge-block order, `(2, rows * cols)`."""
    grid = torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij"))
    grid = grid.view(2, rows // merge, merge, cols // merge, merge).permute(0, 1, 3, 2, 4)
    return grid.reshape(2, -1)


def vision_features(visual, images: Tensor) -> list[Tensor]:
    """
    Merged vision outputs of square images whose patch grid equals the learned position grid.

    :param visual: `model.model.visual`.
    :param images: `(B, 3, side, side)` in [-1, 1].
    :returns: `[merger, deepstack_0, deepstack_1]`, each `(B, tokens, hidden)`.
    """
    batch = images.shape[0]
    side = visual.num_grid_per_side
    coordinates = patch_coordinates(side, side)
    cos, sin = visual.rotary_pos_emb(images, coordinates.T)
    patches = patchify(images)
    weight = visual.patch_embed.proj.weight.flatten(1)
    hidden = F.linear(patches, weight, visual.patch_embed.proj.bias)
    hidden = hidden + visual.pos_embed.weight[coordinates[0] * side + coordinates[1]]
    deepstack = []
    for index, block in enumerate(visual.blocks):
        attention = block.attn
        heads = (3, attention.num_heads, attention.head_dim)
        q, k, v = attention.qkv(block.norm1(hidden)).view(batch, -1, *heads).unbind(2)
        q, k = apply_rotary_pos_emb_vision(q, k, cos, sin)
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        hidden = hidden + attention.proj(mixed.transpose(1, 2).flatten(2))
        hidden = hidden + block.mlp(block.norm2(hidden))
        if index in visual.deepstack_visual_indexes:
            merger = visual.deepstack_merger_list[visual.deepstack_visual_indexes.index(index)]
            deepstack.append(merger(hidden.flatten(0, 1)).view(batch, -1, merger.linear_fc2.out_features))
    merged = visual.merger(hidden.flatten(0, 1)).view(batch, -1, visual.merger.linear_fc2.out_features)
    return [merged, *deepstack]


@dataclass
class Segment:
    """
    Sequences of one length. `B` candidate sets, `Q` sequences each (`Q` = 1 for the prefix).

    :param ids: Token ids, `(B, Q, L)`; image positions hold any id.
    :param positions: M-RoPE positions, `(3, B, Q, L)`.
    :param visual: Image features `[merger, deepstack...]`, each `(B, Q, V, hidden)`, or `None`.
    :param visual_index: Positions of the image tokens, `(B, Q, V)`.
    """

    ids: Tensor
    positions: Tensor
    visual: list[Tensor] | None = None
    visual_index: Tensor | None = None


def scatter_add(hidden: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """Add `values (B, Q, V, d)` to `hidden (B, Q, L, d)` at `index (B, Q, V)`."""
    return hidden.scatter_add(2, index[..., None].expand_as(values), values)


class PackedDecoder:
    """Runs the decoder over a prefix and groups of query segments behind it."""

    def __init__(self, model) -> None:
        self.text = model.model.language_model
        self.config = self.text.config

    def embed(self, segment: Segment) -> Tensor:
        """Input embeddings with the image features put in, `(B, Q, L, d)`."""
        hidden = self.text.embed_tokens(segment.ids)
        if segment.visual is None:
            return hidden
        index = segment.visual_index[..., None].expand_as(segment.visual[0])
        return hidden.scatter(2, index, segment.visual[0])

    def rotary(self, segment: Segment) -> tuple[Tensor, Tensor]:
        batch, queries, length = segment.ids.shape
        cos, sin = self.text.rotary_emb(
            torch.empty(0, dtype=torch.float32), segment.positions.reshape(3, batch * queries, length)
        )
        return cos.view(batch, queries, length, -1), sin.view(batch, queries, length, -1)

    def forward(
        self,
        prefix: Segment,
        groups: list[Segment],
        watch: dict[int, list[Tensor]] | None = None,
        cut: tuple[int, Tensor] | None = None,
    ):
        """
        :param prefix: The system message and all candidates, `Q` = 1.
        :param groups: Query segments.
        :param watch: Layer to one row index tensor `(B, Q, R)` per group: returns these rows' attention to the prefix.
        :param cut: A layer, and the prefix tokens that stay behind it, ascending, `(B, K)`; the others are removed.
        :returns: final-norm hidden states per group `(B, Q, L, d)`; the residual of prefix and groups entering
            every layer;
            `{layer: [attention of the watched rows per group, averaged over heads, (B, Q, R, P)]}`.
        """
        watch = watch or {}
        hidden = [self.embed(segment) for segment in (prefix, *groups)]
        rotary = [self.rotary(segment) for segment in (prefix, *groups)]
        causal = [torch.ones(s.ids.shape[2], s.ids.shape[2], dtype=torch.bool).tril() for s in groups]
        residuals, attention = [], {}
        last = len(self.text.layers) - 1
        for number, layer in enumerate(self.text.layers):
            residuals.append(list(hidden))
            states = [self.project(layer, h, r) for h, r in zip(hidden, rotary, strict=True)]
            _, prefix_key, prefix_value = states[0]
            mixed = [self.attend_prefix(*states[0])] if number < last else [None]
            attention[number] = []
            for place, (q, k, v) in enumerate(states[1:]):
                out, weights = self.attend_segment(q, k, v, prefix_key, prefix_value, causal[place])
                mixed.append(out)
                if number in watch:
                    attention[number].append(watched_rows(weights, watch[number][place]))
            for place, segment in enumerate((prefix, *groups)):
                if mixed[place] is None:
                    continue
                h = hidden[place] + layer.self_attn.o_proj(mixed[place])
                h = h + layer.mlp(layer.post_attention_layernorm(h))
                if segment.visual is not None and number + 1 < len(segment.visual):
                    h = scatter_add(h, segment.visual_index, segment.visual[number + 1])
                hidden[place] = h
            if cut is not None and number == cut[0]:
                hidden[0] = select(hidden[0], cut[1])
                rotary[0] = tuple(select(part, cut[1]) for part in rotary[0])
        return [self.text.norm(h) for h in hidden[1:]], residuals, attention

    def project(self, layer, hidden: Tensor, rotary: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries `(B, Q, L, heads, hd)` and the single key/value head `(B, Q, L, 1, hd)`."""
        attention = layer.self_attn
        x = layer.input_layernorm(hidden)
        shape = (*x.shape[:-1], -1, attention.head_dim)
        q = attention.q_norm(attention.q_proj(x).view(shape))
        k = attention.k_norm(attention.k_proj(x).view(shape))
        q, k = apply_rotary_pos_emb(q, k, *rotary, unsqueeze_dim=3)
        return q, k, attention.v_proj(x).view(shape)

    @staticmethod
    def attend_prefix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.squeeze(1).transpose(1, 2) for x in (q, k, v))
        k, v = k.expand_as(q), v.expand_as(q)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).flatten(2).unsqueeze(1)

    @staticmethod
    def attend_segment(q: Tensor, k: Tensor, v: Tensor, prefix_k: Tensor, prefix_v: Tensor, causal: Tensor):
        """One softmax over the prefix and the segment's own earlier tokens (one key/value head)."""
        batch, queries, length, heads, dim = q.shape
        q = q * dim**-0.5
        to_prefix = q.reshape(batch, -1, dim) @ prefix_k.reshape(batch, -1, dim).transpose(1, 2)
        own_q = q.reshape(batch * queries, length * heads, dim)
        own_k = k.reshape(batch * queries, length, dim)
        to_own = (own_q @ own_k.transpose(1, 2)).view(batch, queries, length, heads, length)
        to_own = to_own.masked_fill(~causal[:, None, :], float("-inf"))
        scores = torch.cat([to_prefix.view(batch, queries, length, heads, -1), to_own], dim=-1)
        weights = scores.softmax(-1)
        split = prefix_k.shape[2]
        out = weights[..., :split].reshape(batch, -1, split) @ prefix_v.reshape(batch, -1, dim)
        own = weights[..., split:].reshape(batch * queries, length * heads, length) @ v.reshape(
            batch * queries, length, dim
        )
        out = out.view(batch, queries, length, heads * dim) + own.view(batch, queries, length, heads * dim)
        return out, weights[..., :split]


def select(states: Tensor, kept: Tensor) -> Tensor:
    """Pick tokens `kept (B, K)` of `states (B, 1, P, d)`: `(B, 1, K, d)`."""
    return states.gather(2, kept[:, None, :, None].expand(-1, -1, -1, states.shape[-1]))


def watched_rows(weights: Tensor, rows: Tensor) -> Tensor:
    """Pick `rows (B, Q, R)` of `weights (B, Q, L, heads, P)`: `(B, Q, R, heads, P)`."""
    index = rows[..., None, None].expand(*rows.shape, *weights.shape[3:])
    return weights.gather(2, index)
