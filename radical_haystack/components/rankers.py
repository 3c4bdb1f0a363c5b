# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The ranker: a listwise vision-language model behind Haystack's ranker interface."""

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.utils import ComponentDevice, Secret
from haystack.utils.hf import serialize_hf_model_kwargs
from haystack.utils.misc import _deduplicate_documents
from PIL import Image

from radical_haystack.components.bundled import resolve_model
from radical_haystack.components.composed_query import ComposedQuery
from radical_haystack.components.image_loading import ImageReadError, ImageSource, load_document_images, load_image
from radical_haystack.components.serializing import with_model_kwargs
from radical_haystack.pruning import PRUNERS, PruningSchedule
from radical_haystack.vlm import ListwiseVLM, PromptTemplate, Ranking
from radical_haystack.vlm.listwise import windows

logger = logging.getLogger(__name__)


@component
class RadicalRanker:
    """
    Reorders image documents by how well they match a query, with a listwise vision-language model.

    All candidates and the query are read in one prompt. Visual tokens that do not help to tell the candidates apart are
    pruned on the way through the model (RaDiCal, arXiv 2609.00667), which saves a large part of the dense cost.

    A document's image is its `blob`, if that holds an image or a PDF, or the file that `meta["file_path"]` names; a PDF
    needs `meta["page_number"]`. Input documents are not changed. Output documents have a new `score` and in
    `meta["radical"]`: `rank` (from 1), `first_stage_rank`, `first_stage_score`, `kept_tokens`, `total_tokens`.

    ```python
    from haystack import Document
    from radical_haystack.components import RadicalRanker

    ranker = RadicalRanker(model="Qwen/Qwen3-VL-4B-Instruct", root_path="photos")
    documents = [Document(meta={"file_path": name}) for name in ("beach.jpg", "forest.jpg", "street.jpg")]
    ranked = ranker.run(query="a dog running by the sea", documents=documents)["documents"]
    ```
    """

    def __init__(
        self,
        *,
        model: str = "catalog-vlm-tiny",
        keep_ratio: float = 0.2,
        num_pruning_layers: int = 4,
        layer_gap: int = 2,
        schedule: PruningSchedule | None = None,
        pruner: str = "radical",
        scoring: Literal["logits", "generate"] = "logits",
        top_k: int = 10,
        window_size: int = 20,
        window_step: int = 10,
        max_pixels: int | None = None,
        file_path_meta_field: str = "file_path",
        root_path: str | None = None,
        device: ComponentDevice | None = None,
        dtype: str | None = None,
        token: Secret | None = Secret.from_env_var(["HF_API_TOKEN", "HF_TOKEN"], strict=False),
        model_kwargs: dict[str, Any] | None = None,
        prompt_template: PromptTemplate | None = None,
        raise_on_failure: bool = False,
    ) -> None:
        """
        Create the component; the model is loaded by `warm_up` or the first run.

        :param model: A hub name or folder of a vision-language model of a supported family (Qwen3-VL). The default is
            the small model that comes with this package: it knows the drawn catalogue only. For photographs choose a
            real one, such as `"Qwen/Qwen3-VL-4B-Instruct"`.
        :param keep_ratio: Share of the candidates' visual tokens that reaches the last layers, in (0, 1].
        :param num_pruning_layers: How many layers to prune at, if the schedule is made by calibration.
        :param layer_gap: Least distance between two of them.
        :param schedule: The pruning layers and trust coefficients. `None`: the published one if there is, else one
            measured on the first queries and stored for the next time. `keep_ratio` replaces its own.
        :param pruner: How to prune: `"radical"`, `"dense"` (not at all), or the name of a method to compare with (see
            `PRUNERS`), such as `"fastv"`, `"visionzip"` or `"lowres"`.
        :param scoring: `"logits"`: one forward pass scores all candidates; `"generate"`: the model writes the order.
        :param top_k: How many documents to return at most.
        :param window_size: The most candidates read together; more are ranked in windows from the back to the front.
        :param window_step: By how many candidates the window moves.
        :param max_pixels: Most pixels of an image as the model sees it; `None` for the model's own limit.
        :param file_path_meta_field: The metadata field that holds the path of an image or PDF.
        :param root_path: The folder that relative paths start from and that no path may leave. `None`: no such limit.
        :param device: Where to run the model; `None` for the default device.
        :param dtype: The model's number format, such as `"bfloat16"`; `None`: float32 on a CPU, else as it was saved.
        :param token: The token for private models of the hub.
        :param model_kwargs: Further arguments for `from_pretrained`, such as `attn_implementation`.
        :param prompt_template: The words around the images.
        :param raise_on_failure: Whether an unreadable image is an error. If not, the document is ranked last with the
            reason in `meta["radical"]["error"]` and no score, and one warning is logged.
        :raises ValueError: If a value is out of range.
        """
        _check_top_k(top_k)
        _check(0 < keep_ratio <= 1, f"keep_ratio must be in (0, 1], but got {keep_ratio}")
        _check(num_pruning_layers > 0, f"num_pruning_layers must be > 0, but got {num_pruning_layers}")
        _check(layer_gap > 0, f"layer_gap must be > 0, but got {layer_gap}")
        _check(pruner in PRUNERS, f"pruner must be one of {', '.join(sorted(PRUNERS))}, but got {pruner!r}")
        _check(scoring in ("logits", "generate"), f"scoring must be 'logits' or 'generate', but got {scoring!r}")
        _check(max_pixels is None or max_pixels > 0, f"max_pixels must be > 0, but got {max_pixels}")
        windows(0, window_size, window_step)  # refuses what no ranking would take
        self.model = model
        self.keep_ratio = keep_ratio
        self.num_pruning_layers = num_pruning_layers
        self.layer_gap = layer_gap
        self.schedule = schedule
        self.pruner = pruner
        self.scoring = scoring
        self.top_k = top_k
        self.window_size = window_size
        self.window_step = window_step
        self.max_pixels = max_pixels
        self.file_path_meta_field = file_path_meta_field
        self.root_path = root_path
        self.device = ComponentDevice.resolve_device(device)
        self.dtype = dtype
        self.token = token
        self.model_kwargs = model_kwargs
        self.prompt_template = prompt_template
        self.raise_on_failure = raise_on_failure
        self._vlm: ListwiseVLM | None = None
        self._lock = threading.Lock()

    def to_dict(self) -> dict[str, Any]:
        """
        Serialize the component.

        :returns: A dictionary of plain values, for `from_dict` and for pipelines in YAML.
        """
        data = default_to_dict(
            self,
            model=self.model,
            keep_ratio=self.keep_ratio,
            num_pruning_layers=self.num_pruning_layers,
            layer_gap=self.layer_gap,
            schedule=json.loads(self.schedule.to_json()) if self.schedule else None,
            pruner=self.pruner,
            scoring=self.scoring,
            top_k=self.top_k,
            window_size=self.window_size,
            window_step=self.window_step,
            max_pixels=self.max_pixels,
            file_path_meta_field=self.file_path_meta_field,
            root_path=self.root_path,
            device=self.device,
            dtype=self.dtype,
            token=self.token,
            model_kwargs=deepcopy(self.model_kwargs),
            prompt_template=self.prompt_template.to_dict() if self.prompt_template else None,
            raise_on_failure=self.raise_on_failure,
        )
        serialize_hf_model_kwargs(data["init_parameters"]["model_kwargs"] or {})
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "RadicalRanker":
        """
        Make the component from what `to_dict` returned.

        :param data: The dictionary; it is left as it is.
        """
        copied = with_model_kwargs(data)
        parameters = copied.get("init_parameters", {})
        if parameters.get("schedule"):
            parameters["schedule"] = PruningSchedule.from_json(json.dumps(parameters["schedule"]))
        if parameters.get("prompt_template"):
            parameters["prompt_template"] = PromptTemplate.from_dict(parameters["prompt_template"])
        return default_from_dict(cls, copied)

    def warm_up(self) -> None:
        """Load the model, once."""
        with self._lock:
            if self._vlm is None:
                self._vlm = ListwiseVLM.load(
                    resolve_model(self.model),
                    device=self.device.to_torch_str(),
                    dtype=self.dtype,
                    token=self.token.resolve_value() if self.token else None,
                    model_kwargs=self.model_kwargs,
                    template=self.prompt_template,
                    schedule=self.schedule,
                    num_pruning_layers=self.num_pruning_layers,
                    layer_gap=self.layer_gap,
                    max_pixels=self.max_pixels,
                )

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str | None = None,
        *,
        documents: list[Document],
        top_k: int | None = None,
        reference_image: ImageSource | None = None,
        composed_query: ComposedQuery | None = None,
    ) -> dict[str, list[Document]]:
        """
        Rank documents by how well their images match the query.

        Duplicates are removed first: of documents with one id the best scored stays.

        :param query: What is asked for; with a reference image, what shall be different from it. If it is blank, the
            documents without duplicates are returned as they are, in their order, and `top_k` is not applied. Left out
            where there is a composed query.
        :param documents: The candidates, in the first stage's order.
        :param top_k: How many documents to return at most; overrides the component's.
        :param reference_image: The reference image of a composed query: a path (under `root_path`), a `ByteStream`, an
            `ImageContent`, a `Document` or a PIL image. Its tokens are never pruned.
        :param composed_query: Text and reference image in one, as `ComposedQueryBuilder` makes it; takes the place of
            `query` and `reference_image`.
        :returns: `documents`: at most `top_k` copies, best first.
        :raises ValueError: If `top_k` is not greater than 0, there is no query or more than one, the reference image
            cannot be read, or, with `raise_on_failure`, the image of a document cannot be read.
        """
        top_k = self.top_k if top_k is None else top_k
        _check_top_k(top_k)
        query, reference_image = _one_query(query, reference_image, composed_query)
        if not documents:
            return {"documents": []}
        documents = _deduplicate_documents(documents)
        if not query.strip():
            logger.warning(
                "Empty query provided to RadicalRanker. Returning the deduplicated input documents unranked."
            )
            return {"documents": documents}

        source = {"file_path_meta_field": self.file_path_meta_field, "root_path": self.root_path or ""}
        images = load_document_images(documents, **source)
        errors = {place: image for place, image in enumerate(images) if isinstance(image, ImageReadError)}
        self._report(list(errors.values()), len(documents))
        readable = [place for place in range(len(documents)) if place not in errors]
        reference = None if reference_image is None else load_image(reference_image, **source)
        ranked = []
        if readable:
            pictures = [image for image in images if not isinstance(image, ImageReadError)]
            ranking = self._rank(query.strip(), pictures, reference)
            ranked = [_ranked(documents[readable[k]], readable[k], ranking, k) for k in ranking.order]
        ranked += [_unranked(documents[place], place, str(error)) for place, error in errors.items()]
        return {"documents": [_with_rank(document, rank) for rank, document in enumerate(ranked[:top_k], start=1)]}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str | None = None,
        *,
        documents: list[Document],
        top_k: int | None = None,
        reference_image: ImageSource | None = None,
        composed_query: ComposedQuery | None = None,
    ) -> dict[str, list[Document]]:
        """
        Do what `run` does in a thread, so that the event loop goes on.

        :param query: See `run`.
        :param documents: See `run`.
        :param top_k: See `run`.
        :param reference_image: See `run`.
        :param composed_query: See `run`.
        :returns: See `run`.
        """
        return await asyncio.to_thread(
            self.run,
            query,
            documents=documents,
            top_k=top_k,
            reference_image=reference_image,
            composed_query=composed_query,
        )

    def _report(self, errors: Sequence[ImageReadError], total: int) -> None:
        if errors and self.raise_on_failure:
            raise errors[0]
        if errors:
            logger.warning(
                "RadicalRanker ranks {unreadable} of {total} documents last, their images cannot be read: {reasons}",
                unreadable=len(errors),
                total=total,
                reasons=" ".join(map(str, errors)),
            )

    def _rank(self, query: str, images: list[Image.Image], reference_image: Image.Image | None) -> Ranking:
        self.warm_up()
        assert self._vlm is not None
        return self._vlm.rank(
            query,
            images,
            reference_image,
            pruner=self.pruner,
            keep_ratio=self.keep_ratio,
            scoring=self.scoring,
            window_size=self.window_size,
            window_step=self.window_step,
        )


