# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Tables 2, 9 and 10: FLOPs and KV cache on paper, seconds and memory as measured."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.base import METHODS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import ratio_text
from radical_haystack.evaluation.reproductions.memory import peak_bytes
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, number
from radical_haystack.evaluation.results import Results, Variant
from radical_haystack.evaluation.running import load_candidates, load_reference
from radical_haystack.pruning import PrefillCost, PruningSchedule, build_pruner, prefill_cost
from radical_haystack.pruning.pruners import ScorePruner, keep_count
from radical_haystack.pruning.pruners.base import BudgetPruner

_LONGEST = 20_000
_PUBLISHED_MODEL = "Qwen/Qwen3-VL-4B-Instruct"


@dataclass(frozen=True)
class Savings:
    """
    What a method saves on paper, of the decoder of the paper's model and its prompt on Flickr30K.

    :param flops_pct: FLOPs of the prefill, a pruning layer counted as pruned already, in percent.
    :param flops_pct_executed: The same with a pruning layer running on all tokens.
    :param kv_pct: KV cache, in percent.
    """

    flops_pct: float
    flops_pct_executed: float
    kv_pct: float


class Efficiency(Reproduction):
    """What pruning saves."""

    name = "efficiency"
    number = "tables 2, 9 and 10"
    shows = "What pruning saves: computation and KV cache on paper, seconds and memory where it is run."
    comparison = METHODS
    methods = ("dense", "radical", "fastv", "pyramiddrop", "dart")

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(METHODS)
        visual, text = published_prompt()
        savings = {
            (method, ratio): found
            for method, ratio in results.variants
            if (found := analytic_savings(method, ratio)) is not None
        }
        memory = _memory(session, results)
        notes = (
            f"On paper: a prompt of {visual:,} visual and {text} other tokens, the length at which the dense prefill "
            f"costs the paper's {published.DENSE_TFLOPS} TFLOPs. Counted as the paper does, a pruning layer is pruned "
            "already; as executed it still runs on all tokens. SparseVLM's budget at a layer depends on the prompt.",
            f"The paper's measured speed-up of RaDiCal is {published.SPEEDUP[published.MODEL]:.2f}x for "
            f"{published.MODEL} and {published.SPEEDUP['InternVL2.5-8B']:.2f}x for InternVL2.5-8B, on GPUs.",
            "Seconds are medians per query: own encoding is what a method spends on the vision encoder beyond encoding "
            "every image once, prefill is the decoder with all that pruning adds. Peak memory is that of one query "
            "beyond the model and the encoded images; where all tokens pass the first layers, those "
            "set the peak, and methods that resize encode images in it.",
        )
        values = {
            "prompt": {"visual": visual, "text": text},
            "on_paper": [{"method": m, "keep_ratio": r, **vars(found)} for (m, r), found in savings.items()],
            "measured": [results.row(*variant).to_dict() for variant in results.variants],
            "peak_bytes": [{"method": m, "keep_ratio": r, "bytes": found} for (m, r), found in memory.items()],
        }
        return Outcome((_paper_sheet(savings), _measured_sheet(session, results, memory)), notes, values=values)


def published_prompt() -> tuple[int, int]:
    """The visual and the other tokens of the paper's prompt on Flickr30K, from its dense FLOPs and visual share."""
    lengths = range(1, _LONGEST)
    length = lengths[bisect_left(lengths, published.DENSE_TFLOPS * 1e12, key=lambda tokens: _cost(tokens, 0, {}).flops)]
    visual = round(published.VISUAL_SHARE * length)
    return visual, length - visual


def analytic_savings(method: str, keep_ratio: float) -> Savings | None:
    """
    What a method saves on paper, configured as in the paper for its 36 layers.

    :param method: One of `PRUNERS`.
    :param keep_ratio: The keep ratio.
    :returns: `None` if the number of tokens it keeps depends on the prompt, or it keeps them all.
    """
    schedule = PruningSchedule.published(_PUBLISHED_MODEL, keep_ratio)
    pruner = build_pruner(method, schedule, keep_ratio=keep_ratio, depth=published.SHAPE.layers)
    visual, text = published_prompt()
    dense = _cost(visual, text, {})
    keep: Mapping[int, float] = {}
    if isinstance(pruner, ScorePruner):
        keep = {layer: pruner.keep_ratio_at(layer) for layer in pruner.layers}
    elif isinstance(pruner, BudgetPruner):
        visual = keep_count(keep_ratio, visual)
    else:
        return None
    paper, executed = _cost(visual, text, keep, as_in_paper=True), _cost(visual, text, keep)
    return Savings(paper.flops_saved_pct(dense), executed.flops_saved_pct(dense), paper.kv_saved_pct(dense))


def _cost(visual: int, text: int, keep: Mapping[int, float], *, as_in_paper: bool = False) -> PrefillCost:
    return prefill_cost(published.SHAPE, visual, text, keep, pruned_from="input" if as_in_paper else "output")


def _paper_sheet(savings: Mapping[Variant, Savings]) -> Sheet:
    rows = []
    for (method, ratio), found in savings.items():
        known = ratio == published.KEEP_RATIO
        rows.append((
            method,
            ratio_text(ratio),
            number(found.flops_pct),
            number(published.FLOPS_SAVED.get(method) if known else None),
            number(found.flops_pct_executed),
            number(found.kv_pct),
            number(published.KV_SAVED.get(method) if known else None),
        ))  # fmt: skip
    columns = ("method", "R", "FLOPs saved %", "paper", "as executed %", "KV cache saved %", "paper")
    return Sheet(f"On paper: the decoder of {published.MODEL}", columns, tuple(rows), name="paper")


def _measured_sheet(session: Session, results: Results, memory: Mapping[Variant, int]) -> Sheet:
    rows = []
    for variant in results.variants:
        row = results.row(*variant)
        rows.append((
            variant[0],
            ratio_text(variant[1]),
            number(row.flops_saved_pct),
            number(row.flops_saved_pct_executed),
            number(row.kv_saved_pct),
            number(1000 * row.encode_seconds, 0),
            number(1000 * row.prefill_seconds, 0),
            number(row.prefill_speedup, 2, "x"),
            number(memory[variant] / 2**20) if variant in memory else MISSING,
        ))  # fmt: skip
    columns = (
        "method", "R", "FLOPs saved %", "as executed %", "KV cache saved %", "own encoding ms", "prefill ms",
        "speed-up", "peak MiB",
    )  # fmt: skip
    model, device = session.settings.models[0], session.vlm().device.type
    return Sheet(f"Measured: {model} on {device}", columns, tuple(rows), name="measured")


def _memory(session: Session, results: Results) -> dict[Variant, int]:
    """Peak memory of ranking the first query by each method."""
    vlm, dataset = session.vlm(), session.dataset(results.experiment)
    first = results.records[0]
    query = next(query for query in dataset.queries if query.id == first.query)
    images = list(load_candidates(dataset, first.candidates)[0].values())
    reference = load_reference(dataset, query)
    size, step = results.experiment.window_size, results.experiment.window_step
    methods = {method.name: method for method in results.experiment.methods}
    found: dict[Variant, int] = {}
    for done, (name, ratio) in enumerate(results.variants, start=1):
        pruner = methods[name].build(vlm, ratio)
        vlm.encode(images, attention=methods[name].needs_encoder_attention)
        if reference is not None:
            vlm.encode([reference])
        rank = partial(vlm.rank, query.text, images, reference, pruner=pruner, window_size=size, window_step=step)
        found[name, ratio] = peak_bytes(vlm.device, rank)
        session.progress("efficiency: memory", done, len(results.variants))
    return found
