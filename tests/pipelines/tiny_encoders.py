# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Tiny untrained encoders of the architectures that the presets name, as folders."""

import json
import string
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import Siglip2Config, Siglip2ImageProcessor, Siglip2Model, Siglip2Processor, Siglip2Tokenizer

from tests.vlm.conftest import build_model, build_processor


def save_qwen3_vl(folder: Path) -> str:
    """A Qwen3-VL without a word on how to pool; sentence-transformers then takes the mean."""
    build_model(layers=2).save_pretrained(folder)
    build_processor().save_pretrained(folder)
    return str(folder)


def save_qwen3_vl_embedding(plain: str, folder: Path) -> str:
    """The same as Qwen3-VL-Embedding comes: with `modules.json`, which says that the last token's state counts."""
    modules = [Transformer(plain), Pooling(64, "lasttoken"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(folder))
    return str(folder)


def save_siglip2_naflex(folder: Path) -> str:
    """A SigLIP 2 of the kind that keeps images' sides' ratio."""
    symbols = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *string.ascii_lowercase]
    tokenizer = Siglip2Tokenizer(vocab={symbol: index for index, symbol in enumerate(symbols)}, merges=[])
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = {
        **shape,
        "vocab_size": len(symbols),
        "projection_size": 32,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 2,
    }
    torch.manual_seed(0)
    vision = {**shape, "patch_size": 16, "num_patches": 16}
    Siglip2Model(Siglip2Config(text_config=text, vision_config=vision)).save_pretrained(folder)
    processor = Siglip2ImageProcessor(patch_size=16, max_num_patches=16)
    Siglip2Processor(image_processor=processor, tokenizer=tokenizer).save_pretrained(folder)
    return str(folder)


def save_with_own_code(folder: Path) -> str:
    """
    A model whose module for sentence-transformers comes with it, with the interface of Jina's: `tokenize` takes texts
    and images, `forward` a task, and nothing says which kinds of input it takes.
    """
    (folder / "own_code.py").write_text(_OWN_CODE, encoding="utf-8")
    module = {"idx": 0, "name": "0", "path": "", "type": "own_code.Encoder", "kwargs": ["task"]}
    (folder / "modules.json").write_text(json.dumps([module]), encoding="utf-8")
    prompts = {"prompts": {"query": "Query: ", "passage": "Passage: "}, "default_prompt_name": None}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts), encoding="utf-8")
    return str(folder)


_OWN_CODE = '''
import torch


class Encoder(torch.nn.Module):
    """Embeds by counting bytes; keeps what it was asked for."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.seen = []

    def tokenize(self, texts):
        rows = []
        for text in texts:
            data = text.encode() if isinstance(text, str) else text.resize((4, 4)).tobytes()
            rows.append(torch.bincount(torch.tensor(list(data)) % 24, minlength=24).float())
        self.seen.append(list(texts))
        return {"counts": torch.stack(rows)}

    def forward(self, features, task=None):
        self.seen.append(task)
        return {**features, "sentence_embedding": features["counts"] * self.weight}

    @classmethod
    def load(cls, input_path):
        return cls()
'''
