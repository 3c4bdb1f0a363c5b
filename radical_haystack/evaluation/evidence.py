# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How much of what a catalogue query asks for is left after pruning; the drawings know which tokens show it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from radical_haystack.catalog import Outfit, Scene, draw, evidence_tokens
from radical_haystack.evaluation.datasets import CatalogueDataset, DatasetQuery
from radical_haystack.viz.masks import TokenMask, pruning_layers, token_masks
from radical_haystack.vlm import Ranking

Masks: TypeAlias = Sequence[NDArray[np.bool_]]

_REMEMBERED = 2**15
"""Truth masks kept, some hundred bytes each: every method is measured on the same pictures."""


@dataclass(frozen=True)
class EvidenceShares:
    """
    What is left at one place, as shares in [0, 1].

    :param target: Of the evidence of the candidates that the query asks for; `None` if none is there.
    :param candidates: Of the evidence of all candidates.
    :param chance: Of all visual tokens: what a method that picks at random would keep of the evidence.
    """

    target: float | None
    candidates: float | None
    chance: float


@dataclass(frozen=True)
class EvidenceRetention:
    """
    How much evidence one ranking kept.

    :param layers: What is left after each pruning layer, by layer; -1 is the decoder's input.
    :param end: What is left at the end.
    :param target_tokens: Number of evidence tokens of the candidates that the query asks for.
    :param candidate_tokens: Number of evidence tokens of all candidates.
    """

    layers: dict[int, EvidenceShares]
    end: EvidenceShares
    target_tokens: int
    candidate_tokens: int

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values for JSON; `layers` is a list, each entry with its `layer`."""
        layers = [{"layer": layer, **asdict(shares)} for layer, shares in self.layers.items()]
        return {**asdict(self), "layers": layers}


def evidence_retention(
    dataset: CatalogueDataset, query: DatasetQuery, document_ids: Sequence[str], ranking: Ranking
) -> EvidenceRetention | None:
    """
    Measure how much evidence a ranking's pruning left.

    Evidence are the visual tokens that show a garment worn where the query asks for one: at least 30% of the token's
    cell is covered by it, its pocket included. In the benchmark the target shows nothing but what is asked for; other
    candidates show garments that differ in a few attributes, which are evidence against them.

    Of a method that merges tokens, those at whose position one is left count as kept. A method that resizes images
    loses no part of them, it shows all evidence in fewer and coarser tokens, so that its share would be 1 by
    definition: there is no figure for it [choice].

    :param dataset: The catalogue.
    :param query: The query.
    :param document_ids: The candidates, in the order in which they were given to the ranker.
    :param ranking: The ranking, by any method; in several windows the last pass of each candidate counts.
    :returns: The figures, or `None` if images were resized.
    :raises ValueError: If the number of candidates is not the ranking's, or its traces do not tell their token grids.
    """
    if len(document_ids) != len(ranking.order):
        raise ValueError(f"The ranking has {len(ranking.order)} candidates, but {len(document_ids)} ids are given.")
    end = token_masks(ranking)
    if tuple(mask.size for mask in end) != ranking.total_tokens:
        return None
    wanted = dataset.items[query.id].query
    pictures = [dataset.scenes[name] for name in document_ids]
    truth = [
        _truth(*picture, wanted.garment_indices(picture[0]), *mask.shape)
        for picture, mask in zip(pictures, end, strict=True)
    ]
    targets = [place for place, (outfit, _) in enumerate(pictures) if wanted.matches(outfit)]
    return EvidenceRetention(
        layers={layer: _shares(token_masks(ranking, layer), truth, targets) for layer in pruning_layers(ranking)},
        end=_shares(end, truth, targets),
        target_tokens=sum(int(truth[place].sum()) for place in targets),
        candidate_tokens=sum(int(mask.sum()) for mask in truth),
    )


@lru_cache(maxsize=_REMEMBERED)
def _truth(outfit: Outfit, scene: Scene, garments: tuple[int, ...], rows: int, columns: int) -> TokenMask:
    return evidence_tokens(draw(outfit, scene).masks, garments, rows, columns)


def _shares(kept: Masks, truth: Masks, targets: Sequence[int]) -> EvidenceShares:
    everything = [np.ones_like(mask) for mask in kept]
    left = _share(kept, everything)
    assert left is not None
    own = _share([kept[place] for place in targets], [truth[place] for place in targets])
    return EvidenceShares(target=own, candidates=_share(kept, truth), chance=left)


def _share(kept: Masks, wanted: Masks) -> float | None:
    total = sum(int(mask.sum()) for mask in wanted)
    found = sum(int((mask & other).sum()) for mask, other in zip(kept, wanted, strict=True))
    return found / total if total else None
