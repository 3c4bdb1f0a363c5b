# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Stage 1 of `catalog-vlm-tiny`: the vision encoder and the word embeddings.

Every visual token learns to name what it shows: linear heads read the attributes of the garment under it, and a sigmoid
loss draws it towards the mean input embedding of the words that describe that garment and away from other garments'
words; background and distractor tokens are drawn away from all of them. This makes the cosine of a visual token with a
query embedding meaningful, and keeps the evidence local: a pocket is known where it is seen.

Run: `python -m training.train_vision --minutes 12`. Resumes from `training/runs/vision.pt`.
"""

import argparse
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import Qwen2Tokenizer

from radical_haystack.catalog import (
    COLOURS,
    KINDS,
    LENGTHS,
    PATTERNS,
    Outfit,
    caption,
    describe,
    modification,
    mutate,
    sample_outfit,
)
from training.layout import SYSTEM, TAIL
from training.optim import build_optimizers
from training.packed import vision_features
from training.pool import RUNS, Pool, draw_pool
from training.vlm_model import build_model, build_tokenizer

ALL_KINDS = [kind for kinds in KINDS.values() for kind in kinds]
HEADS = {"kind": len(ALL_KINDS), "colour": len(COLOURS), "pattern": len(PATTERNS), "length": len(LENGTHS)}
POCKET_HEADS = {"kind": len(ALL_KINDS), "accent": len(COLOURS)}
CHECKPOINT = RUNS / "vision.pt"


def corpus(seed: int, count: int = 4000) -> list[str]:
    """Sentences of every template, for the tokenizer."""
    rng = random.Random(f"corpus/{seed}")
    texts = [SYSTEM, TAIL, "system\n", "user\n", "assistant\n", "Reference: ", "Query: ", "A: ", "C > A > F"] * 50
    for _ in range(count):
        outfit = sample_outfit(rng, world="train")
        texts.append(f"Query: {describe(outfit, rng, full=rng.random() < 0.7).text}")
        texts.append(f"Query: {caption(outfit, rng)}")
        target = mutate(outfit, rng, rng.choice((1, 2, 3)))
        texts.append(f"Query: {modification(outfit, target, rng).text}")
    return texts


def training_tokenizer(seed: int) -> Qwen2Tokenizer:
    """Build the tokenizer once per run folder: its ids are part of every later checkpoint."""
    folder = RUNS / "tokenizer"
    if not folder.exists():
        build_tokenizer(corpus(seed)).save_pretrained(folder)
    return Qwen2Tokenizer.from_pretrained(folder)


def attribute_targets(outfits: list[Outfit]) -> Tensor:
    """`(n, 2, 5)` class numbers of kind, colour, pattern, length, accent; -100 where there is none."""
    table = torch.full((len(outfits), 2, 5), -100)
    for row, outfit in enumerate(outfits):
        for column, garment in enumerate(outfit.garments):
            table[row, column] = torch.tensor(
                [
                    ALL_KINDS.index(garment.kind),
                    COLOURS.index(garment.colour),
                    PATTERNS.index(garment.pattern),
                    LENGTHS.index(garment.length),
                    COLOURS.index(garment.accent) if garment.accent else -100,
                ]
            )
    return table


class VisionHeads(nn.Module):
    """Linear probes on visual tokens, and the scale and bias of the sigmoid loss. Dropped after training."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.place = nn.Linear(hidden, 3)
        self.garment = nn.ModuleDict({name: nn.Linear(hidden, size) for name, size in HEADS.items()})
        self.pocket = nn.ModuleDict({name: nn.Linear(hidden, size) for name, size in POCKET_HEADS.items()})
        self.scale = nn.Parameter(torch.tensor(8.0))
        self.bias = nn.Parameter(torch.tensor(-4.0))


def phrase_embeddings(embedding: nn.Embedding, tokenizer, outfits: list[Outfit], rng: random.Random) -> Tensor:
    """Normalised mean input embedding of a description of each garment, `(n, 2, d)`; zeros where there is none."""
    texts = [
        f" {describe(Outfit((garment,)), rng, full=rng.random() < 0.6).text}" if garment else ""
        for outfit in outfits
        for garment in (*outfit.garments, None)[:2]
    ]
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    flat = torch.tensor([i for row in ids for i in row])
    offsets = torch.tensor([0, *np.cumsum([len(row) for row in ids])[:-1]])
    means = F.embedding_bag(flat, embedding.weight, offsets, mode="mean")
    return F.normalize(means, dim=-1, eps=1e-6).view(len(outfits), 2, -1)


