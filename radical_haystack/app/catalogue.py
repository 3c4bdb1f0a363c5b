# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The index of the drawn catalogue, which the app makes on first use."""

from collections.abc import Callable
from pathlib import Path

from radical_haystack.catalog import write_gallery
from radical_haystack.pipelines.first_stages import first_stage_of
from radical_haystack.pipelines.indexing import index_folder
from radical_haystack.vlm.calibration import cache_directory

PICTURES = 600
"""How many pictures of the drawn catalogue the app shows."""

Progress = Callable[[str, int, int], None]


def prepare_catalogue(
    folder: str | Path | None = None,
    *,
    pictures: int = PICTURES,
    progress: Progress = lambda step, done, total: None,
) -> Path:
    """
    Draw and index the bundled catalogue; what is there already is used again.

    :param folder: Where to; `None` for the user's cache directory.
    :param pictures: How many pictures.
    :param progress: Called with a step's name, what is done of it and its whole.
    :returns: The index's folder.
    :raises StoreError: If something else is in the index's place.
    """
    root = cache_directory() / "app" if folder is None else Path(folder)
    gallery = root / f"catalogue-{pictures}"
    progress("Drawing the catalogue", 0, 0)
    write_gallery(gallery, pictures)
    # An index of an earlier release's first stage stays as it is, beside the new one.
    digest = first_stage_of("bundled").weights_digest or ""
    store = root / f"index-{pictures}-{digest[:8]}"
    index_folder(gallery, store, progress=lambda *at: progress("Indexing the catalogue", *at))
    return store
