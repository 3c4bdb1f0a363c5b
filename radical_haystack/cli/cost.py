# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command that computes what a schedule saves."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from radical_haystack.cli.shared import AsJson, KeepRatio, print_json


def cost(
    layers: Annotated[int, typer.Option(help="Number of decoder layers.")],
    hidden: Annotated[int, typer.Option(help="Hidden size.")],
    heads: Annotated[int, typer.Option(help="Query heads.")],
    kv_heads: Annotated[int, typer.Option(help="Key and value heads.")],
    head_dim: Annotated[int, typer.Option(help="Size of a head.")],
    intermediate: Annotated[int, typer.Option(help="Inner size of the MLP.")],
    visual: Annotated[int, typer.Option(help="Visual tokens of all candidates together.")],
    text: Annotated[int, typer.Option(help="All other tokens of the prompt.")],
    schedule: Annotated[str, typer.Option(help="Pruning layers, counted from 0, such as 7,22,24,29.")],
    keep_ratio: KeepRatio = 0.2,
    as_json: AsJson = False,
) -> None:
    """What a pruning schedule saves on a decoder of any shape, on paper."""
    from radical_haystack.pruning.cost import DecoderShape, equal_keep, prefill_cost

    shape = DecoderShape(layers, hidden, heads, kv_heads, head_dim, intermediate)
    keep = equal_keep(_layers(schedule), keep_ratio)
    dense = prefill_cost(shape, visual, text)
    paper = prefill_cost(shape, visual, text, keep, pruned_from="input")
    executed = prefill_cost(shape, visual, text, keep, pruned_from="output")
    result = {
        "flops_saved_pct": paper.flops_saved_pct(dense),
        "kv_saved_pct": paper.kv_saved_pct(dense),
        "tflops_dense": dense.flops / 1e12,
        "tflops_pruned": paper.flops / 1e12,
        "flops_saved_pct_executed": executed.flops_saved_pct(dense),
        "tflops_pruned_executed": executed.flops / 1e12,
    }
    if as_json:
        return print_json(result)
    table = Table("", "dense", "pruned", "saved", title=f"Prefill of {visual} visual and {text} other tokens")
    table.add_row(
        "TFLOPs, counted as in the paper (a pruning layer as pruned already)",
        f"{dense.flops / 1e12:.2f}", f"{paper.flops / 1e12:.2f}", f"{paper.flops_saved_pct(dense):.1f}%",
    )  # fmt: skip
    table.add_row(
        "TFLOPs, as executed here (a pruning layer runs on all tokens)",
        f"{dense.flops / 1e12:.2f}", f"{executed.flops / 1e12:.2f}", f"{executed.flops_saved_pct(dense):.1f}%",
    )  # fmt: skip
    table.add_row(
        "KV cache, MB at 2 bytes per value",
        f"{dense.kv_bytes / 1e6:.1f}", f"{paper.kv_bytes / 1e6:.1f}", f"{paper.kv_saved_pct(dense):.1f}%",
    )  # fmt: skip
    Console().print(table)


def _layers(text: str) -> list[int]:
    try:
        return [int(layer) for layer in text.split(",")]
    except ValueError as error:
        raise ValueError(f"--schedule takes layers separated by commas, such as 7,22,24,29, not {text!r}.") from error
