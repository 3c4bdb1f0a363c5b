# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Composed queries: a reference image and a text that says what shall be different from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from haystack import Document, component

from radical_haystack.components.image_loading import ImageSource, load_image


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
        parts = [captions] if isinstance(captions, str) else captions
        text = " and ".join(part.strip() for part in parts if part.strip())
        return cls(text, reference_image, reference_id)


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
