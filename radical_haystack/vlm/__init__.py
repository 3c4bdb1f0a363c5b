# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face vision-language model made into a listwise reranker. Depends on transformers, not on Haystack."""

from radical_haystack.vlm.calibration import EntropyProfile
from radical_haystack.vlm.listwise import ListwiseVLM, Ranking
from radical_haystack.vlm.prompt import PromptLayout, PromptTemplate
from radical_haystack.vlm.pruned import prune
from radical_haystack.vlm.trace import PruningStage, PruningTrace

__all__ = [
    "EntropyProfile",
    "ListwiseVLM",
    "PromptLayout",
    "PromptTemplate",
    "PruningStage",
    "PruningTrace",
    "Ranking",
    "prune",
]
