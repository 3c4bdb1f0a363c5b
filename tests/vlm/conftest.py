# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""A tiny random Qwen3-VL with a byte-level tokenizer and the real processor, built in code: nothing is downloaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from torch import Tensor
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

from radical_haystack.pruning.pruners.base import LayerObservation, ScorePruner
from radical_haystack.vlm.prompt import Prompt, PromptBuilder, PromptLayout
from radical_haystack.vlm.trace import PruningTrace

SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    # A merge across the space before a word shows whether the query is tokenised together with what stands before it.
    vocabulary = {symbol: index for index, symbol in enumerate([*alphabet, "Ġa", "Ġr", "ed"])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("Ġ", "a"), ("Ġ", "r"), ("e", "d")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    # Structure that is not flagged as special, as Qwen's tokenizers have it.
    tokenizer.add_tokens([AddedToken("<tool_call>", special=False, normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")


def build_processor(max_pixels: int = 64 * 64) -> Qwen3VLProcessor:
    shape = {"patch_size": 8, "merge_size": 2, "temporal_patch_size": 2}
    size = {"shortest_edge": 16 * 16, "longest_edge": max_pixels}
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=size, **shape),
        tokenizer=build_tokenizer(),
        video_processor=Qwen3VLVideoProcessor(**shape),
        chat_template=CHAT_TEMPLATE,
    )


def build_model(seed: int = 0, layers: int = 6, attention: str = "sdpa") -> Qwen3VLForConditionalGeneration:
    tokenizer = build_tokenizer()
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2]},
        },
        vision_config={
            "depth": 3,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "patch_size": 8,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": 64,
            "num_position_embeddings": 16,
            "deepstack_visual_indexes": [0, 1],
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )
    config._attn_implementation = attention
    generator = torch.Generator().manual_seed(seed)
    # The model outlives the test that asks for it first, which may be in inference mode.
    with torch.inference_mode(False), torch.no_grad():
        model = Qwen3VLForConditionalGeneration(config).eval()
        for name, parameter in model.named_parameters():
            # Weights large enough that attention is not uniform and every layer matters.
            if parameter.ndim > 1:
                scale = 0.5 if "embed" in name else 1.5 / parameter[0].numel() ** 0.5
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
    model.generation_config.pad_token_id = ids["<|endoftext|>"]
    model.generation_config.eos_token_id = None
    return model


@cache
def shared_model(layers: int = 6, attention: str = "sdpa") -> Qwen3VLForConditionalGeneration:
    return build_model(layers=layers, attention=attention)


