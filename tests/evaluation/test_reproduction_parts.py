# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The parts that reproductions are made of, against slow references."""

import csv
import io
import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from radical_haystack.evaluation.reproductions import Sheet, published
from radical_haystack.evaluation.reproductions.cases import RULES, choose
from radical_haystack.evaluation.reproductions.comparing import mean_difference
from radical_haystack.evaluation.reproductions.efficiency import analytic_savings, published_prompt
from radical_haystack.evaluation.reproductions.memory import peak_bytes
from radical_haystack.evaluation.reproductions.sensitivity import published_schedules
from radical_haystack.evaluation.reproductions.sheets import latex_text
from radical_haystack.evaluation.reproductions.similarity import equal_groups, mean_similarity
from radical_haystack.evaluation.reproductions.writing import MOST_BYTES, save_small
from radical_haystack.pruning import prefill_cost
from radical_haystack.viz.figures import new_figure
from radical_haystack.vlm import ListwiseVLM
from tests.vlm.conftest import noise

FLOPS_SAVED = {"radical": 43.8, "pyramiddrop": 53.3, "fastv": 70.8, "dart": 73.4}
KV_SAVED = {"radical": 39.0, "pyramiddrop": 50.1, "fastv": 67.4, "dart": 70.0}
"""The paper's analytic table at R = 0.2."""

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12)
keyed = st.dictionaries(
    st.tuples(st.integers(0, 3), st.text("abcdef", min_size=1, max_size=3)),
    st.sampled_from([0.0, 0.25, 0.5, 0.75]),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("method", FLOPS_SAVED)
def test_savings_on_paper_agree_with_the_paper(method: str) -> None:
    savings = analytic_savings(method, 0.2)
    assert savings is not None
    assert savings.flops_pct == pytest.approx(FLOPS_SAVED[method], abs=2.5)
    assert savings.kv_pct == pytest.approx(KV_SAVED[method], abs=2.5)
    assert savings.flops_pct_executed < savings.flops_pct
    smaller = analytic_savings(method, 0.1)
    assert smaller is not None
    assert smaller.flops_pct > savings.flops_pct


def test_what_acts_before_the_decoder_saves_as_much_as_a_shorter_prompt() -> None:
    visual, text = published_prompt()
    savings = analytic_savings("visionzip", 0.2)
    assert savings is not None
    short, whole = prefill_cost(published.SHAPE, -(-visual // 5), text), prefill_cost(published.SHAPE, visual, text)
    assert savings.flops_pct == savings.flops_pct_executed == pytest.approx(100 * (1 - short.flops / whole.flops))
    assert savings.kv_pct == pytest.approx(100 * (1 - short.kv_bytes / whole.kv_bytes))


def test_the_papers_prompt() -> None:
    visual, text = published_prompt()
    assert visual / (visual + text) == pytest.approx(0.924, abs=0.001)
    assert analytic_savings("dense", 0.2) is None
    assert analytic_savings("sparsevlm", 0.2) is None


def test_published_schedules_are_those_of_the_published_coefficients() -> None:
    assert published_schedules() == {
        (4, 2): (7, 22, 24, 29),
        (3, 2): (7, 22, 29),
        (4, 1): (7, 22, 24, 29),
        (4, 3): (4, 7, 22, 29),
    }


def test_only_known_values_stand_beside_measured_ones() -> None:
    assert published.main_mrr("mscoco", "radical", 0.2) == 59.09
    assert published.main_mrr("catalogue", "fastv", 0.2) == 72.99
    assert published.main_mrr("fashioniq", "dense", 1.0) == 41.94
    assert published.main_mrr("catalogue", "fastv", 0.1) is None
    assert published.main_mrr("catalogue", "random", 0.2) is None
    assert published.retriever_mrr("jina-embeddings-v4", "radical") == 85.38
    assert published.retriever_mrr("bundled", "dense") is None


@given(keyed, st.integers(1, 7))
def test_groups_are_consecutive_and_equal(values: Mapping[tuple[int, str], float], count: int) -> None:
    groups = equal_groups(values, count)
    flat = [key for group in groups for key in group]
    assert flat == [key for _, key in sorted((value, key) for key, value in values.items())]
    assert len(groups) == min(count, len(values))
    sizes = [len(group) for group in groups]
    assert max(sizes) - min(sizes) <= 1


def test_similarity_is_the_mean_over_all_pairs(tiny_vlm: str) -> None:
    vlm = ListwiseVLM.load(tiny_vlm, device="cpu")
    images = [noise(32 + 16 * number, 48, seed=number) for number in range(4)]
    means = [encoding.tokens.mean(0) for encoding in vlm.encode(images)]
    pairs = [float(torch.cosine_similarity(one, other, dim=0)) for one, other in combinations(means, 2)]
    assert mean_similarity(vlm, images) == pytest.approx(fmean(pairs), abs=1e-5)
    assert mean_similarity(vlm, [images[0], images[0]]) == pytest.approx(1.0, abs=1e-5)


def test_difference_is_paired_over_what_both_have() -> None:
    metrics = {
        ("a", 0.2): {(1, "q1"): 1.0, (1, "q2"): 0.5, (2, "q1"): 0.25, (1, "q3"): 1.0},
        ("b", 0.2): {(1, "q1"): 0.5, (1, "q2"): 0.5, (2, "q1"): 1.0},
    }
    results = SimpleNamespace(
        per_query=lambda method, ratio: {key: {"MRR@10": value} for key, value in metrics[method, ratio].items()}
    )
    found = mean_difference(results, ("a", 0.2), ("b", 0.2))
    assert found is not None
    assert found.mean == pytest.approx((0.5 + 0.0 - 0.75) / 3)
    assert found.low <= found.mean <= found.high


def test_peak_memory_counts_what_lives_at_one_time() -> None:
    weights = torch.randn(100, 100)

    def work() -> None:
        first = torch.zeros(100, 100)
        second = first @ weights
        del first
        view = weights.t()[:50]
        third = torch.cat([second, second])
        del third, second, view
        for _ in range(20):
            torch.zeros(100, 50).add_(1)

    assert peak_bytes(torch.device("cpu"), work) == 3 * 100 * 100 * 4
    assert peak_bytes(torch.device("cpu"), lambda: weights.view(-1)) == 0


def test_cases_are_chosen_by_rule() -> None:
    ranks = {
        "q1": {"dense": 1, "radical": 1, "fastv": 3},
        "q2": {"dense": 1, "radical": 1, "fastv": 7},
        "q3": {"dense": 1, "radical": 1, "fastv": 7},
        "q4": {"dense": 2, "radical": 9, "fastv": 1},
        "q5": {"dense": 1, "radical": 2, "fastv": 9},
    }
    agrees, fails = RULES
    assert choose(ranks, agrees) == "q2"
    assert choose(ranks, fails) == "q5"
    assert choose({"q4": ranks["q4"]}, agrees) is None


@given(st.lists(st.lists(texts, min_size=3, max_size=3), min_size=1, max_size=4), texts)
def test_tables_hold_any_text(rows: list[list[str]], title: str) -> None:
    sheet = Sheet(title, ("a", "b|c", "R & D_1"), tuple(tuple(row) for row in rows))
    assert list(csv.reader(io.StringIO(sheet.csv())))[1:] == rows
    lines = [line for line in sheet.markdown().splitlines()[2:] if line]
    assert len(lines) == len(rows) + 2
    for line in lines:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 4
    latex = [line for line in sheet.latex().splitlines() if line.endswith(r" \\") and line[0] != "%"]
    assert len(latex) == len(rows) + 1
    for line in latex:
        assert len(re.findall(r"(?<!\\)&", line)) == 2
    Console(file=io.StringIO()).print(sheet)


@given(texts)
def test_latex_finds_no_commands(text: str) -> None:
    known = (
        r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|textquotedbl)\{\}|\\[{}$&#%_]"
    )
    rest = re.sub(known + r"|\$(-|\\times|\\pm|\\Delta|\\leq|\\geq)\$", "", latex_text(text))
    assert not re.search(r"[\\{}$&#%_~^<>|\"]", rest)


def test_a_table_refuses_rows_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="2 columns"):
        Sheet("table", ("a", "b"), (("1",),))


def test_pictures_are_made_small(tmp_path: Path) -> None:
    figure = new_figure(7.0, 5.0)
    axes = figure.add_subplot()
    axes.imshow(torch.rand(250, 350, generator=torch.Generator().manual_seed(0)).numpy())
    path = tmp_path / "new" / "picture.png"
    save_small(figure, path)
    assert 0 < path.stat().st_size <= MOST_BYTES
