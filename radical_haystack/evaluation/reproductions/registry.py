# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""All reproductions by name."""

from radical_haystack.evaluation.reproductions.ablations import Ablations
from radical_haystack.evaluation.reproductions.base import Reproduction
from radical_haystack.evaluation.reproductions.cases import Cases
from radical_haystack.evaluation.reproductions.dynres import DynRes
from radical_haystack.evaluation.reproductions.efficiency import Efficiency
from radical_haystack.evaluation.reproductions.evidence import Evidence
from radical_haystack.evaluation.reproductions.fashioniq import FashionIQ
from radical_haystack.evaluation.reproductions.main import Main
from radical_haystack.evaluation.reproductions.models import Models
from radical_haystack.evaluation.reproductions.pareto import Pareto
from radical_haystack.evaluation.reproductions.reliability import LayerReliability
from radical_haystack.evaluation.reproductions.retrievers import Retrievers
from radical_haystack.evaluation.reproductions.sensitivity import Sensitivity
from radical_haystack.evaluation.reproductions.set_size import SetSize
from radical_haystack.evaluation.reproductions.similarity import Similarity
from radical_haystack.evaluation.reproductions.single_image import SingleImage
from radical_haystack.evaluation.reproductions.strategies import Strategies

REPRODUCTIONS: dict[str, Reproduction] = {
    one.name: one
    for one in (
        Main(),
        Efficiency(),
        Pareto(),
        Evidence(),
        Cases(),
        DynRes(),
        Similarity(),
        Models(),
        Ablations(),
        Strategies(),
        Sensitivity(),
        SetSize(),
        FashionIQ(),
        Retrievers(),
        LayerReliability(),
        SingleImage(),
    )
}
"""Each by its name, in the order in which all are measured and shown."""