@cache
def shared_processor() -> Qwen3VLProcessor:
    return build_processor()


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    pixels = torch.randint(0, 256, (height, width, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    return Image.fromarray(pixels.numpy())


RAGGED = ((64, 48), (16, 16), (32, 64), (48, 16), (40, 40))


@dataclass
class Example:
    prompt: Prompt
    inputs: dict[str, Any]


def example(
    query: str = "a red shirt", sizes: tuple[tuple[int, int], ...] = RAGGED, reference: tuple[int, int] | None = None
) -> Example:
    """A prompt with the model's plain inputs, made by the processor as any user would."""
    processor = shared_processor()
    images = [noise(*size, seed=number) for number, size in enumerate([*sizes, *([reference] if reference else [])])]
    vision = processor.image_processor(images=images, return_tensors="pt")
    counts = (vision["image_grid_thw"].prod(-1) // 4).tolist()
    prompt = PromptBuilder(processor).build(query, counts[: len(sizes)], counts[-1] if reference else None)
    inputs = {"input_ids": prompt.input_ids, "mm_token_type_ids": prompt.token_types, **vision}
    return Example(prompt, inputs)


def slow_reference(
    example: Example, dropped: Mapping[int, Sequence[int]], new_tokens: Sequence[int] = ()
) -> tuple[Tensor, list[Tensor]]:
    """
    The dense pass in which dropped tokens are masked out, with eager attention and a full mask per layer.

    :param dropped: Pruning layer -> positions in the prompt that are dropped at its output.
    :param new_tokens: Tokens behind the prompt; they do not see what the pruning layer's own cache lost either.
    :returns: Logits `(S + new, vocab)` and each layer's attention weights, averaged over heads, `(S + new, S + new)`.
    """
    model = shared_model(attention="eager")
    prompt = len(example.prompt.input_ids[0])
    ids = torch.cat([example.prompt.input_ids, torch.tensor([list(new_tokens)], dtype=torch.int64)], dim=1)
    types = torch.cat([example.prompt.token_types, torch.zeros(1, len(new_tokens), dtype=torch.int64)], dim=1)
    length = ids.shape[1]
    handles = []
    for index, layer in enumerate(model.model.language_model.layers):
        visible = torch.ones(length, length).tril().bool()
        for pruning_layer, positions in dropped.items():
            if pruning_layer < index:
                visible[:, list(positions)] = False
            if pruning_layer == index:
                visible[prompt:, list(positions)] = False
        # A dropped row sees itself, so that its softmax is defined; nobody sees it.
        mask = torch.where(visible | torch.eye(length).bool(), 0.0, -torch.inf)[None, None]

        def replace(module: Any, args: Any, kwargs: Any, mask: Tensor = mask) -> Any:
            return args, {**kwargs, "attention_mask": mask}

        handles.append(layer.register_forward_pre_hook(replace, with_kwargs=True))
    inputs = {**example.inputs, "input_ids": ids, "mm_token_type_ids": types}
    with torch.inference_mode():
        output = model(**inputs, output_attentions=True, use_cache=False)
    for handle in handles:
        handle.remove()
    return output.logits[0], [weights[0].mean(0) for weights in output.attentions]


@dataclass(frozen=True)
class KeepPositions(ScorePruner):
    """Keeps pseudo-random tokens at any layers; unlike `RandomPruner` it draws anew at each."""

    ratios: Mapping[int, float]

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(self.ratios)

    def keep_ratio_at(self, layer: int) -> float:
        return self.ratios[layer]

    def score(self, observation: LayerObservation) -> Tensor:
        generator = torch.Generator().manual_seed(observation.layer)
        return torch.rand(observation.active.numel(), generator=generator)


def dropped_by(trace: PruningTrace, layout: PromptLayout) -> dict[int, list[int]]:
    """Pruning layer -> positions in the prompt dropped there, from a trace."""
    active = set(range(layout.candidate_positions.numel()))
    dropped = {}
    for stage in trace.stages:
        kept = set(stage.kept.tolist())
        dropped[stage.layer] = layout.candidate_positions[sorted(active - kept)].tolist()
        active = kept
    return dropped


def kept_rows(trace: PruningTrace, layout: PromptLayout) -> list[int]:
    """Positions in the prompt that are left at the end."""
    gone = {position for positions in dropped_by(trace, layout).values() for position in positions}
    return [position for position in range(layout.length) if position not in gone]


def save_model(folder: Path) -> str:
    """Write the tiny model and its processor where `ListwiseVLM.load` finds them."""
    shared_model().save_pretrained(folder)
    shared_processor().save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny() -> SimpleNamespace:
    """The helpers of this file."""
    return SimpleNamespace(
        KeepPositions=KeepPositions,
        build_model=build_model,
        build_processor=build_processor,
        doubling_normalizer=lambda: normalizers.Replace("A", "A_"),
        dropped_by=dropped_by,
        example=example,
        kept_rows=kept_rows,
        model=shared_model,
        noise=noise,
        processor=shared_processor,
        prompts=lambda: PromptBuilder(shared_processor()),
        seeded_model=cache(lambda seed: build_model(seed=seed)),
        save=save_model,
        sizes=RAGGED,
        slow_reference=slow_reference,
    )


@pytest.fixture(autouse=True)
def _own_cache_directory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