def _ranked(document: Document, place: int, ranking: Ranking, candidate: int) -> Document:
    """A copy with the score and figures of its candidate; `place` is its index in the first stage's order."""
    return _with_figures(
        document,
        place,
        score=ranking.scores[candidate],
        kept_tokens=ranking.kept_tokens[candidate],
        total_tokens=ranking.total_tokens[candidate],
        fallback=ranking.fallback,
        calibrating=ranking.metadata["calibrating"],
    )


def _unranked(document: Document, place: int, reason: str) -> Document:
    return _with_figures(document, place, score=None, kept_tokens=0, total_tokens=0, error=reason)


def _with_figures(document: Document, place: int, *, score: float | None, **figures: object) -> Document:
    radical = {"first_stage_rank": place + 1, "first_stage_score": document.score, **figures}
    return replace(document, score=score, meta={**document.meta, "radical": radical})


def _with_rank(document: Document, rank: int) -> Document:
    return replace(document, meta={**document.meta, "radical": {"rank": rank, **document.meta["radical"]}})


def _one_query(
    query: str | None, reference_image: ImageSource | None, composed_query: ComposedQuery | None
) -> tuple[str, ImageSource | None]:
    """The text and the reference image, whichever way they were given."""
    if composed_query is None:
        _check(isinstance(query, str), f"a query or a composed_query is needed, but got query={query!r}")
        return str(query), reference_image
    _check(
        query is None and reference_image is None,
        "composed_query takes the place of query and reference_image, but one of them was given as well",
    )
    return composed_query.text, composed_query.reference_image


def _check_top_k(top_k: int) -> None:
    _check(top_k > 0, f"top_k must be > 0, but got {top_k}")


def _check(valid: bool, message: str) -> None:
    if not valid:
        raise ValueError(f"RadicalRanker: {message}.")