def losses(model, heads: VisionHeads, tokenizer, pool: Pool, targets: Tensor, rows: np.ndarray, rng: random.Random):
    """All losses of one batch, and the share of garment tokens whose attributes are all read right."""
    embedding = model.model.language_model.embed_tokens
    images = torch.from_numpy(pool.images[rows]).permute(0, 3, 1, 2).float() / 127.5 - 1
    merged, *deepstack = vision_features(model.model.visual, images)
    residual = merged + sum(deepstack)
    labels = torch.from_numpy(pool.labels[rows]).long()
    garment_of = (labels - 1).div(2, rounding_mode="floor").clamp(min=0)
    wanted = targets[rows].gather(1, garment_of[..., None].expand(-1, -1, 5))
    on_garment, on_pocket = labels % 2 == 1, (labels > 0) & (labels % 2 == 0)
    place = on_garment.long() + 2 * on_pocket.long()
    parts = {"place": F.cross_entropy(heads.place(residual).flatten(0, 1), place.flatten())}
    right = torch.ones(int(on_garment.sum()), dtype=torch.bool)
    for number, (name, head) in enumerate(heads.garment.items()):
        logits, expected = head(residual[on_garment]), wanted[on_garment][:, number]
        parts[name] = F.cross_entropy(logits, expected)
        right &= logits.argmax(-1) == expected
    for name, number in (("kind", 0), ("accent", 4)):
        logits, expected = heads.pocket[name](residual[on_pocket]), wanted[on_pocket][:, number]
        parts[f"pocket_{name}"] = F.cross_entropy(logits, expected)
    pocket_right = (logits.argmax(-1) == expected).float().mean()
    outfits = [pool.outfits[r] for r in rows]
    phrases = phrase_embeddings(embedding, tokenizer, outfits, rng)
    parts["words"] = word_loss(merged, phrases, labels, garment_of, heads)
    weights = {"words": 2.0, "place": 0.5}
    return sum(weights.get(k, 1.0) * v for k, v in parts.items()), parts, right.float().mean(), pocket_right


def word_loss(merged: Tensor, phrases: Tensor, labels: Tensor, garment_of: Tensor, heads: VisionHeads) -> Tensor:
    """Sigmoid loss between every visual token and every garment description of the batch."""
    batch, _, hidden = merged.shape
    flat = phrases.reshape(-1, hidden)
    present = flat.norm(dim=-1) > 0.5
    own = torch.where(labels > 0, torch.arange(batch)[:, None] * 2 + garment_of, -1).flatten()
    cosine = F.normalize(merged.reshape(-1, hidden), dim=-1) @ flat.T
    positive = own[:, None] == torch.arange(2 * batch)
    target = positive.float()
    logits = heads.scale * cosine + heads.bias
    loss = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    on_garment = own >= 0
    pulled = loss[positive].mean()
    pushed = loss[on_garment][:, present][~positive[on_garment][:, present]].mean()
    silent = loss[~on_garment][:, present].mean()
    return pulled + pushed + silent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--families", type=int, default=400)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    RUNS.mkdir(exist_ok=True)
    tokenizer = training_tokenizer(arguments.seed)
    model = build_model(tokenizer, arguments.seed)
    pool = draw_pool("vision", arguments.families, arguments.seed, workers=2)
    targets = attribute_targets(pool.outfits)
    heads = VisionHeads(model.config.text_config.hidden_size)
    visual, embedding = model.model.visual, model.model.language_model.embed_tokens
    optimizers = build_optimizers(visual, arguments.lr, [*heads.parameters(), embedding.weight])
    spent, step = 0.0, 0
    if CHECKPOINT.exists():
        state = torch.load(CHECKPOINT, weights_only=True)
        model.load_state_dict(state["model"])
        heads.load_state_dict(state["heads"])
        for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        spent, step = state["spent"], state["step"]
    budget = arguments.minutes * 60
    rng = random.Random(f"vision/{arguments.seed}/{step}")
    order = np.random.default_rng(arguments.seed + step)
    began = last_report = last_save = time.monotonic()

    def save() -> None:
        state = {
            "model": model.state_dict(),
            "heads": heads.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in optimizers],
            "spent": spent + time.monotonic() - began,
            "step": step,
        }
        torch.save(state, CHECKPOINT.with_suffix(".part"))
        os.replace(CHECKPOINT.with_suffix(".part"), CHECKPOINT)

    while (share := (spent + time.monotonic() - began) / budget) < 1:
        factor = min(1.0, (step + 1) / 50) * min(1.0, (1 - share) / 0.5 + 0.01)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * factor
        rows = order.integers(0, len(pool.images), arguments.batch)
        total, parts, right, pocket_right = losses(model, heads, tokenizer, pool, targets, rows, rng)
        total.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        step += 1
        now = time.monotonic()
        if now - last_report > 15:
            last_report = now
            shown = " ".join(f"{name} {value.item():.3f}" for name, value in parts.items())
            print(f"{share:5.1%} step {step} {shown} | tokens right {right:.3f} pockets {pocket_right:.3f}", flush=True)
        if now - last_save > 120:
            last_save = now
            save()
    save()
    print(f"done: {step} steps of {arguments.batch} images, saved {CHECKPOINT.name}")


if __name__ == "__main__":
    main()
