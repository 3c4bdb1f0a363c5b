# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Indexes that `index_folder` made, opened with the first stage that they belong to."""

from dataclasses import dataclass
from pathlib import Path

from haystack import Pipeline
from haystack.utils import ComponentDevice
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from radical_haystack.pipelines.builders import build_text_to_image_pipeline
from radical_haystack.pipelines.first_stages import AnyFirstStage, EmbedderPair, FirstStage, first_stage_of
from radical_haystack.pipelines.stores import StoreError, StoreInfo, check_first_stage, open_store, read_store_info


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

    def __len__(self) -> int:
        return int(self.store.count_documents())

    def require_documents(self) -> None:
        """
        Refuse to go on with an empty index.

        :raises StoreError: If there is no document in it.
        """
        if not len(self):
            raise StoreError(f"The store at '{self.path}' is empty.")

    def retrieval_pipeline(self, *, candidates: int, device: ComponentDevice | None = None) -> Pipeline:
        """
        Build the pipeline of a text search without its ranker; `retriever.documents` is the first stage's order.

        :param candidates: How many images to retrieve.
        :param device: Where to run the first stage; `None` for the default device.
        """
        pipeline = build_text_to_image_pipeline(self.store, self.stage, candidates=candidates, device=device)
        pipeline.remove_component("ranker")
        return pipeline


def open_index(path: str | Path, first_stage: AnyFirstStage | None = None, *, trust_remote_code: bool = False) -> Index:
    """
    Open an index.

    :param path: Its folder.
    :param first_stage: The first stage, as `index_folder` took it; `None` for the one of the name in the store.
    :param trust_remote_code: Whether code that comes with the first stage's model may run.
    :raises StoreError: If there is none, it is damaged, or another first stage made it.
    """
    info = read_store_info(path)
    stage = first_stage_of(first_stage or info.first_stage, trust_remote_code=trust_remote_code)
    check_first_stage(path, info, stage)
    return Index(Path(path), info, stage, open_store(path))
