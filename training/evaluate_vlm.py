# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Measures `catalog-vlm-tiny` on held-out worlds through the package itself: `python -m training.evaluate_vlm`.

Prints one line per claim of the model card, with what the project wants of it.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from radical_haystack.catalog import (
    BenchmarkItem,
    benchmark_composed,
    benchmark_text,
    draw,
    evidence_tokens,
    token_labels,
)
from radical_haystack.pruning import LayerObservation, Pruner, RandomPruner, ScorePruner
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.calibration import EntropyProbe
from training.calibrate_vlm import pictures
from training.vlm_model import GRID, MODEL_FOLDER

SEED = 2026
PrunerOf = Callable[[BenchmarkItem], str | Pruner | None]
KEEP = 0.2


class TruthPruner(ScorePruner):
    """
    Keeps the world's own evidence after one layer: pockets first, then the queried garments' other tokens.

    :param layer: After which layer.
    :param scores: Priority of every candidate token, `(V,)`.
    """

    def __init__(self, layer: int, scores: Tensor) -> None:
        self._layer, self._scores = layer, scores

    @property
    def layers(self) -> tuple[int, ...]:
        return (self._layer,)

    def keep_ratio_at(self, layer: int) -> float:
        return KEEP

    def score(self, observation: LayerObservation) -> Tensor:
        return self._scores[observation.active]


def truth(item: BenchmarkItem) -> tuple[Tensor, Tensor]:
    """Per candidate token: whether it shows a queried garment, and its priority for `TruthPruner`."""
    generator = torch.Generator().manual_seed(0)
    shown, priority = [], []
    for outfit, scene in item.candidates:
        masks = draw(outfit, scene).masks
        garments = item.query.garment_indices(outfit)
        evidence = torch.from_numpy(evidence_tokens(masks, garments, GRID, GRID).reshape(-1))
        labels = torch.from_numpy(token_labels(masks, GRID, GRID).reshape(-1).astype(np.int64))
        pocket = (labels > 0) & (labels % 2 == 0)
        # Random within a garment, and as many from the smaller garment as from the larger one.
        share = torch.zeros(len(evidence))
        for garment in garments:
            on = evidence & ((labels - 1).div(2, rounding_mode="floor") == garment)
            share[on] = 1 - torch.randperm(int(on.sum()), generator=generator) / 64
        shown.append(evidence)
        priority.append(evidence * (share + 2.0 * pocket))
    return torch.cat(shown), torch.cat(priority)


def rank_of_target(vlm: ListwiseVLM, item: BenchmarkItem, pruner: str | Pruner | None, **options) -> int:
    images, reference = pictures(item)
    return vlm.rank(item.query.text, images, reference, pruner=pruner, **options).order.index(item.target_index) + 1


def summary(ranks: Sequence[int]) -> tuple[float, float]:
    """R@1 and MRR@10."""
    return float(np.mean([rank == 1 for rank in ranks])), float(np.mean([1 / r if r <= 10 else 0 for r in ranks]))


def at_position(item: BenchmarkItem, position: int) -> BenchmarkItem:
    """The same item with its target moved to a place in the prompt."""
    order = [k for k in range(len(item.candidates)) if k != item.target_index]
    order.insert(position, item.target_index)
    return BenchmarkItem(
        item.query,
        tuple(item.candidates[k] for k in order),
        tuple(item.relevances[k] for k in order),
        position,
        item.reference,
    )


