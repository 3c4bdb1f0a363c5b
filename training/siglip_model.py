# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The untrained `catalog-siglip-tiny`: tokenizer, processor, a small SigLIP, and how the folder is written."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, SiglipConfig, SiglipImageProcessor, SiglipModel, SiglipProcessor

IMAGE_SIDE = 64
MAX_TOKENS = 48
PAD, EOS = "<pad>", "<eos>"


def build_tokenizer(texts: Iterable[str], vocab_size: int = 600) -> PreTrainedTokenizerFast:
    """Byte-level BPE in lower case; every byte has a token, so no text is out of vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}", special_tokens=[(EOS, tokenizer.token_to_id(EOS))]
    )
    # No attention mask: like the large SigLIPs it sees the padding and reads the text at the last position.
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids"],
    )


def build_processor(tokenizer: PreTrainedTokenizerFast) -> SiglipProcessor:
    return SiglipProcessor(SiglipImageProcessor(size={"height": IMAGE_SIDE, "width": IMAGE_SIDE}), tokenizer)


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> SiglipModel:
    """One million parameters; the vectors have 96 dimensions."""
    torch.manual_seed(seed)
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": MAX_TOKENS,
        "projection_size": 96,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    vision = {
        "hidden_size": 96,
        "intermediate_size": 288,
        "num_hidden_layers": 4,
        "num_attention_heads": 3,
        "image_size": IMAGE_SIDE,
        "patch_size": 8,
    }
    return SiglipModel(SiglipConfig(text_config=text, vision_config=vision))


def save_folder(model: SiglipModel, tokenizer: PreTrainedTokenizerFast, folder: Path, card: str) -> None:
    """
    Write a folder that `SentenceTransformer(folder)`, `AutoModel` and `AutoProcessor` load.

    :param model: The trained model.
    :param tokenizer: Its tokenizer.
    :param folder: Where to; replaced as a whole.
    :param card: Text of the model card.
    """
    plain, complete = (folder.with_name(f"{folder.name}.{suffix}") for suffix in ("plain", "complete"))
    for path in (plain, complete):
        shutil.rmtree(path, ignore_errors=True)
    model.save_pretrained(plain)
    build_processor(tokenizer).save_pretrained(plain)
    # The text is read at the last position: every text must be padded to the same length.
    padding = {"text": {"padding": "max_length", "max_length": MAX_TOKENS}}
    transformer = Transformer(str(plain), processing_kwargs=padding)
    encoder = SentenceTransformer(modules=[transformer, Normalize()], device="cpu")
    encoder.save_pretrained(str(complete), create_model_card=False)
    (complete / "README.md").write_text(card, encoding="utf-8")
    for path in complete.glob("*.safetensors"):
        path.chmod(0o644)  # written for the owner alone, which would travel into the package
    shutil.rmtree(plain)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(complete, folder)
