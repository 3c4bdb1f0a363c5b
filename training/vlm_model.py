# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The untrained `catalog-vlm-tiny`: tokenizer, processor and a small Qwen3-VL, saved as an ordinary folder."""

import copy
import json
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    Qwen2Tokenizer,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

import radical_haystack

IMAGE_SIDE = 128
PATCH = 8
MERGE = 2
GRID = IMAGE_SIDE // (PATCH * MERGE)
TOKENS_PER_IMAGE = GRID * GRID
MODEL_FOLDER = Path(radical_haystack.__file__).parent / "catalog" / "models" / "catalog-vlm-tiny"

SPECIAL_TOKENS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
]

CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\n' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}
{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- elif part['type'] == 'video' -%}
{{- '<|vision_start|><|video_pad|><|vision_end|>' -}}
{%- elif part['type'] == 'text' -%}
{{- part['text'] -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' -}}
{%- endif -%}
"""


def build_tokenizer(texts: Iterable[str], vocab_size: int = 640) -> Qwen2Tokenizer:
    """Byte-level BPE, pre-tokenised as Qwen does; every byte has a token, so no text is out of vocabulary."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.NFC()
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trained.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    trained.train_from_iterator(texts, trainer)
    learned = json.loads(trained.to_str())["model"]
    tokenizer = Qwen2Tokenizer(
        vocab=learned["vocab"],
        merges=[tuple(pair) for pair in learned["merges"]],
        unk_token=None,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    )
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL_TOKENS})
    return tokenizer


def build_config(tokenizer: Qwen2Tokenizer) -> Qwen3VLConfig:
    """12 decoder layers, hidden 192, few wide heads: the shape that is quick on a CPU."""
    hidden = 192
    token_id = tokenizer.convert_tokens_to_ids
    return Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": hidden,
            "intermediate_size": 384,
            "num_hidden_layers": 12,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "head_dim": 64,
            "max_position_embeddings": 8192,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [12, 10, 10]},
            "tie_word_embeddings": True,
            "bos_token_id": None,
            "eos_token_id": token_id("<|im_end|>"),
            "pad_token_id": token_id("<|endoftext|>"),
        },
        vision_config={
            "depth": 4,
            "hidden_size": 128,
            "num_heads": 2,
            "intermediate_size": 256,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 2,
            "out_hidden_size": hidden,
            "num_position_embeddings": (IMAGE_SIDE // PATCH) ** 2,
            "deepstack_visual_indexes": [1, 2],
        },
        image_token_id=token_id("<|image_pad|>"),
        video_token_id=token_id("<|video_pad|>"),
        vision_start_token_id=token_id("<|vision_start|>"),
        vision_end_token_id=token_id("<|vision_end|>"),
        tie_word_embeddings=True,
    )


def build_processor(tokenizer: Qwen2Tokenizer) -> Qwen3VLProcessor:
    """A processor that brings every image to about `IMAGE_SIDE` squared pixels."""
    size = {"shortest_edge": 64 * 64, "longest_edge": IMAGE_SIDE * IMAGE_SIDE}
    shared = {
        "patch_size": PATCH,
        "merge_size": MERGE,
        "temporal_patch_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=size, **shared),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(**shared),
        chat_template=CHAT_TEMPLATE,
    )


def build_model(tokenizer: Qwen2Tokenizer, seed: int) -> Qwen3VLForConditionalGeneration:
    """A freshly initialised float32 model."""
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(build_config(tokenizer)).float()
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids("<|im_end|>")
    model.generation_config.pad_token_id = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    return model


def save_folder(model: Qwen3VLForConditionalGeneration, processor: Qwen3VLProcessor, folder: Path) -> None:
    """Write weights, tokenizer, processor and chat template, as `from_pretrained` expects them."""
    # Half the size on disk; the configuration makes `from_pretrained` compute in float32, which CPUs need.
    copy.deepcopy(model).half().save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"float16"', '"float32"'), encoding="utf-8")
    processor.save_pretrained(folder)
