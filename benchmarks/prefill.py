# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Prefill, dense against pruned: wall-clock ratio, analytic ratio and peak memory, on a Qwen3-VL-shaped random model.

Run it on a quiet machine: `python -m benchmarks.prefill` (some four minutes on two cores). The decoder has 36 layers as
Qwen3-VL-4B has, pruned by the schedule published for that model; its width is small enough for a CPU, with few heads,
so that attention and linear layers share the work as they do there. Vision outputs are random and passed in, so only
the decoder is timed. Repetitions of all variants are interleaved, so that a slow minute hits all of them; ratios are of
medians. The analytic ratio counts causal attention in full, as flop counters do; a kernel that skips the upper half
saves less by pruning. Peak memory is measured in one process per variant, above what was held before the pass.
"""

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

from radical_haystack.pruning import DecoderShape, Pruner, PruningSchedule, RadicalPruner, RandomPruner, prefill_cost
from radical_haystack.vlm.families import ImageEncoding, family_of
from radical_haystack.vlm.prompt import PromptLayout
from radical_haystack.vlm.pruned import prune

PUBLISHED = "Qwen/Qwen3-VL-4B-Instruct"
VARIANTS = ("dense", "radical_0.2", "radical_0.1", "random_0.2", "random_0.1")
IMAGE, MARKER = 999, 998
TEXT_PER_CANDIDATE, TEXT_BEFORE, TEXT_AFTER = 6, 30, 40
SHAPE = DecoderShape(layers=36, hidden=768, heads=4, kv_heads=1, head_dim=64, intermediate=3072, vocab=1000)
"""Attention does 13% of the dense pass's FLOPs, as in Qwen3-VL-4B on a prompt of this length (15%)."""


@dataclass(frozen=True)
class Case:
    """One prompt and the model it goes through."""

    model: Any
    inputs: dict[str, Any]
    layout: PromptLayout
    device: torch.device


def build_case(candidates: int, grid: int, device: torch.device, dtype: torch.dtype) -> Case:
    """A random model and a prompt of `candidates` images with `grid * grid` visual tokens each."""
    torch.manual_seed(0)
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": SHAPE.vocab,
            "hidden_size": SHAPE.hidden,
            "intermediate_size": SHAPE.intermediate,
            "num_hidden_layers": SHAPE.layers,
            "num_attention_heads": SHAPE.heads,
            "num_key_value_heads": SHAPE.kv_heads,
            "head_dim": SHAPE.head_dim,
            "rope_parameters": {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [12, 10, 10]},
        },
        vision_config={
            "depth": 3,
            "hidden_size": 32,
            "num_heads": 2,
            "intermediate_size": 32,
            "out_hidden_size": SHAPE.hidden,
            "deepstack_visual_indexes": [0, 1, 2],
        },
        image_token_id=IMAGE,
        vision_start_token_id=MARKER,
        vision_end_token_id=MARKER - 1,
        video_token_id=MARKER - 2,
    )
    with torch.device(device):
        model: Any = Qwen3VLForConditionalGeneration(config).eval()
    model = model.to(dtype)
    generator = torch.Generator().manual_seed(0)

    def words(count: int) -> list[int]:
        return torch.randint(0, 900, (count,), generator=generator).tolist()

    def features() -> Tensor:
        return torch.randn(grid * grid, SHAPE.hidden, generator=generator).to(device, dtype)

    ids = words(TEXT_BEFORE)
    for _ in range(candidates):
        ids += [*words(TEXT_PER_CANDIDATE), MARKER, *[IMAGE] * grid**2, MARKER - 1]
    input_ids = torch.tensor([ids + words(TEXT_AFTER)])
    patches = torch.tensor([1, 2 * grid, 2 * grid])
    images = [ImageEncoding(patches, features(), (features(), features(), features())) for _ in range(candidates)]
    types = (input_ids == IMAGE).long().to(device)
    inputs = {"input_ids": input_ids.to(device), **family_of(model).vision_inputs(images, types), "logits_to_keep": 1}
    layout = PromptLayout.from_input_ids(input_ids, IMAGE, marker_ids=[MARKER, MARKER - 1])
    return Case(model, inputs, layout, device)


def schedule_of(variant: str) -> PruningSchedule | None:
    """The schedule behind a variant's name."""
    return None if variant == "dense" else PruningSchedule.published(PUBLISHED, float(variant.split("_")[1]))


def pruner_of(variant: str) -> Pruner | None:
    """The pruner behind a variant's name."""
    schedule = schedule_of(variant)
    if schedule is None:
        return None
    return (
        RadicalPruner(schedule) if variant.startswith("radical") else RandomPruner(schedule.layers, schedule.keep_ratio)
    )


