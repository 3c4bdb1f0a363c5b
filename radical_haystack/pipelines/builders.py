# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Builders of the pipelines most users want. Each returns an ordinary Haystack pipeline, to be changed at will."""

from typing import Any

from haystack import Pipeline
from haystack.components.retrievers.types import EmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.types import DocumentStore, DuplicatePolicy
from haystack.utils import ComponentDevice

from radical_haystack.components.composed_query import ComposedQueryBuilder, ReferenceFilter
from radical_haystack.components.rankers import RadicalRanker
from radical_haystack.components.retrievers import (
    FirstStageMarker,
    FirstStageRetriever,
    find_retriever,
    store_dimension,
)
from radical_haystack.pipelines.first_stages import AnyFirstStage, first_stage_of


def build_indexing_pipeline(
    document_store: DocumentStore,
    first_stage: AnyFirstStage = "bundled",
    *,
    root_path: str = "",
    file_path_meta_field: str = "file_path",
    batch_size: int = 32,
    trust_remote_code: bool = False,
    device: ComponentDevice | None = None,
) -> Pipeline:
    """
    Build the pipeline that embeds documents by their images and writes them to the store.

    Run it with `{"embedder": {"documents": documents}}`. Documents carry the first stage's name into the store, so that
    it cannot be searched with another by mistake. `embedder.unreadable` then holds the documents whose images
    could not be read, with the reason; `writer.documents_written` counts the others. A document with the id of a
    stored one replaces it.

    :param document_store: Any document store; if it holds embeddings of one length only, it must be the first stage's.
    :param first_stage: A preset's name (see `FIRST_STAGES`), a model for sentence-transformers, a `FirstStage` or an
        `EmbedderPair`.
    :param root_path: The folder that relative paths in the metadata start from and that none may leave; empty for none.
    :param file_path_meta_field: The metadata field that holds the path of a document's image.
    :param batch_size: Images per forward pass.
    :param trust_remote_code: Whether code that comes with the first stage's model may run.
    :param device: Where to run the model; `None` for the default device.
    :raises ValueError: If the model needs code that comes with it and must not run.
    """
    stage = first_stage_of(first_stage, trust_remote_code=trust_remote_code)
    embedder = stage.image_embedder(
        device=device, batch_size=batch_size, root_path=root_path, file_path_meta_field=file_path_meta_field
    )
    pipeline = Pipeline()
    pipeline.add_component("embedder", embedder)
    marker = FirstStageMarker(first_stage=stage.name, dimension=store_dimension(document_store))
    pipeline.add_component("marker", marker)
    pipeline.add_component("writer", DocumentWriter(document_store, policy=DuplicatePolicy.OVERWRITE))
    pipeline.connect("embedder.documents", "marker.documents")
    pipeline.connect("marker.documents", "writer.documents")
    return pipeline


def build_text_to_image_pipeline(
    document_store: DocumentStore,
    first_stage: AnyFirstStage = "bundled",
    *,
    retriever: EmbeddingRetriever | None = None,
    ranker: RadicalRanker | None = None,
    candidates: int = 20,
    root_path: str = "",
    trust_remote_code: bool = False,
    device: ComponentDevice | None = None,
) -> Pipeline:
    """
    Build the pipeline that retrieves images for a text query and reranks them.

    Run it with `{"embedder": {"text": query}, "ranker": {"query": query}}`; `ranker.documents` is the answer.

    :param document_store: Any document store, filled with the same first stage.
    :param first_stage: A preset's name (see `FIRST_STAGES`), a model for sentence-transformers, a `FirstStage` or an
        `EmbedderPair`.
    :param retriever: An embedding retriever of the store; `None` for the one that belongs to it. It is asked for
        `candidates` documents, whatever its own `top_k`.
    :param ranker: The ranker; `None` for `RadicalRanker(root_path=root_path, device=device)`.
    :param candidates: How many images the first stage hands to the ranker.
    :param root_path: For the default ranker: the folder that relative paths start from and that none may leave.
    :param trust_remote_code: Whether code that comes with the first stage's model may run.
    :param device: Where to run the models; `None` for the default device.
    :raises ValueError: If no retriever is known for the store, or the model needs code that comes with it and must not
        run.
    """
    stage = first_stage_of(first_stage, trust_remote_code=trust_remote_code)
    pipeline = Pipeline()
    pipeline.add_component("embedder", stage.text_embedder(device=device))
    retriever = retriever or find_retriever(document_store)
    checked = FirstStageRetriever(retriever=retriever, first_stage=stage.name, top_k=candidates)
    pipeline.add_component("retriever", checked)
    pipeline.add_component("ranker", ranker or RadicalRanker(root_path=root_path, device=device))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("retriever.documents", "ranker.documents")
    return pipeline


