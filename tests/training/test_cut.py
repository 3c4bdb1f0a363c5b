# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What stays behind the middle layer in training is the evidence: pockets, then garments, then the rest."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from training.train_listwise import evidence_first

SETS, CANDIDATES, TOKENS = 2, 3, 10
BACKGROUND, POCKETS = (0,), (2, 4)


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, CANDIDATES * TOKENS))
def test_evidence_stays_before_all_else(seed, count):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 5, (SETS, CANDIDATES, TOKENS), generator=generator)
    kept = evidence_first(labels, count, generator)
    assert kept.shape == (SETS, count)
    for flat, numbers in zip(labels.flatten(1), kept, strict=True):
        assert len(numbers.unique()) == count
        of_each = {
            "pocket": torch.isin(flat, torch.tensor(POCKETS)),
            "background": torch.isin(flat, torch.tensor(BACKGROUND)),
        }
        pockets = int(of_each["pocket"].sum())
        garments = int((~of_each["background"]).sum())
        assert int(of_each["pocket"][numbers].sum()) == min(count, pockets)
        assert int(of_each["background"][numbers].sum()) == max(0, count - garments)


@given(seed=st.integers(0, 2**32 - 1))
def test_a_small_garment_keeps_as_much_as_a_large_one(seed):
    labels = torch.tensor([1] * 3 + [3] * 27).view(1, 1, -1)
    kept = evidence_first(labels, 6, torch.Generator().manual_seed(seed))
    assert sorted(labels.flatten()[kept[0]].tolist()) == [1, 1, 1, 3, 3, 3]
