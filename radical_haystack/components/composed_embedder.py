# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The embedder of composed queries: one vector for a reference image and a modification text."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Literal, get_args

import numpy as np
from haystack import component, default_from_dict, default_to_dict
from haystack.utils import ComponentDevice, Secret
from haystack.utils.hf import serialize_hf_model_kwargs
from PIL import Image

from radical_haystack.components.composed_query import ComposedQuery
from radical_haystack.components.embedders import QueryTextEmbedder
from radical_haystack.components.encoding import image_input, text_input
from radical_haystack.components.image_loading import load_image
from radical_haystack.components.serializing import with_model_kwargs

Mode = Literal["joint", "fused"]


@component
class ComposedQueryEmbedder:
    """
    Embeds a composed query into the space of a sentence-transformers model that embeds images and text.

    Takes the parameters of Haystack's `SentenceTransformersTextEmbedder` that make sense for a single query. `"joint"`:
    the model reads image and text together (Qwen3-VL-Embedding). `"fused"`, for models that read one at a time
    (SigLIP2, CLIP): `normalised(w * image + (1 - w) * text)`, each part normalised before.
    """

    def __init__(
        self,
        *,
        model: str,
        mode: Mode = "fused",
        image_weight: float = 0.5,
        pooling: str | None = None,
        lower_case: bool = False,
        device: ComponentDevice | None = None,
        token: Secret | None = Secret.from_env_var(["HF_API_TOKEN", "HF_TOKEN"], strict=False),
        prefix: str = "",
        suffix: str = "",
        progress_bar: bool = False,
        normalize_embeddings: bool = True,
        trust_remote_code: bool = False,
        local_files_only: bool = False,
        truncate_dim: int | None = None,
        model_kwargs: dict[str, Any] | None = None,
        tokenizer_kwargs: dict[str, Any] | None = None,
        config_kwargs: dict[str, Any] | None = None,
        encode_kwargs: dict[str, Any] | None = None,
        image_encode_kwargs: dict[str, Any] | None = None,
        backend: Literal["torch", "onnx", "openvino"] = "torch",
        revision: str | None = None,
        file_path_meta_field: str = "file_path",
        root_path: str | None = None,
    ) -> None:
        """
        Create the component; the model is loaded by `warm_up` or the first run.

        :param model: A hub name or folder of a sentence-transformers model for images and text.
        :param mode: `"joint"` or `"fused"`, see the class.
        :param image_weight: For `"fused"`: the share `w` of the reference image, in [0, 1].
        :param pooling: How token embeddings become one vector, such as `"lasttoken"`; `None` for what the model's
            folder says.
        :param lower_case: Whether to write the text in lower case, for models that were trained so.
        :param device: Where to run the model; `None` for the default device.
        :param token: The token for private models of the hub.
        :param prefix: What stands before the text.
        :param suffix: What stands behind it.
        :param progress_bar: Whether to show a progress bar.
        :param normalize_embeddings: Whether the embedding has length 1. The parts of a fused one always have.
        :param trust_remote_code: Whether code that comes with the model may run.
        :param local_files_only: Whether to look at local files only.
        :param truncate_dim: The length embeddings are cut to; `None` for all of it.
        :param model_kwargs: Further arguments for loading the model.
        :param tokenizer_kwargs: Further arguments for loading its tokenizer or processor.
        :param config_kwargs: Further arguments for loading its configuration.
        :param encode_kwargs: Further arguments for `SentenceTransformer.encode`, such as `prompt` or `task`, where the
            text is embedded, in `"joint"` mode together with the image.
        :param image_encode_kwargs: For `"fused"`: the same for the reference image; they should be those that the
            documents' images were embedded with.
        :param backend: What runs the model.
        :param revision: A branch, tag or commit of the model.
        :param file_path_meta_field: For a reference that is a `Document`: the metadata field that holds its path.
        :param root_path: The folder that a reference's relative path starts from and that no path may leave. `None`: no
            such limit.
        :raises ValueError: If `mode` or `image_weight` is out of range.
        """
        if mode not in get_args(Mode):
            raise ValueError(f"ComposedQueryEmbedder: mode must be 'joint' or 'fused', but got {mode!r}.")
        if not 0 <= image_weight <= 1:
            raise ValueError(f"ComposedQueryEmbedder: image_weight must be in [0, 1], but got {image_weight}.")
        self.model = model
        self.mode = mode
        self.image_weight = image_weight
        self.pooling = pooling
        self.lower_case = lower_case
        self.device = ComponentDevice.resolve_device(device)
        self.token = token
        self.prefix = prefix
        self.suffix = suffix
        self.progress_bar = progress_bar
        self.normalize_embeddings = normalize_embeddings
        self.trust_remote_code = trust_remote_code
        self.local_files_only = local_files_only
        self.truncate_dim = truncate_dim
        self.model_kwargs = model_kwargs
        self.tokenizer_kwargs = tokenizer_kwargs
        self.config_kwargs = config_kwargs
        self.encode_kwargs = encode_kwargs
        self.image_encode_kwargs = image_encode_kwargs
        self.backend = backend
        self.revision = revision
        self.file_path_meta_field = file_path_meta_field
        self.root_path = root_path
        self._backend: Any = None

    def to_dict(self) -> dict[str, Any]:
        """
        Serialize the component.

        :returns: A dictionary of plain values, for `from_dict` and for pipelines in YAML.
        """
        data = default_to_dict(
            self,
            model=self.model,
            mode=self.mode,
            image_weight=self.image_weight,
            pooling=self.pooling,
            lower_case=self.lower_case,
            device=self.device,
            token=self.token,
            prefix=self.prefix,
            suffix=self.suffix,
            progress_bar=self.progress_bar,
            normalize_embeddings=self.normalize_embeddings,
            trust_remote_code=self.trust_remote_code,
            local_files_only=self.local_files_only,
            truncate_dim=self.truncate_dim,
            model_kwargs=deepcopy(self.model_kwargs),
            tokenizer_kwargs=self.tokenizer_kwargs,
            config_kwargs=self.config_kwargs,
            encode_kwargs=self.encode_kwargs,
            image_encode_kwargs=self.image_encode_kwargs,
            backend=self.backend,
            revision=self.revision,
            file_path_meta_field=self.file_path_meta_field,
            root_path=self.root_path,
        )
        serialize_hf_model_kwargs(data["init_parameters"]["model_kwargs"] or {})
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ComposedQueryEmbedder":
        """
        Make the component from what `to_dict` returned.

        :param data: The dictionary; it is left as it is.
        """
        return default_from_dict(cls, with_model_kwargs(data))

    def warm_up(self) -> None:
        """Load the model, once; other embedders of the same model share it."""
        if self._backend is None:
            loader = QueryTextEmbedder(
                model=self.model,
                pooling=self.pooling,
                device=self.device,
                token=self.token,
                trust_remote_code=self.trust_remote_code,
                local_files_only=self.local_files_only,
                truncate_dim=self.truncate_dim,
                model_kwargs=self.model_kwargs,
                tokenizer_kwargs=self.tokenizer_kwargs,
                config_kwargs=self.config_kwargs,
                backend=self.backend,
                revision=self.revision,
            )
            loader.warm_up()
            self._backend = loader.embedding_backend

    @component.output_types(embedding=list[float])
    def run(self, composed_query: ComposedQuery) -> dict[str, list[float]]:
        """
        Embed a composed query.

        :param composed_query: The query.
        :returns: `embedding`: one vector.
        :raises ValueError: If the reference cannot be read, or the model cannot embed image and text as `mode` says.
        """
        image = load_image(
            composed_query.reference_image,
            file_path_meta_field=self.file_path_meta_field,
            root_path=self.root_path or "",
        )
        self.warm_up()
        image = image_input(self._backend.model, image)
        text = text_input(
            self._backend.model, self.prefix + composed_query.text + self.suffix, lower_case=self.lower_case
        )
        vector = self._joint(image, text) if self.mode == "joint" else self._fused(image, text)
        return {"embedding": vector.tolist()}

    def _joint(self, image: Image.Image, text: Any) -> np.ndarray:
        both = {"image": image, **(text if isinstance(text, dict) else {"text": text})}
        try:
            return self._encode(both, self.normalize_embeddings, self.encode_kwargs)
        except ValueError as error:
            raise ValueError(
                f"ComposedQueryEmbedder: the model '{self.model}' cannot embed an image and a text together, as "
                f"mode='joint' asks for; mode='fused' may do. ({error})"
            ) from error

    def _fused(self, image: Image.Image, text: Any) -> np.ndarray:
        pictured = self._encode(image, True, self.image_encode_kwargs)
        said = self._encode(text, True, self.encode_kwargs)
        if len(pictured) != len(said):
            raise ValueError(
                f"ComposedQueryEmbedder: the model '{self.model}' gives an embedding of length {len(pictured)} for the "
                f"image and one of length {len(said)} for the text, which cannot be added."
            )
        total = self.image_weight * pictured + (1 - self.image_weight) * said
        length = float(np.linalg.norm(total))
        return total / length if self.normalize_embeddings and length else total

    def _encode(self, item: Any, normalize: bool, encode_kwargs: dict[str, Any] | None) -> np.ndarray:
        (vector,) = self._backend.embed(
            [item],
            show_progress_bar=self.progress_bar,
            normalize_embeddings=normalize,
            **(encode_kwargs or {}),
        )
        return np.asarray(vector)
