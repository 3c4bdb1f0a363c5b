# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Composed queries: a reference image and a text that says what shall be different from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from haystack import Document, component
from PIL import Image

from radical_haystack.components.image_loading import ImageReadError, ImageSource, load_document_images, load_image


@dataclass(frozen=True)
class ComposedQuery:
    """
    "Like this one, but in blue": a reference image and a modification text.

    :param text: The modification text.
    :param reference_image: A path, a `ByteStream`, an `ImageContent`, a `Document` or a PIL image.
    :param reference_id: The id of the reference's document, if it is one of those that are searched. Default: that of
        the reference, if it is a `Document`.
    :raises ValueError: If the text is blank or the reference is nothing that carries an image.
    """

    text: str
    reference_image: ImageSource
    reference_id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise ValueError("The modification text of a composed query is blank.")
        if not isinstance(self.reference_image, get_args(ImageSource)):
            raise ValueError(
                "The reference of a composed query must be an image (a path, a ByteStream, an ImageContent, a Document "
                f"or a PIL image), not {type(self.reference_image).__name__}."
            )
        if self.reference_id is None and isinstance(self.reference_image, Document):
            object.__setattr__(self, "reference_id", self.reference_image.id)

    @classmethod
    def from_captions(
        cls, reference_image: ImageSource, captions: str | Sequence[str], reference_id: str | None = None
    ) -> "ComposedQuery":
        """
        Make a composed query from one or several captions of one change, joined by " and " as FashionIQ's are.

        :param reference_image: See the class.
        :param captions: What annotators wrote; blank ones are left out.
        :param reference_id: See the class.
        :raises ValueError: See the class.
        """
        parts = [captions] if isinstance(captions, str) else captions or []  # nothing at all is as blank as ""
        if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"The modification of a composed query must be a text or several texts, not {captions!r}.")
        return cls(" and ".join(part.strip() for part in parts if part.strip()), reference_image, reference_id)


@component
class ComposedQueryBuilder:
    """
    Makes a `ComposedQuery` from what a user gives: the first component of a composed pipeline.

    The reference is read here, once, so that one that is no image is refused before any model runs.
    """

    def __init__(self, *, file_path_meta_field: str = "file_path", root_path: str | None = None) -> None:
        """
        Create the component.

        :param file_path_meta_field: For a reference that is a `Document`: the metadata field that holds its path.
        :param root_path: The folder that a reference's relative path starts from and that no path may leave. `None`: no
            such limit.
        """
        self.file_path_meta_field = file_path_meta_field
        self.root_path = root_path

    @component.output_types(composed_query=ComposedQuery, text=str)
    def run(
        self, reference_image: ImageSource, modification: str | list[str], reference_id: str | None = None
    ) -> dict[str, Any]:
        """
        Build the query.

        :param reference_image: The image to start from: a path, a `ByteStream`, an `ImageContent`, a `Document` or a
            PIL image.
        :param modification: What shall be different; several captions are joined by " and ".
        :param reference_id: The id of the reference's document, if it is one of those that are searched. Default: that
            of the reference, if it is a `Document`.
        :returns: `composed_query`, its reference loaded, and `text`, its modification text.
        :raises ValueError: If the modification is blank or the reference is not an image that can be read.
        """
        query = ComposedQuery.from_captions(reference_image, modification, reference_id)
        image = load_image(
            query.reference_image, file_path_meta_field=self.file_path_meta_field, root_path=self.root_path or ""
        )
        return {"composed_query": ComposedQuery(query.text, image, query.reference_id), "text": query.text}


@component
class ReferenceFilter:
    """
    Takes a composed query's own reference out of the documents found for it, so that it costs the ranker no tokens.

    The reference is often among what is searched, and as near to the query as nothing else; it is never what is asked
    for. It is the document with the query's `reference_id`; where that id is unknown or not found, every document whose
    picture is the same to the pixel. All others stay, in their order.
    """

    def __init__(
        self, *, top_k: int | None = None, file_path_meta_field: str = "file_path", root_path: str | None = None
    ) -> None:
        """
        Create the component.

        :param top_k: How many documents to pass on at most; `None` for all. A retriever that finds one more than that
            leaves this many with or without the reference.
        :param file_path_meta_field: The metadata field that holds the path of an image or PDF.
        :param root_path: The folder that relative paths start from and that no path may leave. `None`: no such limit.
        :raises ValueError: If `top_k` is not greater than 0.
        """
        if top_k is not None and top_k < 1:
            raise ValueError(f"ReferenceFilter: top_k must be > 0, but got {top_k}.")
        self.top_k = top_k
        self.file_path_meta_field = file_path_meta_field
        self.root_path = root_path

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], composed_query: ComposedQuery) -> dict[str, list[Document]]:
        """
        Take out the reference.

        :param documents: What a retriever found.
        :param composed_query: The query.
        :returns: `documents`: the others, at most `top_k`.
        :raises ValueError: If the reference cannot be read; documents that cannot be read stay.
        """
        others = [document for document in documents if document.id != composed_query.reference_id]
        if len(others) == len(documents):
            others = self._without_copies(documents, composed_query.reference_image)
        return {"documents": others[: self.top_k]}

    def _without_copies(self, documents: list[Document], reference_image: ImageSource) -> list[Document]:
        source = {"file_path_meta_field": self.file_path_meta_field, "root_path": self.root_path or ""}
        reference = load_image(reference_image, **source)
        images = load_document_images(documents, **source)
        return [document for document, image in zip(documents, images, strict=True) if not _same(image, reference)]


def _same(image: Image.Image | ImageReadError, reference: Image.Image) -> bool:
    """Whether two RGB images have the same pixels."""
    if isinstance(image, ImageReadError) or image.size != reference.size:
        return False
    return image.tobytes() == reference.tobytes()
