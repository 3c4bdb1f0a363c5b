# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Haystack's embedders of queries and images, reading both as the rest of this package does."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersDocumentImageEmbedder,
    SentenceTransformersTextEmbedder,
)
from PIL import Image

from radical_haystack.components.encoding import image_input, prepare_backend, text_input
from radical_haystack.components.image_loading import ImageReadError, load_document_images
from radical_haystack.components.serializing import with_model_kwargs


@component
class QueryTextEmbedder(SentenceTransformersTextEmbedder):
    """
    Embeds a query with a sentence-transformers model that embeds images and text.

    Takes the parameters of Haystack's `SentenceTransformersTextEmbedder`, and two more. A query is always read as a
    text: one that is a URL or the path of an image is not opened.
    """

    def __init__(self, *, pooling: str | None = None, lower_case: bool = False, **parameters: Any) -> None:
        """
        Create the component; the model is loaded by `warm_up` or the first run.

        :param pooling: How token embeddings become one vector, such as `"lasttoken"`; `None` for what the model's
            folder says.
        :param lower_case: Whether to write queries in lower case, for models that were trained so.
        :param parameters: Those of `SentenceTransformersTextEmbedder`.
        """
        SentenceTransformersTextEmbedder.__init__(self, **parameters)  # Haystack remakes the class, so `super()` fails
        self.pooling = pooling
        self.lower_case = lower_case

    def to_dict(self) -> dict[str, Any]:
        """
        Serialize the component.

        :returns: A dictionary of plain values, for `from_dict` and for pipelines in YAML.
        """
        data: dict[str, Any] = SentenceTransformersTextEmbedder.to_dict(self)
        data["init_parameters"] |= {"pooling": self.pooling, "lower_case": self.lower_case}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "QueryTextEmbedder":
        """
        Make the component from what `to_dict` returned.

        :param data: The dictionary; it is left as it is.
        """
        return default_from_dict(cls, with_model_kwargs(data))

    def warm_up(self) -> None:
        """Load the model, once; other embedders of the same model share it."""
        if self.embedding_backend is None:
            SentenceTransformersTextEmbedder.warm_up(self)
            self.embedding_backend = prepare_backend(self.embedding_backend, self.pooling)

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """
        Embed a query.

        :param text: The query.
        :returns: `embedding`: its embedding.
        :raises TypeError: If it is not a string.
        """
        if not isinstance(text, str):
            raise TypeError(f"QueryTextEmbedder: the query must be a string, not {type(text).__name__}.")
        self.warm_up()
        assert self.embedding_backend is not None
        query = text_input(self.embedding_backend.model, self.prefix + text + self.suffix, lower_case=self.lower_case)
        (embedding,) = self.embedding_backend.embed(
            [query],
            batch_size=self.batch_size,
            show_progress_bar=self.progress_bar,
            normalize_embeddings=self.normalize_embeddings,
            precision=self.precision,
            quantization_ranges=self.quantization_ranges,
            **(self.encode_kwargs or {}),
        )
        return {"embedding": embedding}


@component
class DocumentImageEmbedder(SentenceTransformersDocumentImageEmbedder):
    """
    Computes document embeddings from images with a sentence-transformers model that embeds images and text.

    Takes the parameters of Haystack's `SentenceTransformersDocumentImageEmbedder`, and one more; it differs in how
    images are read: blobs work as well as paths, EXIF orientation and unusual colour modes are respected, and an
    unreadable image goes to a second output with the reason instead of ending the run.
    """

    def __init__(self, *, pooling: str | None = None, **parameters: Any) -> None:
        """
        Create the component; the model is loaded by `warm_up` or the first run.

        :param pooling: How token embeddings become one vector, such as `"lasttoken"`; `None` for what the model's
            folder says.
        :param parameters: Those of `SentenceTransformersDocumentImageEmbedder`.
        """
        # Haystack remakes the class, so `super()` fails.
        SentenceTransformersDocumentImageEmbedder.__init__(self, **parameters)
        self.pooling = pooling

    def to_dict(self) -> dict[str, Any]:
        """
        Serialize the component.

        :returns: A dictionary of plain values, for `from_dict` and for pipelines in YAML.
        """
        data: dict[str, Any] = SentenceTransformersDocumentImageEmbedder.to_dict(self)
        data["init_parameters"]["pooling"] = self.pooling
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "DocumentImageEmbedder":
        """
        Make the component from what `to_dict` returned.

        :param data: The dictionary; it is left as it is.
        """
        return default_from_dict(cls, with_model_kwargs(data))

    def warm_up(self) -> None:
        """Load the model, once; other embedders of the same model share it."""
        if self._embedding_backend is None:
            SentenceTransformersDocumentImageEmbedder.warm_up(self)
            self._embedding_backend = prepare_backend(self._embedding_backend, self.pooling)

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
        model = self._embedding_backend.model
        embeddings: list[list[float]] = self._embedding_backend.embed(
            [image_input(model, image) for image in images],
            batch_size=self.batch_size,
            show_progress_bar=self.progress_bar,
            normalize_embeddings=self.normalize_embeddings,
            precision=self.precision,
            **(self.encode_kwargs or {}),
        )
        return embeddings
