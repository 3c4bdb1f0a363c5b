# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""A tiny random Qwen3-VL with a byte-level tokenizer and the real processor, built in code: nothing is downloaded."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

from radical_haystack.vlm.prompt import Prompt, PromptBuilder

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
    torch.manual_seed(seed)
    config._attn_implementation = attention
    model = Qwen3VLForConditionalGeneration(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
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


@pytest.fixture(scope="session")
def model() -> Qwen3VLForConditionalGeneration:
    return shared_model()


@pytest.fixture(scope="session")
def processor() -> Qwen3VLProcessor:
    return shared_processor()