@torch.inference_mode()
def seconds(case: Case, variant: str) -> float:
    """One prefill, in wall-clock seconds."""
    gc.collect()
    _wait(case.device)
    start = time.perf_counter()
    with prune(case.model, pruner_of(variant), case.layout):
        case.model(**case.inputs)
    _wait(case.device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_bytes(case: Case, variant: str) -> int:
    """The most memory one prefill needs above what was held before it."""
    gc.collect()
    if case.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(case.device)
        before = torch.cuda.memory_allocated(case.device)
        seconds(case, variant)
        return torch.cuda.max_memory_allocated(case.device) - before
    # Resets the high-water mark to what is held now; without it, building the model would count.
    Path("/proc/self/clear_refs").write_text("5")
    before = _high_water()
    seconds(case, variant)
    return _high_water() - before


def _high_water() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_in_own_process(variant: str, arguments: argparse.Namespace) -> int:
    """`peak_bytes` of a variant, measured by this script in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.prefill", "--memory-of", variant]
    command += ["--candidates", str(arguments.candidates), "--grid", str(arguments.grid)]
    command += ["--device", arguments.device, "--dtype", arguments.dtype]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(result.stdout.split()[-1])


def measure(case: Case, repetitions: int) -> dict[str, list[float]]:
    """Seconds of every variant, repetitions interleaved; a first round warms up and does not count."""
    times: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for repetition in range(repetitions + 1):
        for variant in VARIANTS:
            taken = seconds(case, variant)
            if repetition:
                times[variant].append(taken)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return times


def results(arguments: argparse.Namespace) -> dict[str, Any]:
    """All figures of one run."""
    case = build_case(arguments.candidates, arguments.grid, torch.device(arguments.device), _dtype(arguments))
    visual = case.layout.candidate_positions.numel()
    text = case.layout.length - visual
    rows = case.layout.text_positions.numel()
    times = measure(case, arguments.repetitions)
    median = {variant: statistics.median(taken) for variant, taken in times.items()}
    costs = {
        variant: prefill_cost(
            SHAPE, visual, text, schedule_of(variant), scoring_rows=rows if variant.startswith("radical") else 0
        )
        for variant in VARIANTS
    }
    variants = {}
    for variant in VARIANTS:
        wall, analytic = median["dense"] / median[variant], costs["dense"].flops / costs[variant].flops
        variants[variant] = {
            "seconds": round(median[variant], 4),
            "spread": round(max(times[variant]) / min(times[variant]), 3),
            "wall_ratio": round(wall, 3),
            "analytic_ratio": round(analytic, 3),
            "reached_pct": round(100 * wall / analytic, 1),
            "kv_saved_pct": round(costs[variant].kv_saved_pct(costs["dense"]), 1),
            "peak_mib": round(peak_in_own_process(variant, arguments) / 2**20, 1),
        }
    return {
        "visual_tokens": visual,
        "text_tokens": text,
        "layers": SHAPE.layers,
        "repetitions": arguments.repetitions,
        "threads": torch.get_num_threads(),
        "device": arguments.device,
        "dtype": arguments.dtype,
        "load_average": round(os.getloadavg()[0], 2),
        "variants": variants,
    }


def _dtype(arguments: argparse.Namespace) -> torch.dtype:
    dtype = getattr(torch, arguments.dtype)
    assert isinstance(dtype, torch.dtype)
    return dtype


def show(figures: dict[str, Any]) -> None:
    """The figures as a table."""
    print(
        f"{figures['visual_tokens']} visual + {figures['text_tokens']} text tokens, {figures['layers']} layers, "
        f"{figures['dtype']} on {figures['device']}, {figures['threads']} threads, median of "
        f"{figures['repetitions']}, load average {figures['load_average']}"
    )
    print(
        f"{'':12}{'seconds':>9}{'max/min':>9}{'wall':>8}{'analytic':>10}{'reached':>9}{'peak MiB':>10}{'KV saved':>10}"
    )
    for name, row in figures["variants"].items():
        print(
            f"{name:12}{row['seconds']:9.3f}{row['spread']:9.2f}{row['wall_ratio']:7.2f}x{row['analytic_ratio']:9.2f}x"
            f"{row['reached_pct']:8.1f}%{row['peak_mib']:10.1f}{row['kv_saved_pct']:9.1f}%"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--grid", type=int, default=10, help="visual tokens along one side of a candidate")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--memory-of", choices=VARIANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        case = build_case(arguments.candidates, arguments.grid, torch.device(arguments.device), _dtype(arguments))
        print(peak_bytes(case, arguments.memory_of))
        return
    figures = results(arguments)
    print(json.dumps(figures, indent=2)) if arguments.json else show(figures)


if __name__ == "__main__":
    main()
