# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""First-stage retrievers by name. A preset is data: what its model needs to embed queries and images into one space."""

import hashlib
import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from haystack.core.component import Component
from haystack.core.serialization import component_from_dict, component_to_dict
from haystack.utils import ComponentDevice

from radical_haystack.components.bundled import resolve_model
from radical_haystack.components.composed_embedder import ComposedQueryEmbedder
from radical_haystack.components.embedders import DocumentImageEmbedder, QueryTextEmbedder


@dataclass(frozen=True)
class FirstStage:
    """
    A model for sentence-transformers that retrieves the candidates, with all that it needs to do so well.

    :param name: What users choose it by, and what a store remembers.
    :param model: A hub name, a folder, or the name of a model that comes with this package.
    :param encode_kwargs: Arguments of `SentenceTransformer.encode` for queries and images alike, such as `task`.
    :param query_encode_kwargs: Those for queries only, such as `prompt`.
    :param image_encode_kwargs: Those for images only.
    :param loading: Arguments of the embedders that say how to load the model, such as `model_kwargs` or `token`.
    :param pooling: How token embeddings become one vector; `None` for what the model's folder says.
    :param dimension: What embeddings are cut to; `None` for all of it.
    :param lower_case: Whether the model knows lower case only.
    :param composed: How a reference image and a text become one embedding, see `ComposedQueryEmbedder`.
    :param image_weight: For `"fused"`: the share of the reference image.
    :param needs_remote_code: Whether the model only works with code that comes with it.
    :param trust_remote_code: Whether such code may run: for the user to say, never for a preset.
    """

    name: str
    model: str
    encode_kwargs: Mapping[str, Any] = field(default_factory=dict)
    query_encode_kwargs: Mapping[str, Any] = field(default_factory=dict)
    image_encode_kwargs: Mapping[str, Any] = field(default_factory=dict)
    loading: Mapping[str, Any] = field(default_factory=dict)
    pooling: str | None = None
    dimension: int | None = None
    lower_case: bool = False
    composed: Literal["joint", "fused"] = "fused"
    image_weight: float = 0.5
    needs_remote_code: bool = False
    trust_remote_code: bool = False

    def text_embedder(self, *, device: ComponentDevice | None = None) -> QueryTextEmbedder:
        """
        The component that embeds a query.

        :param device: Where to run it; `None` for the default device.
        :raises ValueError: If the model needs code that comes with it and the user did not say that it may run.
        """
        return QueryTextEmbedder(
            **self._model(device), lower_case=self.lower_case, encode_kwargs=self._encode(self.query_encode_kwargs)
        )

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
        :raises ValueError: See `text_embedder`.
        """
        return DocumentImageEmbedder(
            **self._model(device),
            encode_kwargs=self._encode(self.image_encode_kwargs),
            batch_size=batch_size,
            root_path=root_path,
            file_path_meta_field=file_path_meta_field,
        )

    def composed_embedder(self, *, device: ComponentDevice | None = None) -> ComposedQueryEmbedder:
        """
        The component that embeds a reference image and a modification text as one query.

        :param device: Where to run it; `None` for the default device.
        :raises ValueError: See `text_embedder`.
        """
        return ComposedQueryEmbedder(
            **self._model(device),
            lower_case=self.lower_case,
            mode=self.composed,
            image_weight=self.image_weight,
            encode_kwargs=self._encode(self.query_encode_kwargs),
            image_encode_kwargs=self._encode(self.image_encode_kwargs),
        )

    @property
    def weights_digest(self) -> str | None:
        """
        A digest of the model's weights, if it is a folder: of a hub model, the name says which they are.

        Of each file its name, its size and its first and last MiB [choice]: training changes them all, and large models
        are not read through.
        """
        folder = Path(resolve_model(self.model))
        files = sorted(file for file in folder.rglob("*") if file.suffix in (".safetensors", ".bin"))
        if not folder.is_dir() or not files:
            return None
        digest = hashlib.sha256()
        for file in files:
            with file.open("rb") as opened:
                size = opened.seek(0, os.SEEK_END)
                digest.update(f"{file.relative_to(folder)} {size}".encode())
                for start in (0, max(0, size - 2**20)):
                    opened.seek(start)
                    digest.update(opened.read(2**20))
        return digest.hexdigest()

    def _model(self, device: ComponentDevice | None) -> dict[str, Any]:
        if self.needs_remote_code and not self.trust_remote_code:
            raise ValueError(
                f"The first stage '{self.name}' runs code that comes with the model '{self.model}'; if you have read "
                "and trust it, say so with trust_remote_code=True (--trust-remote-code on the command line)."
            )
        return {
            "model": resolve_model(self.model),
            "device": device,
            "pooling": self.pooling,
            "normalize_embeddings": True,  # stores compare by distance, dot product or cosine: all order the same then
            "progress_bar": False,
            "trust_remote_code": self.trust_remote_code,
            **deepcopy(dict(self.loading)),
        }

    def _encode(self, more: Mapping[str, Any]) -> dict[str, Any]:
        cut = {} if self.dimension is None else {"truncate_dim": self.dimension}
        return deepcopy({**self.encode_kwargs, **more, **cut})


@dataclass(frozen=True)
class EmbedderPair:
    """
    Any two Haystack embedders of one space as a first stage, for example `JinaTextEmbedder` and
    `JinaDocumentImageEmbedder` over their API.

    The components given are patterns: pipelines get copies, made by `to_dict` and `from_dict`. Their embeddings should
    have length 1.

    :param name: What a store remembers.
    :param text: Embeds a query: from `text` to `embedding`.
    :param image: Embeds documents by their images: from `documents` to `documents`.
    :param composed: Embeds a composed query: from `composed_query` to `embedding`; `None` if there is none.
    """

    name: str
    text: Component
    image: Component
    composed: Component | None = None
    weights_digest: ClassVar[None] = None

    def text_embedder(self, *, device: ComponentDevice | None = None) -> Component:
        """
        A copy of the component that embeds a query.

        :param device: Not used: the component says where it runs.
        """
        return _copy(self.text)

    def image_embedder(
        self,
        *,
        device: ComponentDevice | None = None,
        batch_size: int = 32,
        root_path: str = "",
        file_path_meta_field: str = "file_path",
    ) -> Component:
        """
        A copy of the component that embeds documents by their images.

        :param device: Not used: the component says where it runs.
        :param batch_size: Not used: the component says how many it takes at once.
        :param root_path: The folder that relative paths start from, if the component has such a parameter.
        :param file_path_meta_field: The metadata field of an image's path, if the component has such a parameter.
        """
        return _copy(self.image, root_path=root_path, file_path_meta_field=file_path_meta_field)

    def composed_embedder(self, *, device: ComponentDevice | None = None) -> Component:
        """
        A copy of the component that embeds a composed query.

        :param device: Not used: the component says where it runs.
        :raises ValueError: If there is none.
        """
        if self.composed is None:
            raise ValueError(f"The first stage '{self.name}' has no embedder of composed queries.")
        return _copy(self.composed)


AnyFirstStage: TypeAlias = str | FirstStage | EmbedderPair
"""What says which first stage is meant: a preset's name, a model for sentence-transformers, or one made by hand."""

