# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
The values of arXiv 2609.00667 that this package knows, to stand beside measured ones. What is not here is not known.

MRR@10 and savings are in percent.
"""

from collections.abc import Mapping

from radical_haystack.pruning import DecoderShape

SOURCE = "arXiv 2609.00667"
MODEL = "Qwen3-VL-4B"

KEEP_RATIO = 0.2
"""The keep ratio of all values here."""

MAIN_MRR: Mapping[str, Mapping[str, float]] = {
    "flickr30k": {
        "dense": 84.04,
        "fastv": 72.99,
        "pyramiddrop": 79.43,
        "sparsevlm": 73.90,
        "dart": 65.56,
        "visionzip": 74.03,
        "lowres": 80.03,
        "radical": 83.98,
    },
    "mscoco": {
        "dense": 58.94,
        "fastv": 49.84,
        "pyramiddrop": 55.41,
        "sparsevlm": 54.64,
        "dart": 45.08,
        "visionzip": 51.07,
        "lowres": 55.64,
        "radical": 59.09,
    },
    "fashioniq": {  # over the queries whose target is among the candidates
        "dense": 41.94,
        "fastv": 21.84,
        "pyramiddrop": 36.12,
        "sparsevlm": 35.51,
        "dart": 28.97,
        "visionzip": 29.41,
        "lowres": 36.55,
        "radical": 39.79,
    },
}
"""Table 1: MRR@10 by data set and method."""

DATA_NAMES = {"flickr30k": "Flickr30K", "mscoco": "MSCOCO", "fashioniq": "FashionIQ, conditional"}

RETRIEVER_MRR: Mapping[str, Mapping[str, float]] = {
    "qwen": {"dense": 84.04, "radical": 83.98},
    "jina": {"dense": 84.90, "radical": 85.38},
    "siglip2": {"dense": 85.07, "radical": 85.03},
}
"""Table 11: MRR@10 on Flickr30K by family of the first stage and method."""

SHAPE = DecoderShape(layers=36, hidden=2560, heads=32, kv_heads=8, head_dim=128, intermediate=9728)
"""The decoder of `MODEL`, without its output head."""
DENSE_TFLOPS = 18.68
"""Of the unpruned prefill on Flickr30K."""
VISUAL_SHARE = 0.924
"""Of the prompt's tokens."""
FLOPS_SAVED: Mapping[str, float] = {"radical": 43.8, "pyramiddrop": 53.3, "fastv": 70.8, "dart": 73.4}
KV_SAVED: Mapping[str, float] = {"radical": 39.0, "pyramiddrop": 50.1, "fastv": 67.4, "dart": 70.0}
SPEEDUP: Mapping[str, float] = {MODEL: 1.28, "InternVL2.5-8B": 1.45}
"""Measured, RaDiCal against dense."""

KNOWN_ALPHAS: Mapping[int, float] = {
    4: 0.63, 7: 0.84, 12: 0.83, 14: 0.82, 15: 0.67, 17: 0.50, 21: 0.50, 22: 0.43, 24: 0.22, 25: 0.18, 26: 0.03,
    27: 0.04, 29: 0.00, 30: 0.20, 33: 0.10, 34: 0.39,
}  # fmt: skip
"""Trust coefficients of `MODEL` by layer; those of the other layers are not published."""
SCHEDULES: Mapping[tuple[int, int], tuple[int, ...]] = {
    (4, 2): (7, 22, 24, 29),
    (3, 2): (7, 22, 29),
    (4, 1): (7, 22, 24, 29),
    (4, 3): (4, 7, 22, 29),
}
"""The pruning layers of `MODEL` by their number K and their least distance."""
SCHEDULES_OF_OTHERS: Mapping[str, tuple[int, ...]] = {
    "Qwen3-VL-8B": (4, 7, 21, 29),
    "InternVL2.5-8B": (8, 22, 25, 27),
}
"""K = 4, gap 2."""

RELIABILITY_PEARSON = 0.87
"""Figure 2: correlation of a layer's reliability with 1 - H_norm."""


def reference_data(data: str) -> str:
    """
    The data set whose published values stand beside measured ones.

    :param data: The data set that is measured; one without published values is compared with Flickr30K.
    """
    return data if data in MAIN_MRR else "flickr30k"


def setting(data: str) -> str:
    """
    What the published values are of, in words.

    :param data: The data set that is measured.
    """
    return f"{DATA_NAMES[reference_data(data)]}, {MODEL}"


def column(data: str) -> str:
    """
    The heading of published values.

    :param data: The data set that is measured.
    """
    return f"paper ({setting(data)})"


def main_mrr(data: str, method: str, keep_ratio: float) -> float | None:
    """
    The published MRR@10 of a method; `None` if it is not known.

    :param data: The data set that is measured.
    :param method: The method's name.
    :param keep_ratio: The keep ratio; 1 for dense.
    """
    known = method == "dense" or keep_ratio == KEEP_RATIO
    return MAIN_MRR[reference_data(data)].get(method) if known else None


def retriever_mrr(first_stage: str, method: str) -> float | None:
    """
    The published MRR@10 with a first stage; `None` if it is not known.

    :param first_stage: Its name; what counts is whether a known family is named in it.
    :param method: The method's name.
    """
    for family, values in RETRIEVER_MRR.items():
        if family in first_stage.lower():
            return values.get(method)
    return None
