# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
The same search with Qdrant in place of FAISS. Needs: pip install "radical-haystack[qdrant]"

    python examples/qdrant_store.py     # Qdrant's engine inside this process, on drawn outfits; needs no network

For a Qdrant server change the line that makes the store; nothing else differs.
"""

from pathlib import Path

from haystack import Document
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore

from radical_haystack.catalog import write_gallery
from radical_haystack.components import RadicalRanker
from radical_haystack.pipelines import FIRST_STAGES, build_indexing_pipeline, build_text_to_image_pipeline

FOLDER = "outfits"
FIRST_STAGE = FIRST_STAGES["bundled"]


def main() -> None:
    """Index drawn outfits into Qdrant, and search them."""
    write_gallery(FOLDER, 48)
    # With a server: QdrantDocumentStore(url="http://localhost:6333", index="outfits", embedding_dim=...)
    store = QdrantDocumentStore(":memory:", embedding_dim=FIRST_STAGE.dimension)

    documents = [Document(meta={"file_path": path.name}) for path in sorted(Path(FOLDER).glob("*.jpg"))]
    indexing = build_indexing_pipeline(store, FIRST_STAGE, root_path=FOLDER)
    written = indexing.run({"embedder": {"documents": documents}})["writer"]["documents_written"]
    print(f"{written} images in Qdrant")

    # Embedders and ranker are made here, the retriever that belongs to Qdrant is found.
    ranker = RadicalRanker(root_path=FOLDER, top_k=5)
    search = build_text_to_image_pipeline(store, FIRST_STAGE, ranker=ranker)
    query = "a green coat"
    answer = search.run({"embedder": {"text": query}, "ranker": {"query": query}})
    print(f"\n{query}")
    for document in answer["ranker"]["documents"]:
        print(f"{document.meta['radical']['rank']}. {document.meta['file_path']}")


if __name__ == "__main__":
    main()
