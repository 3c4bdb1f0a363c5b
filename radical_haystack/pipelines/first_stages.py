# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""First-stage retrievers by name. A preset is data: what its model needs to embed queries and images into one space."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from haystack.utils import ComponentDevice
from haystack_integrations.components.embedders.sentence_transformers import SentenceTransformersTextEmbedder

from radical_haystack.components.bundled import resolve_model
from radical_haystack.components.embedders import DocumentImageEmbedder


@dataclass(frozen=True)
class FirstStage:
    """
    A dual encoder that retrieves the candidates.

    :param name: What users choose it by, and what a store remembers.
    :param model: A hub name, a folder, or the name of a model that comes with this package.
    :param shared: Arguments for both embedders, such as `tokenizer_kwargs`.
    :param query: Arguments for the text embedder only, such as `prefix`.
    :param document: Arguments for the image embedder only, such as `encode_kwargs`.
    """

    name: str
    model: str
    shared: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    document: Mapping[str, Any] = field(default_factory=dict)

    def text_embedder(self, *, device: ComponentDevice | None = None) -> SentenceTransformersTextEmbedder:
        """
        The component that embeds a query.

        :param device: Where to run it; `None` for the default device.
        """
        return SentenceTransformersTextEmbedder(**self._arguments(device), **self.query)

    def image_embedder(
        self,
        *,
        device: ComponentDevice | None = None,
        batch_size: int = 32,
        root_path: str = "",
        file_path_meta_field: str = "file_path",
    ) -> DocumentImageEmbedder:
        """
        The component that embeds documents by their images.

        :param device: Where to run it; `None` for the default device.
        :param batch_size: Images per forward pass.
        :param root_path: The folder that relative paths start from and that none may leave; empty for none.
        :param file_path_meta_field: The metadata field that holds the path of a document's image.
        """
        return DocumentImageEmbedder(
            **self._arguments(device),
            batch_size=batch_size,
            root_path=root_path,
            file_path_meta_field=file_path_meta_field,
            **self.document,
        )

    def _arguments(self, device: ComponentDevice | None) -> dict[str, Any]:
        return {
            "model": resolve_model(self.model),
            "device": device,
            "normalize_embeddings": True,  # the store compares by distance, which then orders as the cosine does
            "progress_bar": False,
            **self.shared,
        }


FIRST_STAGES: dict[str, FirstStage] = {
    stage.name: stage
    for stage in [
        FirstStage(name="bundled", model="catalog-siglip-tiny"),
    ]
}
"""The presets by name."""


def first_stage_of(name: str) -> FirstStage:
    """
    The first stage of that name.

    :param name: A preset's name, or any model that sentence-transformers loads and that embeds text and images into
        one space.
    """
    return FIRST_STAGES.get(name) or FirstStage(name=name, model=name)