def build_composed_pipeline(
    document_store: DocumentStore,
    first_stage: AnyFirstStage = "bundled",
    *,
    retriever: EmbeddingRetriever | None = None,
    ranker: RadicalRanker | None = None,
    candidates: int = 20,
    exclude_reference: bool = True,
    root_path: str = "",
    trust_remote_code: bool = False,
    device: ComponentDevice | None = None,
) -> Pipeline:
    """
    Build the pipeline that retrieves images for a reference image and a change to it, and reranks them.

    Run it with `{"builder": {"reference_image": image, "modification": "is blue instead"}}`; `ranker.documents` is the
    answer.

    :param document_store: Any document store, filled with the same first stage.
    :param first_stage: A preset's name (see `FIRST_STAGES`), a model for sentence-transformers, a `FirstStage` or an
        `EmbedderPair`.
    :param retriever: An embedding retriever of the store; `None` for the one that belongs to it. It is asked for
        `candidates` documents, whatever its own `top_k`.
    :param ranker: The ranker; `None` for `RadicalRanker(root_path=root_path, device=device)`. Its root is that of a
        reference given as a path, too.
    :param candidates: How many images the first stage hands to the ranker.
    :param exclude_reference: Whether the reference itself, if it is in the store, is taken out before the ranking (see
        `ReferenceFilter`).
    :param root_path: For the default ranker: the folder that relative paths start from and that none may leave.
    :param trust_remote_code: Whether code that comes with the first stage's model may run.
    :param device: Where to run the models; `None` for the default device.
    :raises ValueError: If no retriever is known for the store, or the model needs code that comes with it and must not
        run.
    """
    stage = first_stage_of(first_stage, trust_remote_code=trust_remote_code)
    ranker = ranker or RadicalRanker(root_path=root_path, device=device)
    source: dict[str, Any] = {"file_path_meta_field": ranker.file_path_meta_field, "root_path": ranker.root_path}
    found = candidates + exclude_reference  # the reference leaves as many candidates as if it were not there
    pipeline = Pipeline()
    pipeline.add_component("builder", ComposedQueryBuilder(**source))
    pipeline.add_component("embedder", stage.composed_embedder(device=device))
    if exclude_reference:  # added before the retriever, so that a pipeline read from YAML is written as the same YAML
        pipeline.add_component("reference_filter", ReferenceFilter(top_k=candidates, **source))
    retriever = retriever or find_retriever(document_store)
    checked = FirstStageRetriever(retriever=retriever, first_stage=stage.name, top_k=found)
    pipeline.add_component("retriever", checked)
    pipeline.add_component("ranker", ranker)
    pipeline.connect("builder.composed_query", "embedder.composed_query")
    pipeline.connect("builder.composed_query", "ranker.composed_query")
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    if exclude_reference:
        pipeline.connect("builder.composed_query", "reference_filter.composed_query")
        pipeline.connect("retriever.documents", "reference_filter.documents")
        pipeline.connect("reference_filter.documents", "ranker.documents")
    else:
        pipeline.connect("retriever.documents", "ranker.documents")
    return pipeline
