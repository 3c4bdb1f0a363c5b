# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The reliability curve, read back from the figure."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from radical_haystack import viz
from radical_haystack.evaluation.diagnostics import Reliability

RELIABILITY = Reliability(
    model="tiny",
    sets=4,
    permutations=1000,
    seed=0,
    layers=(0, 1, 2, 3),
    z=(0.1, 1.5, -0.2, 2.0),
    errors=(0.2, 0.3, 0.4, 0.5),
    rho=(0.0, 0.4, -0.1, 0.5),
    entropies=(0.95, 0.8, 0.9, 0.7),
    baselines={"U": 0.3, "Q": 0.9, "UxQ": 1.1},
    pearson=0.93,
)


def test_what_is_drawn() -> None:
    figure = viz.reliability_curve(RELIABILITY, title="any $title")
    axes, sharpness = figure.axes
    assert axes.get_title(loc="left") == "any $title"
    z, _, (bars,) = axes.containers[0]
    assert tuple(z.get_xdata()) == RELIABILITY.layers
    assert tuple(z.get_ydata()) == RELIABILITY.z
    spans = [tuple(segment[:, 1]) for segment in bars.get_segments()]
    expected = [(mean - error, mean + error) for mean, error in zip(RELIABILITY.z, RELIABILITY.errors, strict=True)]
    assert np.allclose(spans, expected)
    (curve,) = sharpness.get_lines()
    assert curve.get_ydata() == pytest.approx([0.05, 0.2, 0.1, 0.3])
    horizontal = {line.get_label(): line.get_ydata()[0] for line in axes.get_lines() if len(line.get_xdata()) == 2}
    for name, value in RELIABILITY.baselines.items():
        assert horizontal[f"{name} (z, no attention)"] == value
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["attention (z)", "$1 - H_{norm}$"]
    assert [label.split()[0] for label in labels[2:]] == ["U", "Q", "UxQ"]
    assert "Pearson r = 0.93" in [text.get_text() for text in axes.texts]


def test_what_is_not_known_is_not_drawn(tmp_path: Path) -> None:
    figure = viz.reliability_curve(replace(RELIABILITY, errors=None, pearson=None))
    assert not any("Pearson" in text.get_text() for text in figure.axes[0].texts)
    assert figure.axes[0].containers[0][2] == ()
    assert viz.save_figure(figure, tmp_path / "curve.svg").stat().st_size > 1000
