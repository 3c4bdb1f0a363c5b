# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Haystack's image embedder, reading images as the rest of this package does."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict
from haystack.utils.hf import deserialize_hf_model_kwargs
from haystack_integrations.components.embedders.sentence_transformers import SentenceTransformersDocumentImageEmbedder
from PIL import Image

from radical_haystack.components.image_loading import ImageReadError, load_document_images


@component
class DocumentImageEmbedder(SentenceTransformersDocumentImageEmbedder):
    """
    Computes document embeddings from images with a sentence-transformers model that embeds images and text.

    Takes the parameters of Haystack's `SentenceTransformersDocumentImageEmbedder` and differs in how images are read:
    blobs work as well as paths, EXIF orientation and unusual colour modes are respected, and an unreadable image goes
    to a second output with the reason instead of ending the run.
    """

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "DocumentImageEmbedder":
        """
        Make the component from what `to_dict` returned.

        :param data: The dictionary; it is left as it is.
        """
        copied = deepcopy(dict(data))
        deserialize_hf_model_kwargs(copied.get("init_parameters", {}).get("model_kwargs") or {})
        return default_from_dict(cls, copied)

    @component.output_types(documents=list[Document], unreadable=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed documents by their images.

        :param documents: Documents with an image, as `load_document_image` finds it.
        :returns: `documents`: copies of those that could be read, with embeddings, in order; `unreadable`: copies of
            the others, the reason in `meta["radical"]["error"]`.
        """
        results = load_document_images(
            documents, file_path_meta_field=self.file_path_meta_field, root_path=self.root_path
        )
        unreadable = [
            replace(document, meta={**document.meta, "radical": {"error": str(result)}})
            for document, result in zip(documents, results, strict=True)
            if isinstance(result, ImageReadError)
        ]
        images = [result for result in results if not isinstance(result, ImageReadError)]
        readable = [
            document
            for document, result in zip(documents, results, strict=True)
            if not isinstance(result, ImageReadError)
        ]
        embeddings = self.embed_images(images) if images else []
        embedded = [
            replace(document, embedding=embedding) for document, embedding in zip(readable, embeddings, strict=True)
        ]
        return {"documents": embedded, "unreadable": unreadable}

    def embed_images(self, images: list[Image.Image]) -> list[list[float]]:
        """
        Embed images that are loaded already.

        :param images: RGB images, as `load_image` gives them.
        :returns: One embedding per image.
        """
        self.warm_up()
        assert self._embedding_backend is not None
        embeddings: list[list[float]] = self._embedding_backend.embed(
            images,
            batch_size=self.batch_size,
            show_progress_bar=self.progress_bar,
            normalize_embeddings=self.normalize_embeddings,
            precision=self.precision,
            **(self.encode_kwargs or {}),
        )
        return embeddings
