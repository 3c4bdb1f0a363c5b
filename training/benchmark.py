# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The held-out benchmark in packed form, to watch a training run; `evaluate_vlm.py` measures through the package."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from radical_haystack.catalog import benchmark_composed, benchmark_text, draw
from training.layout import Layout
from training.packed import PackedDecoder, Segment, vision_features
from training.pool import RUNS
from training.vlm_model import IMAGE_SIDE, TOKENS_PER_IMAGE

WATCH_SEED = 1000


@dataclass
class Packed:
    """One item: its query, the features of its candidates (the reference last, if any) and the target."""

    text: str
    features: list[Tensor]
    composed: bool
    target: int


def item_images(item) -> np.ndarray:
    """Pixels of all candidates, and of the reference behind them."""
    shown = [*item.candidates, *([item.reference] if item.reference else [])]
    size = (IMAGE_SIDE, IMAGE_SIDE)
    return np.stack([np.asarray(draw(o, s).image.resize(size, Image.Resampling.BICUBIC)) for o, s in shown])


def load_benchmark(model, count: int) -> list[Packed]:
    """Draw `count` text and `count` composed items (or load them) and encode them."""
    items = [*benchmark_text(WATCH_SEED, count), *benchmark_composed(WATCH_SEED, count)]
    path = RUNS / f"watch-{count}.npz"
    if not path.exists():
        with ProcessPoolExecutor(2) as executor:
            np.savez(path, *executor.map(item_images, items))
    stored = np.load(path)
    packed = []
    with torch.no_grad():
        for number, item in enumerate(items):
            pixels = torch.from_numpy(stored[f"arr_{number}"]).permute(0, 3, 1, 2).float() / 127.5 - 1
            features = vision_features(model.model.visual, pixels)
            packed.append(Packed(f" {item.query.text}", features, item.reference is not None, item.target_index))
    return packed


@torch.no_grad()
def evaluate(model, layout: Layout, benchmark: list[Packed]) -> str:
    """R@1 and MRR@10 of text and composed items."""
    decoder = PackedDecoder(model)
    ranks: dict[bool, list[int]] = {False: [], True: []}
    for item in benchmark:
        count = len(item.features[0]) - item.composed
        tokens = torch.arange(TOKENS_PER_IMAGE).expand(1, count, -1)
        letters = torch.arange(count)[None]
        ids, positions, index = layout.prefix(letters, tokens)
        hidden = item.features[0].shape[-1]
        prefix = Segment(ids, positions, [f[:count].reshape(1, 1, -1, hidden) for f in item.features], index)
        reference = tokens[0, :1] if item.composed else None
        q_ids, q_positions, q_index, end, _ = layout.segments(
            [layout.encode(item.text)], layout.next_position(count), reference=reference, answers=[[]]
        )
        visual = [f[count:][None] for f in item.features] if item.composed else None
        group = Segment(q_ids[None], q_positions[:, None], visual, q_index[None] if item.composed else None)
        states, _, _ = decoder.forward(prefix, [group])
        logits = model.lm_head(states[0][0, 0, end[0]])[torch.tensor(layout.letters)[:count]]
        ranks[item.composed].append(int((logits > logits[item.target]).sum()) + 1)
    parts = []
    for name, values in (("text", ranks[False]), ("composed", ranks[True])):
        first = np.mean([rank == 1 for rank in values])
        mrr = np.mean([1 / rank if rank <= 10 else 0 for rank in values])
        parts.append(f"{name} R@1 {first:.3f} MRR@10 {mrr:.3f}")
    return ", ".join(parts)
