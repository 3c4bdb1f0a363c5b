# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Builders of the pipelines most users want. Each returns an ordinary Haystack pipeline, to be changed at will."""

from haystack import Pipeline
from haystack.components.writers import DocumentWriter
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import ComponentDevice
from haystack_integrations.components.retrievers.faiss import FAISSEmbeddingRetriever
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.components.rankers import RadicalRanker
from radical_haystack.pipelines.first_stages import first_stage_of


def build_indexing_pipeline(
    document_store: FAISSDocumentStore,
    first_stage: str = "bundled",
    *,
    root_path: str = "",
    file_path_meta_field: str = "file_path",
    batch_size: int = 32,
    device: ComponentDevice | None = None,
) -> Pipeline:
    """
    Build the pipeline that embeds documents by their images and writes them to the store.

    Run it with `{"embedder": {"documents": documents}}`. `embedder.unreadable` then holds the documents whose images
    could not be read, with the reason; `writer.documents_written` counts the others. A document with the id of a
    stored one replaces it.

    :param document_store: The store; its `embedding_dim` must be the first stage's.
    :param first_stage: A preset's name (see `FIRST_STAGES`) or a model for sentence-transformers.
    :param root_path: The folder that relative paths in the metadata start from and that none may leave; empty for none.
    :param file_path_meta_field: The metadata field that holds the path of a document's image.
    :param batch_size: Images per forward pass.
    :param device: Where to run the model; `None` for the default device.
    """
    embedder = first_stage_of(first_stage).image_embedder(
        device=device, batch_size=batch_size, root_path=root_path, file_path_meta_field=file_path_meta_field
    )
    pipeline = Pipeline()
    pipeline.add_component("embedder", embedder)
    pipeline.add_component("writer", DocumentWriter(document_store, policy=DuplicatePolicy.OVERWRITE))
    pipeline.connect("embedder.documents", "writer.documents")
    return pipeline


def build_text_to_image_pipeline(
    document_store: FAISSDocumentStore,
    first_stage: str = "bundled",
    *,
    ranker: RadicalRanker | None = None,
    candidates: int = 20,
    root_path: str = "",
    device: ComponentDevice | None = None,
) -> Pipeline:
    """
    Build the pipeline that retrieves images for a text query and reranks them.

    Run it with `{"embedder": {"text": query}, "ranker": {"query": query}}`; `ranker.documents` is the answer.

    :param document_store: The store, filled with the same first stage.
    :param first_stage: A preset's name (see `FIRST_STAGES`) or a model for sentence-transformers.
    :param ranker: The ranker; `None` for `RadicalRanker(root_path=root_path, device=device)`.
    :param candidates: How many images the first stage hands to the ranker.
    :param root_path: For the default ranker: the folder that relative paths start from and that none may leave.
    :param device: Where to run the models; `None` for the default device.
    """
    pipeline = Pipeline()
    pipeline.add_component("embedder", first_stage_of(first_stage).text_embedder(device=device))
    pipeline.add_component("retriever", FAISSEmbeddingRetriever(document_store=document_store, top_k=candidates))
    pipeline.add_component("ranker", ranker or RadicalRanker(root_path=root_path, device=device))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("retriever.documents", "ranker.documents")
    return pipeline
