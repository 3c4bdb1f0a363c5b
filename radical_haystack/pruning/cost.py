# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
What a prefill costs, on paper: FLOPs and KV cache of any pruning schedule on any decoder shape.

Counted, at 2 FLOPs per multiply-add: the seven linear layers of each decoder layer (Q, K, V and output projections,
gate, up and down) and the two attention products over the full S x S square, as `torch.utils.flop_counter` counts SDPA
(a causal kernel may do half of that); the output head on the positions asked for; and the scoring rows a pruner
computes beside the model's own attention. Not counted: the vision encoder, embeddings, norms, activations, softmax,
rotary embedding, sorting.

A pruning layer still processes all tokens that reach it; from the next layer on only the kept ones remain. Its KV
cache is compacted too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from radical_haystack.pruning.pruners.base import keep_count
from radical_haystack.pruning.schedule import PruningSchedule, check_keep_ratio, equal_keep

Schedule = PruningSchedule | Mapping[int, float] | None
"""A schedule, a mapping from pruning layer to the share of the *active* tokens that stays after it, or no pruning."""


@dataclass(frozen=True)
class DecoderShape:
    """
    The sizes of a decoder with grouped-query attention and a gated MLP (Qwen, Llama, InternLM, Mistral).

    :param layers: Number of decoder layers.
    :param hidden: Hidden size.
    :param heads: Query heads.
    :param kv_heads: Key and value heads.
    :param head_dim: Size of a head.
    :param intermediate: Inner size of the MLP.
    :param vocab: Vocabulary size; 0 leaves the output head out.
    :raises ValueError: If a size is not positive.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int = 0

    def __post_init__(self) -> None:
        for name, size in vars(self).items():
            if size < (0 if name == "vocab" else 1):
                raise ValueError(f"A decoder's {name} must be positive, not {size}.")

    @property
    def linear_weights(self) -> int:
        """Weights of the linear layers of one decoder layer: multiply-adds per token."""
        return self.hidden * (self.head_dim * 2 * (self.heads + self.kv_heads) + 3 * self.intermediate)


@dataclass(frozen=True)
class PrefillCost:
    """
    The cost of one prefill. FLOPs are counted as the module says.

    :param linear_flops: Linear layers of all decoder layers.
    :param attention_flops: The two attention products of all decoder layers.
    :param lm_head_flops: The output head.
    :param scoring_flops: Query-key products of the scoring rows at the pruning layers.
    :param tokens_per_layer: Sequence length each decoder layer is counted with.
    :param kv_tokens_per_layer: Entries in each layer's KV cache after the prefill.
    :param kv_bytes: Size of the KV cache after the prefill, in bytes.
    """

    linear_flops: int
    attention_flops: int
    lm_head_flops: int
    scoring_flops: int
    tokens_per_layer: tuple[int, ...]
    kv_tokens_per_layer: tuple[int, ...]
    kv_bytes: int

    @property
    def flops(self) -> int:
        """All of it."""
        return self.linear_flops + self.attention_flops + self.lm_head_flops + self.scoring_flops

    def flops_saved_pct(self, dense: "PrefillCost") -> float:
        """
        Share of the dense pass's FLOPs that is not spent, in percent.

        :param dense: The cost of the same prompt without pruning.
        """
        return 100 * (1 - self.flops / dense.flops)

    def kv_saved_pct(self, dense: "PrefillCost") -> float:
        """
        Share of the dense pass's KV cache that is not held, in percent.

        :param dense: The cost of the same prompt without pruning.
        """
        return 100 * (1 - self.kv_bytes / dense.kv_bytes)


def prefill_cost(
    shape: DecoderShape,
    visual: int,
    text: int,
    schedule: Schedule = None,
    *,
    scoring_rows: int | None = None,
    logits_to_keep: int = 1,
    bytes_per_value: int = 2,
    pruned_from: Literal["output", "input"] = "output",
) -> PrefillCost:
    """
    Count the FLOPs and the KV cache of one prefill.

    :param shape: The decoder.
    :param visual: Prunable visual tokens of all candidates together.
    :param text: All other tokens, those of a protected reference image included.
    :param schedule: Where and how much to prune; `None` is the dense pass.
    :param scoring_rows: Rows of attention computed at every pruning layer for the pruner's sake, each against the whole
        sequence: the text after the last image for RaDiCal, 1 for a last-token method, 0 for random pruning. `None`
        takes all of `text`, an upper bound.
    :param logits_to_keep: Positions the output head runs on, counted from the end; 0 is every remaining position, which
        is what transformers does unless told otherwise. Only matters with `shape.vocab`.
    :param bytes_per_value: 2 for bfloat16 and float16, 4 for float32.
    :param pruned_from: Where tokens leave in a pruning layer. `"output"` is what this package executes. `"input"`
        counts the pruning layer itself as pruned already, which comes closest to the paper's analytic figures for
        RaDiCal if the output head is left out.
    :raises ValueError: If a count is negative or the schedule does not fit the decoder.
    """
    if min(visual, text, logits_to_keep) < 0 or visual + text == 0:
        raise ValueError(f"A prompt cannot have {visual} visual and {text} text tokens and {logits_to_keep} logits.")
    keep = _keep_by_layer(schedule, shape.layers)
    before, after = [], []
    for layer in range(shape.layers):
        before.append(text + visual)
        visual = keep_count(keep[layer], visual) if layer in keep else visual
        after.append(text + visual)
    lengths = before if pruned_from == "output" else after
    rows = text if scoring_rows is None else scoring_rows
    width = shape.heads * shape.head_dim
    logits = min(after[-1], logits_to_keep or after[-1])
    return PrefillCost(
        linear_flops=2 * shape.linear_weights * sum(lengths),
        attention_flops=4 * width * sum(length**2 for length in lengths),
        lm_head_flops=2 * shape.hidden * shape.vocab * logits,
        scoring_flops=2 * width * rows * sum(before[layer] for layer in keep),
        tokens_per_layer=tuple(lengths),
        kv_tokens_per_layer=tuple(after),
        kv_bytes=2 * shape.kv_heads * shape.head_dim * bytes_per_value * sum(after),
    )


def _keep_by_layer(schedule: Schedule, layers: int) -> Mapping[int, float]:
    if schedule is None:
        return {}
    keep = equal_keep(schedule.layers, schedule.keep_ratio) if isinstance(schedule, PruningSchedule) else schedule
    for layer, ratio in keep.items():
        if not 0 <= layer < layers:
            raise ValueError(f"Pruning layer {layer} is not one of the decoder's layers 0 to {layers - 1}.")
        check_keep_ratio(ratio)
    return keep
