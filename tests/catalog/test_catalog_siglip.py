# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The bundled first stage: one space for texts and images, whatever they are batched with, and the last choice left."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from radical_haystack.catalog import benchmark_text, bundled_model_path, draw


@pytest.fixture(scope="module")
def encoder() -> SentenceTransformer:
    return SentenceTransformer(str(bundled_model_path("catalog-siglip-tiny")), device="cpu")


def test_any_text_becomes_a_unit_vector(encoder):
    vectors = encoder.encode(["a red shirt", "", "ünï 漢字", "blue trousers " * 60])
    assert vectors.shape == (4, 96)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_a_text_has_the_same_vector_whatever_its_case_and_company(encoder):
    alone = encoder.encode(["A red Shirt"])[0]
    together = encoder.encode(["a red shirt", "a long-sleeved red shirt worn with blue striped trousers"])[0]
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_grades_hard_sets_and_leaves_the_last_choice_to_the_reranker(encoder):
    items = benchmark_text(1, 10)
    right, graded = [], []
    for item in items:
        pictures = encoder.encode([draw(outfit, scene).image for outfit, scene in item.candidates])
        scores = pictures @ encoder.encode(item.query.text)
        right.append(int(scores.argmax()) == item.target_index)
        graded.append(np.corrcoef(scores, item.relevances)[0, 1])
    assert np.mean(right) < 0.9
    assert np.mean(graded) > 0.3
