# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The indexes that the app searches: the user's own, or the drawn catalogue's, which is made on first use."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.catalog import write_gallery
from radical_haystack.catalog.gallery import CAPTIONS_FILE
from radical_haystack.pipelines.first_stages import EmbedderPair, FirstStage, first_stage_of
from radical_haystack.pipelines.indexing import index_folder
from radical_haystack.pipelines.stores import StoreInfo, check_first_stage, open_store, read_store_info
from radical_haystack.vlm.calibration import cache_directory

PICTURES = 600
"""How many pictures of the drawn catalogue the app shows."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Index:
    """
    An index that can be searched.

    :param path: Its folder.
    :param info: What made it.
    :param stage: The first stage it belongs to.
    :param store: Its documents.
    """

    path: Path
    info: StoreInfo
    stage: FirstStage | EmbedderPair
    store: FAISSDocumentStore

    @property
    def label(self) -> str:
        """What it is called: its first stage, the folder that was indexed, and how many images it holds."""
        return f"{self.info.first_stage} · {Path(self.info.root_path).name} ({len(self):,})"

    @property
    def drawn(self) -> bool:
        """Whether it is the drawn catalogue's: its captions, which name garments, lie beside the pictures."""
        captions = Path(self.info.root_path) / CAPTIONS_FILE
        return captions.is_file() and '"garments"' in captions.read_text(encoding="utf-8", errors="replace")

    def __len__(self) -> int:
        return int(self.store.count_documents())


def open_index(path: str | Path) -> Index:
    """
    Open an index that `index_folder` made.

    :param path: Its folder.
    :raises StoreError: If there is none, it is damaged, or the first stage has other weights now.
    """
    info = read_store_info(path)
    stage = first_stage_of(info.first_stage)
    check_first_stage(path, info, stage)
    return Index(Path(path), info, stage, open_store(path))


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
