# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Measuring a model on a folder of images, once, before it is used."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from haystack import Document
from haystack.utils import ComponentDevice
from PIL import Image

from radical_haystack.components.bundled import resolve_model
from radical_haystack.components.image_loading import ImageReadError, find_images, load_document_images
from radical_haystack.pruning import PruningSchedule
from radical_haystack.vlm import ListwiseVLM

QUERIES = ("a person outdoors", "something red", "an animal", "an object on a table")
"""Queries to measure with where none are given; the profile depends on them very little [choice]."""


def calibrate_on_folder(
    folder: str | Path,
    *,
    model: str = "catalog-vlm-tiny",
    queries: Sequence[str] = QUERIES,
    candidates: int = 20,
    device: ComponentDevice | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PruningSchedule:
    """
    Measure a model's entropy profile on images of a folder and store it; rankers of this user use it from then on.

    :param folder: The folder; searched with its subfolders. Images that cannot be read are passed over.
    :param model: The model, as `RadicalRanker` takes it.
    :param queries: One unpruned pass is made for each.
    :param candidates: Images per query, taken from all over the folder.
    :param device: Where to run the model; `None` for the default device.
    :param progress: Called with the number of queries done and of all.
    :returns: The schedule for the default keep ratio.
    :raises FileNotFoundError: If there is no such folder.
    :raises ValueError: If a query is blank, or the folder has fewer than two images that can be read.
    """
    if not queries or not all(query.strip() for query in queries):
        raise ValueError("Calibration needs queries that are not blank.")
    paths = find_images(folder)
    vlm = ListwiseVLM.load(resolve_model(model), device=ComponentDevice.resolve_device(device).to_torch_str())

    def sets() -> Iterator[tuple[str, list[Image.Image]]]:
        # Different images for every query, where there are enough.
        stride = len(queries) if len(paths) >= candidates * len(queries) else 1
        for number, query in enumerate(queries):
            if progress:
                progress(number, len(queries))
            images = _readable(_spread(paths[number % stride :: stride], candidates))
            if len(images) < 2:
                raise ValueError(f"Calibration needs two images that can be read; '{folder}' has {len(images)}.")
            yield query, images

    schedule = vlm.calibrate(sets())
    if progress:
        progress(len(queries), len(queries))
    return schedule


def _spread(paths: Sequence[Path], wanted: int) -> list[Path]:
    """At most that many, at even distances."""
    count = min(wanted, len(paths))
    return [paths[number * len(paths) // count] for number in range(count)]


def _readable(paths: Sequence[Path]) -> list[Image.Image]:
    documents = [Document(meta={"file_path": str(path)}) for path in paths]
    return [image for image in load_document_images(documents) if not isinstance(image, ImageReadError)]
