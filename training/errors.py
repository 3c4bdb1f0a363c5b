# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
In which attributes the images that `catalog-vlm-tiny` wrongly puts first differ from the target: what to teach next.

Run: `python -m training.errors`. For composed queries a difference counts apart where the text says nothing of it, so
that it had to be seen in the reference (`kept`), and where the text asks for it (`changed`).
"""

import argparse
from collections import Counter

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from radical_haystack.catalog import FIELDS, BenchmarkItem, Outfit, benchmark_composed, benchmark_text
from radical_haystack.vlm import ListwiseVLM
from training.calibrate_vlm import pictures
from training.vlm_model import MODEL_FOLDER


def differences(outfit: Outfit, target: Outfit, reference: Outfit | None) -> list[str]:
    """The attributes of the target that an outfit does not have, one entry each."""
    found = []
    for slot, (garment, wanted) in enumerate(zip(outfit.garments, target.garments, strict=True)):
        for field in FIELDS:
            value = getattr(wanted, field)
            if getattr(garment, field) == value:
                continue
            if reference is None:
                found.append(field)
            else:
                kept = getattr(reference.garments[slot], field) == value
                found.append(f"{field} {'kept' if kept else 'changed'}")
    return found


def count_errors(vlm: ListwiseVLM, items: list[BenchmarkItem], name: str) -> tuple[int, Counter[str]]:
    """How many queries put the target first, and what the others' first images lack."""
    right, lacking = 0, Counter[str]()
    for item in track(items, name):
        images, reference = pictures(item)
        first = vlm.rank(item.query.text, images, reference, pruner=None).order[0]
        right += first == item.target_index
        shown = item.reference[0] if item.reference else None
        lacking.update(differences(item.candidates[first][0], item.candidates[item.target_index][0], shown))
    return right, lacking


def main() -> None:
    parser = argparse.ArgumentParser(description="What the errors of catalog-vlm-tiny differ from the target in.")
    parser.add_argument("--queries", type=int, default=60, help="of each kind")
    parser.add_argument("--seed", type=int, default=77)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    vlm = ListwiseVLM.load(str(MODEL_FOLDER))
    table = Table("queries", "right", "errors differ from the target in")
    for name, benchmark in (("text", benchmark_text), ("composed", benchmark_composed)):
        right, lacking = count_errors(vlm, benchmark(arguments.seed, arguments.queries), name)
        shown = ", ".join(f"{attribute} {count}" for attribute, count in lacking.most_common())
        table.add_row(name, f"{right} of {arguments.queries}", shown)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