_QWEN3_VL_EMBEDDING = FirstStage(
    # The model card, and scripts/qwen3_vl_embedding.py beside it: an instruction as the system message, the generation
    # prompt behind the input, the last token's state, images of 4 to 1,800 visual tokens of 32 x 32 pixels.
    name="",
    model="",
    encode_kwargs={
        "processing_kwargs": {
            "chat_template": {"add_generation_prompt": True},
            "image": {"size": {"shortest_edge": 4 * 32 * 32, "longest_edge": 1800 * 32 * 32}},
        }
    },
    query_encode_kwargs={"prompt": "Retrieve images or text relevant to the user's query."},
    image_encode_kwargs={"prompt": "Represent the user's input."},
    pooling="lasttoken",
    composed="joint",
)

FIRST_STAGES: dict[str, FirstStage] = {
    stage.name: stage
    for stage in [
        FirstStage(name="bundled", model="catalog-siglip-tiny", dimension=96),
        replace(_QWEN3_VL_EMBEDDING, name="qwen3-vl-embedding-2b", model="Qwen/Qwen3-VL-Embedding-2B", dimension=2048),
        replace(_QWEN3_VL_EMBEDDING, name="qwen3-vl-embedding-8b", model="Qwen/Qwen3-VL-Embedding-8B", dimension=4096),
        FirstStage(
            # The model card: a task chooses the adapter, and queries have a prompt of their own. Its module for
            # sentence-transformers pools by the mean, and reads image or text but not both at once.
            name="jina-embeddings-v4",
            model="jinaai/jina-embeddings-v4",
            encode_kwargs={"task": "retrieval"},
            query_encode_kwargs={"prompt_name": "query"},
            dimension=2048,
            needs_remote_code=True,
        ),
        FirstStage(
            # The model card and its conversion script: trained on lower-case texts padded on the right to 64 tokens,
            # and the text encoder, which reads its last position, must see the padding: no attention mask.
            name="siglip2-base-patch16-512",
            model="google/siglip2-base-patch16-512",
            encode_kwargs={
                "processing_kwargs": {
                    "text": {
                        "padding": "max_length",
                        "max_length": 64,
                        "truncation": True,
                        "padding_side": "right",
                        "return_attention_mask": False,
                    }
                }
            },
            dimension=768,
            lower_case=True,
        ),
    ]
}
"""The presets by name."""


def first_stage_of(first_stage: AnyFirstStage, *, trust_remote_code: bool = False) -> FirstStage | EmbedderPair:
    """
    The first stage that is meant.

    :param first_stage: A preset's name, any model that sentence-transformers loads and that embeds text and images into
        one space, or a first stage made by hand, which is returned as it is.
    :param trust_remote_code: Whether code that comes with the model may run.
    """
    if isinstance(first_stage, EmbedderPair):
        return first_stage
    if isinstance(first_stage, str):
        first_stage = FIRST_STAGES.get(first_stage) or FirstStage(name=first_stage, model=first_stage)
    return replace(first_stage, trust_remote_code=True) if trust_remote_code else first_stage


def _copy(component: Component, **parameters: Any) -> Component:
    """The same component anew, since one can be in one pipeline only, with other values for parameters that it has."""
    data = component_to_dict(component, "embedder")
    known = {name: value for name, value in parameters.items() if name in data["init_parameters"]}
    data["init_parameters"] = {**data["init_parameters"], **known}
    return component_from_dict(type(component), data, "embedder")
