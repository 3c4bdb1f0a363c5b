# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Rankings by a tiny random model of images of several shapes."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
from PIL import Image

from radical_haystack.pruning import PruningSchedule
from radical_haystack.vlm import ListwiseVLM, Ranking
from tests.vlm.conftest import noise, shared_model, shared_processor

SCHEDULE = PruningSchedule((2, 4), (0.6, 0.2), 0.3, model="tiny", entropies=(0.9, 0.95, 0.8, 0.7, 0.6, 0.85))
SIZES = ((64, 48), (20, 33), (32, 64), (48, 16), (40, 40), (90, 20))


@cache
def tiny_ranker() -> ListwiseVLM:
    return ListwiseVLM(shared_model(), shared_processor(), schedule=SCHEDULE)


def pictures(sizes: Sequence[tuple[int, int]] = SIZES) -> list[Image.Image]:
    return [noise(*size, seed=number) for number, size in enumerate(sizes)]


@pytest.fixture
def rank() -> Callable[..., Ranking]:
    """Rank images of noise; keyword arguments are those of `ListwiseVLM.rank`."""

    def call(images: Sequence[Image.Image] | None = None, **options: Any) -> Ranking:
        return tiny_ranker().rank("a red shirt", pictures() if images is None else images, **options)

    return call


@pytest.fixture
def images() -> list[Image.Image]:
    return pictures()


@pytest.fixture
def schedule() -> PruningSchedule:
    return SCHEDULE
