# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Composed search: "like this image, but ...".

    python examples/composed_search.py                                       # on drawn outfits; needs no network
    python examples/composed_search.py photos photos/dog.jpg "is a puppy"    # your own; choose real models below first

The reference may lie anywhere. If it is one of the indexed images, it is not among the results.
"""

import sys

from radical_haystack.catalog import write_gallery
from radical_haystack.components import RadicalRanker, load_image
from radical_haystack.pipelines import build_composed_pipeline, index_folder, open_store

# These two know the drawn outfits only. For photographs: "qwen3-vl-embedding-2b", which reads an image and a text
# together, and "Qwen/Qwen3-VL-4B-Instruct"; both are downloaded on first use.
FIRST_STAGE = "bundled"
MODEL = "catalog-vlm-tiny"


def main(folder: str = "", reference: str = "", change: str = "is blue instead") -> None:
    """Print the images of the folder, or of a drawn one, that are like the reference but changed."""
    if not folder:
        folder, reference = "outfits", "outfits/outfit-0007.jpg"
        write_gallery(folder, 48)
    index = f"{folder.rstrip('/')}-index"
    index_folder(folder, index, first_stage=FIRST_STAGE)

    ranker = RadicalRanker(model=MODEL, root_path=folder, top_k=5)
    pipeline = build_composed_pipeline(open_store(index), FIRST_STAGE, ranker=ranker)
    # Loaded here, because the pipeline takes paths from inside the folder only.
    query = {"reference_image": load_image(reference), "modification": change}
    answer = pipeline.run({"builder": query})

    print(f"{reference}, but: {change}")
    for document in answer["ranker"]["documents"]:
        print(f"{document.meta['radical']['rank']}. {document.meta['file_path']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