def word_alignment(vlm: ListwiseVLM, items: Sequence[BenchmarkItem]) -> float:
    """Share of queries whose evidence tokens are on average closer to the query embedding than the other tokens."""
    embedding = vlm.model.get_input_embeddings()
    won = []
    for item in track(items, "cosine with the query"):
        images, _ = pictures(item)
        tokens = torch.cat([encoding.tokens for encoding in vlm.encode(images)])
        ids = vlm.processor.tokenizer(f" {item.query.text}", return_tensors="pt")["input_ids"]
        cosine = F.normalize(tokens, dim=-1) @ F.normalize(embedding(ids)[0].mean(0), dim=0)
        evidence, _ = truth(item)
        won.append(bool(cosine[evidence].mean() > cosine[~evidence].mean()))
    return float(np.mean(won))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure catalog-vlm-tiny on held-out worlds.")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--positions", type=int, default=30, help="queries for the position check, 20 passes each")
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    vlm = ListwiseVLM.load(str(MODEL_FOLDER), vision_cache_bytes=2**31)
    text = benchmark_text(SEED, arguments.queries)
    composed = benchmark_composed(SEED, arguments.queries)
    middle = vlm.model.config.text_config.num_hidden_layers // 2 - 1
    table = Table("measured on the held-out world, N = 20", "wanted", "found")

    def ranks(items: Sequence[BenchmarkItem], name: str, pruner: PrunerOf, **options):
        return summary([rank_of_target(vlm, item, pruner(item), **options) for item in track(items, name)])

    dense = ranks(text, "text, dense", lambda _: None)
    table.add_row("text, dense: R@1 / MRR@10", ">= 0.90 / 0.94", f"{dense[0]:.3f} / {dense[1]:.3f}")
    dense_composed = ranks(composed, "composed, dense", lambda _: None)
    table.add_row(
        "composed, dense: R@1 / MRR@10", ">= 0.85 / 0.90", f"{dense_composed[0]:.3f} / {dense_composed[1]:.3f}"
    )
    written = ranks(text[: arguments.queries // 2], "text, generated", lambda _: None, scoring="generate")
    reference = summary([rank_of_target(vlm, item, None) for item in text[: arguments.queries // 2]])
    table.add_row("text, generated: R@1 (logits on the same)", "within 0.03", f"{written[0]:.3f} ({reference[0]:.3f})")
    for name, make in (
        ("20% truth after the middle layer", lambda item: TruthPruner(middle, truth(item)[1])),
        ("20% random after the middle layer", lambda _: RandomPruner([middle], KEEP)),
    ):
        found = [ranks(items, name, make)[1] for items in (text, composed)]
        wanted = "within 0.02 of dense" if "truth" in name else ">= 0.05 below dense"
        table.add_row(f"{name}: MRR@10 text, composed", wanted, f"{found[0]:.3f}, {found[1]:.3f}")
    for name in ("radical", "random"):
        for ratio in (0.2, 0.1):
            found = [
                ranks(items, f"{name} {ratio}", lambda _, name=name: name, keep_ratio=ratio)[1]
                for items in (text, composed)
            ]
            table.add_row(f"{name}, R = {ratio}: MRR@10 text, composed", "reported", f"{found[0]:.3f}, {found[1]:.3f}")
    probe = EntropyProbe(vlm.model.config.text_config.num_hidden_layers)
    profiles = []
    for item in text[:10]:
        images, _ = pictures(item)
        profiles.append(EntropyProbe.entropies(vlm.rank(item.query.text, images, pruner=probe).traces[0]))
    entropies = np.mean(profiles, axis=0)
    table.add_row("H_norm: max - min", ">= 0.07", f"{np.ptp(entropies):.3f}  {' '.join(f'{e:.3f}' for e in entropies)}")
    table.add_row("cosine: evidence above the rest", ">= 0.80 of queries", f"{word_alignment(vlm, text):.3f}")
    by_position = [
        summary([rank_of_target(vlm, at_position(item, place), None) for item in text[: arguments.positions]])[0]
        for place in track(range(20), "target's position")
    ]
    spread = f"{min(by_position):.3f} to {max(by_position):.3f}"
    table.add_row("R@1 over the target's position", "spread <= 0.08", spread)
    images, _ = pictures(text[0])
    vlm.rank(text[0].query.text, images, pruner=None)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        vlm.rank(text[0].query.text, images, pruner=None)
        seconds.append(time.perf_counter() - began)
    fresh = ListwiseVLM.load(str(MODEL_FOLDER))
    began = time.perf_counter()
    fresh.rank(text[0].query.text, images, pruner=None)
    cold = time.perf_counter() - began
    table.add_row("one listwise pass (images seen before / new)", "< 1 s", f"{np.median(seconds):.2f} s / {cold:.2f} s")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
