# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Measure `catalog-siglip-tiny`: recall over a held-out gallery, and what it leaves to the reranker on hard sets.

Run: `python -m training.evaluate_siglip`.
"""

import argparse
import random
from pathlib import Path

import numpy as np
from PIL import Image
from rich.progress import track
from sentence_transformers import SentenceTransformer

from radical_haystack.catalog import Outfit, Scene, benchmark_text, describe, draw, gallery_items
from training.siglip_model import IMAGE_SIDE
from training.train_siglip import FOLDER


def draw_all(cases: list[tuple[Outfit, Scene]], label: str) -> list[Image.Image]:
    # Kept at the encoder's own size: thousands of full pictures would fill the memory.
    side = (IMAGE_SIDE, IMAGE_SIDE)
    return [draw(outfit, scene).image.resize(side) for outfit, scene in track(cases, f"drawing {label}")]


def gallery_recall(encoder: SentenceTransformer, count: int) -> dict[str, float]:
    """Recall of the described picture among all pictures of the gallery."""
    items = gallery_items(count)
    rng = random.Random("siglip-gallery")
    queries = [describe(item.outfit, rng).text for item in items]
    pictures = encoder.encode(draw_all([(item.outfit, item.scene) for item in items], "gallery"))
    scores = encoder.encode(queries) @ pictures.T
    ranks = (scores > np.diag(scores)[:, None]).sum(axis=1)
    return {f"R@{k}": float((ranks < k).mean()) for k in (1, 5, 10, 20, 50)}


def hard_set_metrics(encoder: SentenceTransformer, count: int) -> dict[str, float]:
    """R@1 and MRR@10 over hard candidate sets of 20."""
    items = benchmark_text(0, count)
    pictures = encoder.encode(draw_all([case for item in items for case in item.candidates], "hard sets"))
    texts = encoder.encode([item.query.text for item in items])
    scores = np.einsum("qd,qcd->qc", texts, pictures.reshape(len(items), -1, texts.shape[1]))
    targets = np.array([item.target_index for item in items])
    ranks = (scores > scores[np.arange(len(items)), targets][:, None]).sum(axis=1)
    return {"R@1": float((ranks == 0).mean()), "MRR@10": float(np.where(ranks < 10, 1 / (ranks + 1), 0).mean())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--gallery", type=int, default=2000)
    parser.add_argument("--sets", type=int, default=200)
    arguments = parser.parse_args()
    model = SentenceTransformer(str(arguments.folder), device="cpu")
    print(f"gallery of {arguments.gallery}:", gallery_recall(model, arguments.gallery))
    print(f"{arguments.sets} hard sets of 20:", hard_set_metrics(model, arguments.sets))
