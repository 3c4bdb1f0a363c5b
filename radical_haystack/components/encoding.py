# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What all embedders here do to a sentence-transformers model and to the texts and images they give it."""

import copy
from pathlib import Path
from typing import Any

from PIL import Image
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from radical_haystack.vlm.images import fit_for_encoder


def prepare_backend(backend: Any, pooling: str | None) -> Any:
    """
    Make a Haystack embedding backend's model pool as it has to, and accept images.

    Backends are shared by all embedders of the same model, so this changes none but returns another one over the same
    weights. Modules that come with a model and are older than sentence-transformers 5.4 do not say what they take; they
    are then trusted to take both texts and images.

    :param backend: What Haystack's sentence-transformers embedders load; its `model` is a `SentenceTransformer`.
    :param pooling: How token embeddings become one vector, such as `"lasttoken"`; `None` for what the model's folder
        says.
    :raises ValueError: If the model does no pooling that could be set.
    """
    model = backend.model
    if not hasattr(model[0], "modalities"):
        model[0].modalities = ["text", "image"]
    if pooling is None:
        return backend
    poolings = [module for module in model if isinstance(module, Pooling)]
    if not poolings:
        raise ValueError(f"The model has no pooling that could be set to '{pooling}'.")
    prepared = copy.copy(backend)
    prepared.model = SentenceTransformer(
        modules=[
            Pooling(module.embedding_dimension, pooling, module.include_prompt)
            if isinstance(module, Pooling)
            else module
            for module in model
        ],
        device=str(model.device),
        prompts=model.prompts,
        truncate_dim=model.truncate_dim,
    )
    return prepared


def text_input(model: SentenceTransformer, text: str, *, lower_case: bool = False) -> Any:
    """
    What to give to `SentenceTransformer.encode` so that a text is read as a text, whatever it holds.

    Left alone, sentence-transformers and some models open a text that is a URL or the path of a file: a query must not
    make a server fetch or read anything. Structure of a chat, such as `<|image_pad|>`, is taken out.

    :param model: The model.
    :param text: The text.
    :param lower_case: Whether the model knows lower case only.
    :raises ValueError: If the model would open the text and cannot be told not to.
    """
    text = text.lower() if lower_case else text
    if not isinstance(model[0], Transformer):
        if text.startswith(("http", "data:")) or _is_file(text):
            raise ValueError(f"The text '{text}' is a URL or the path of a file, which this model would open.")
        return text
    if "message" in model.modalities:
        for token in model.tokenizer.get_added_vocab():
            text = text.replace(token, " ")
    return {"text": text}


def image_input(model: SentenceTransformer, image: Image.Image) -> Image.Image:
    """
    Make an image one that the model's processor takes: some fail on thin strips and on images smaller than a token.

    :param model: The model.
    :param image: An RGB image.
    """
    processor = getattr(getattr(model[0], "processor", None), "image_processor", None)
    merged = getattr(processor, "merge_size", None)
    return fit_for_encoder(image, merged * processor.patch_size) if processor and merged else image


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with a null character
        return False
