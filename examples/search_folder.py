# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Text search over a folder of pictures: index it, find candidates with the first stage, rerank them with RaDiCal.

    python examples/search_folder.py                             # draws a few outfits first; needs no network
    python examples/search_folder.py photos "a dog by the sea"   # your own; choose real models below first

The index is kept beside the folder, and a second run embeds only what is new.
"""

import sys

from radical_haystack.catalog import write_gallery
from radical_haystack.pipelines import index_folder, search_folder

# These two know the drawn outfits only. For photographs: "siglip2-base-patch16-512" (runs on a CPU) or
# "qwen3-vl-embedding-2b", and "Qwen/Qwen3-VL-4B-Instruct"; both are downloaded on first use.
FIRST_STAGE = "bundled"
MODEL = "catalog-vlm-tiny"


def main(folder: str = "", query: str = "a red checked dress") -> None:
    """Index the folder, or a drawn one, and print the best images for the query."""
    if not folder:
        folder = "outfits"
        write_gallery(folder, 48)
    index = f"{folder.rstrip('/')}-index"
    report = index_folder(folder, index, first_stage=FIRST_STAGE)
    print(f"{report.total} images in '{index}', {report.indexed} of them embedded now")
    for file, reason in report.unreadable.items():
        print(f"skipped {file}: {reason}")

    print(f"\n{query}")
    for document in search_folder(index, query, model=MODEL, top_k=5):
        figures = document.meta["radical"]
        before, kept, total = figures["first_stage_rank"], figures["kept_tokens"], figures["total_tokens"]
        print(f"{figures['rank']}. {document.meta['file_path']} (first stage: {before}; {kept} of {total} tokens kept)")


if __name__ == "__main__":
    main(*sys.argv[1:])
