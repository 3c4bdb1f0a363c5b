# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the figures show, read back from them."""

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

from radical_haystack.catalog import benchmark_text, bundled_model_path, draw
from radical_haystack.pruning import PruningSchedule, trust_coefficients
from radical_haystack.viz import (
    alpha_curve,
    dimmed,
    entropy_profile,
    layer_retention,
    masks_from_indices,
    pareto,
    pruning_layers,
    retention_overlay,
    save_figure,
    token_budget,
    token_masks,
)
from radical_haystack.viz.figures import TRUTH, shortened
from radical_haystack.viz.profile import MARKED
from radical_haystack.vlm import EntropyProfile, ListwiseVLM, Ranking

Rank = Callable[..., Ranking]


def table(figure: Figure, columns: int) -> list[list[np.ndarray]]:
    """The drawn arrays by row (the images themselves first) and column, told by where their axes lie."""
    rows: dict[float, list[tuple[float, np.ndarray]]] = {}
    for axes in figure.axes:
        place = axes.get_position(original=True)
        rows.setdefault(round(place.y0, 6), []).append((place.x0, np.asarray(axes.images[0].get_array())))
    drawn = [[array for _, array in sorted(rows[y], key=lambda pair: pair[0])] for y in sorted(rows, reverse=True)]
    assert all(len(row) == columns for row in drawn)
    return drawn


def undimmed(drawn: np.ndarray, image: Image.Image, grid: tuple[int, int]) -> int:
    """How many tokens of a drawn image are the image's own."""
    rows, columns = grid
    own = dimmed(image, np.ones(grid, dtype=bool))
    same = (drawn == own).all(axis=2)
    side = drawn.shape[0] // rows
    return int(same.reshape(rows, side, columns, side).all(axis=(1, 3)).sum())


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


class TestRetention:
    def test_undimmed_patches_are_the_kept_tokens(self, rank: Rank, images: list[Image.Image]) -> None:
        methods = {name: rank(pruner=name) for name in ("lowres", "radical", "random", "visionzip", "dense")}
        figure = retention_overlay(methods, images)
        order = methods["lowres"].order
        head, *rows = table(figure, len(images))
        for candidate, array in zip(order, head, strict=True):
            grid = token_masks(methods["radical"])[candidate].shape
            assert undimmed(array, images[candidate], grid) == methods["radical"].total_tokens[candidate]
        for ranking, row in zip(methods.values(), rows, strict=True):
            for candidate, array in zip(order, row, strict=True):
                grid = token_masks(ranking)[candidate].shape
                assert undimmed(array, images[candidate], grid) == ranking.kept_tokens[candidate]

    def test_bundled_model_on_the_catalogue(self) -> None:
        item = benchmark_text(0, 1, 5)[0]
        images = [draw(outfit, scene).image for outfit, scene in item.candidates]
        ranking = ListwiseVLM.load(str(bundled_model_path("catalog-vlm-tiny"))).rank(item.query.text, images)
        assert pruning_layers(ranking)
        figure = retention_overlay({"radical": ranking}, truth=[item.target_index])
        _, row = table(figure, 5)
        kept = [undimmed(row[n], images[c], (8, 8)) for n, c in enumerate(ranking.order)]
        assert kept == [ranking.kept_tokens[candidate] for candidate in ranking.order]

    def test_candidates_and_captions_in_the_given_order(self, rank: Rank, images: list[Image.Image]) -> None:
        ranking = rank()
        figure = retention_overlay({"radical": ranking}, images, order=[4, 0, 2], labels=[f"n{k}" for k in range(6)])
        assert [text for text in texts(figure) if text.startswith("n")] == ["n4", "n0", "n2"]
        captions = [text for text in texts(figure) if text.startswith("#")]
        assert captions == [
            f"#{ranking.order.index(k) + 1}  {ranking.kept_tokens[k]}/{ranking.total_tokens[k]}" for k in (4, 0, 2)
        ]
        head, _ = table(figure, 3)
        for candidate, array in zip((4, 0, 2), head, strict=True):
            grid = token_masks(ranking)[candidate].shape
            assert (array == dimmed(images[candidate], np.ones(grid, dtype=bool))).all()

    def test_only_the_ground_truth_is_framed(self, rank: Rank, images: list[Image.Image]) -> None:
        methods = {"radical": rank(), "random": rank(pruner="random")}
        figure = retention_overlay(methods, images, order=range(6), truth=[3])
        colours = [{to_hex(spine.get_edgecolor()) for spine in axes.spines.values()} for axes in figure.axes]
        widths = [{spine.get_linewidth() for spine in axes.spines.values()} for axes in figure.axes]
        lefts = [axes.get_position(original=True).x0 for axes in figure.axes]
        column = sorted(set(lefts))[3]
        for colour, width, left in zip(colours, widths, lefts, strict=True):
            assert (colour == {TRUTH}) == (left == column)
            assert (min(width) > 1) == (left == column)
        assert [text for text in texts(figure) if "✓" in text] == ["✓ candidate 3"]

    def test_from_token_indices_alone(self, images: list[Image.Image]) -> None:
        grids = [(3, 4), (2, 1), (4, 2), (1, 3), (2, 2), (1, 5)]
        masks = masks_from_indices([0, 5, 12, 20], grids)
        _, row = table(retention_overlay({"by hand": masks}, images), 6)
        counts = [undimmed(*cell) for cell in zip(row, images, grids, strict=True)]
        assert counts == [2, 1, 1, 0, 0, 0]

    def test_outline_separates_kept_from_dropped(self, images: list[Image.Image]) -> None:
        mask = np.zeros((3, 4), dtype=bool)
        mask[1, 1:3] = True
        figure = retention_overlay({"by hand": [mask]}, images[:1])
        (line,) = figure.axes[1].lines
        points = np.array(line.get_data()).T.reshape(-1, 3, 2)
        edges = {frozenset([tuple(start), tuple(end)]) for start, end, _ in points.tolist()}
        around = [
            ((1, 1), (2, 1)),
            ((2, 1), (3, 1)),
            ((1, 2), (2, 2)),
            ((2, 2), (3, 2)),
            ((1, 1), (1, 2)),
            ((3, 1), (3, 2)),
        ]
        assert edges == {frozenset(edge) for edge in around}
        assert not figure.axes[0].lines[0].get_xdata().size

    def test_one_row_per_pruning_layer(self, rank: Rank, images: list[Image.Image]) -> None:
        ranking = rank()
        figure = layer_retention(ranking, order=range(6))
        _, *rows = table(figure, 6)
        (trace,) = ranking.traces
        assert [text for text in texts(figure) if text.startswith("after")] == ["after layer 2", "after layer 4"]
        for stage, row in zip(trace.stages, rows, strict=True):
            counts = [undimmed(*cell) for cell in zip(row, images, trace.grids, strict=True)]
            assert tuple(counts) == stage.kept_per_candidate

    def test_the_decoders_input_is_a_layer_too(self, rank: Rank) -> None:
        assert "decoder's input" in texts(layer_retention(rank(pruner="visionzip")))

    def test_hostile_words_are_drawn_as_they_are(self, rank: Rank, images: list[Image.Image], tmp_path: Path) -> None:
        title, label = r"$\frac{1$ <b> " + "long " * 40, "$x^$ \n tab\t.jpg"
        figure = retention_overlay({"$\\bad$": rank()}, images, title=title, labels=[label] * 6)
        assert save_figure(figure, tmp_path / "hostile.png").stat().st_size > 1000
        width, height = figure.get_size_inches()
        figure.draw_without_rendering()
        for text in figure.texts:
            box = text.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
            assert -0.01 <= box.x0 <= box.x1 <= width + 0.01
            assert -0.01 <= box.y0 <= box.y1 <= height + 0.01

    @pytest.mark.parametrize("size", [(600, 2), (2, 600)])
    def test_strips_are_drawn(self, rank: Rank, size: tuple[int, int]) -> None:
        images = [Image.new("RGB", size, "red"), Image.new("RGB", (30, 30), "blue")]
        ranking = rank(images)
        figure = retention_overlay({"radical": ranking}, images, order=[0, 1])
        _, row = table(figure, 2)
        assert undimmed(row[0], images[0], token_masks(ranking)[0].shape) == ranking.kept_tokens[0]
        figure.draw_without_rendering()
        box = figure.axes[0].get_window_extent()
        assert 1 / 9 < box.width / box.height < 9

    def test_what_does_not_fit_is_refused(self, rank: Rank, images: list[Image.Image]) -> None:
        ranking = rank()
        for call, message in (
            (lambda: retention_overlay({}, images), "at least one method"),
            (lambda: retention_overlay({"none": []}, []), "at least one candidate"),
            (lambda: retention_overlay({"radical": ranking}, images[:2]), "2 images, but 'radical' is of 6"),
            (lambda: retention_overlay({"radical": ranking}, images, order=[0, 6]), r"\[6\] do not exist"),
            (lambda: retention_overlay({"radical": ranking}, images, truth=[-1]), r"\[-1\] do not exist"),
            (lambda: retention_overlay({"radical": ranking}, images, labels=["a"]), "6 candidates, but 1 labels"),
            (lambda: layer_retention(rank(pruner="dense")), "no pruning layers"),
        ):
            with pytest.raises(ValueError, match=message):
                call()


class TestProfiles:
    def marks(self, figure: Figure) -> tuple[list[float], list[float]]:
        (line,) = (line for line in figure.axes[0].lines if line.get_label() == MARKED)
        return list(line.get_xdata()), list(line.get_ydata())

    def guides(self, figure: Figure) -> list[float]:
        lines = [line for line in figure.axes[0].lines if list(line.get_ydata()) == [0, 1]]
        return [line.get_xdata()[0] for line in lines if line.get_xdata()[0] == line.get_xdata()[1]]

    def test_entropy_marks_exactly_the_schedules_layers(self, schedule: PruningSchedule) -> None:
        figure = entropy_profile(schedule)
        assert self.marks(figure) == ([2, 4], [0.8, 0.6])
        assert self.guides(figure) == [2, 4]
        (curve,) = (line for line in figure.axes[0].lines if line.get_label() == "$H_{norm}$")
        assert tuple(curve.get_ydata()) == schedule.entropies

    def test_a_profile_or_numbers_mark_what_they_are_told(self, schedule: PruningSchedule) -> None:
        profile = EntropyProfile("tiny", schedule.entropies, 1, complete=True)
        for given_profile in (profile, list(schedule.entropies)):
            assert self.marks(entropy_profile(given_profile))[0] == []
            assert self.marks(entropy_profile(given_profile, [1, 5]))[0] == [1, 5]

    def test_alpha_curve(self, schedule: PruningSchedule) -> None:
        figure = alpha_curve(schedule)
        alphas = trust_coefficients(schedule.entropies)
        assert self.marks(figure) == ([2, 4], [alphas[2], alphas[4]])
        (curve,) = (line for line in figure.axes[0].lines if line.get_label() == "α")
        assert list(curve.get_ydata()) == alphas

    def test_a_published_schedule_shows_its_layers_only(self) -> None:
        published = PruningSchedule.published("Qwen3-VL-4B-Instruct")
        figure = alpha_curve(published)
        assert self.marks(figure) == ([7, 22, 24, 29], [0.84, 0.43, 0.22, 0.0])
        assert not [line for line in figure.axes[0].lines if line.get_label() == "α"]
        with pytest.raises(ValueError, match="calibrate"):
            entropy_profile(published)
        with pytest.raises(ValueError, match=r"\[3\] are not known"):
            alpha_curve(published, [3, 7])

    def test_layers_that_do_not_exist_are_refused(self, schedule: PruningSchedule) -> None:
        for function in (entropy_profile, alpha_curve):
            with pytest.raises(ValueError, match=r"\[6\] do not exist"):
                function(schedule, [2, 6])

    def test_axes_are_labelled(self, schedule: PruningSchedule) -> None:
        for figure in (entropy_profile(schedule), alpha_curve(schedule), pareto({"a": [(1, 2)]})):
            axes = figure.axes[0]
            assert axes.get_xlabel()
            assert axes.get_ylabel()
            assert axes.get_title(loc="left")


numbers = st.integers(0, 4).map(float)
series = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=4)


class TestPareto:
    @settings(max_examples=30)
    @given(st.dictionaries(st.sampled_from("abcdefghi"), series, min_size=1), st.sampled_from([1, -1]))
    def test_one_line_per_method_and_hollow_where_beaten(
        self, methods: dict[str, list[tuple[float, float]]], sign: int
    ) -> None:
        figure = pareto(methods, cost="flops_saved_pct" if sign > 0 else "keep_ratio")
        scale = 1 if sign > 0 else 100
        lines = [line for line in figure.axes[0].lines if line.get_label() in methods]
        assert [line.get_label() for line in lines] == list(methods)
        every = [point for points in methods.values() for point in points]
        drawn = [
            line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())
        ]
        hollow = sorted((x / scale, y) for line in drawn for x, y in zip(*line.get_data(), strict=True))
        beaten = []
        for x, y in every:
            better = [(a, b) for a, b in every if sign * a >= sign * x and b >= y and (a != x or b != y)]
            if better:
                beaten.append((x, y))
        assert hollow == sorted(beaten)
        for line, points in zip(lines, methods.values(), strict=True):
            assert sorted((x / scale, y) for x, y in zip(*line.get_data(), strict=True)) == sorted(points)

    def test_lines_differ_without_colour(self) -> None:
        figure = pareto({f"method {number}": [(0, number)] for number in range(13)})
        lines = [line for line in figure.axes[0].lines if str(line.get_label()).startswith("method")]
        assert len({line.get_marker() for line in lines}) == 13
        assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 13

    def test_no_points_are_refused(self) -> None:
        with pytest.raises(ValueError, match="at least one point"):
            pareto({"a": []})


class TestBudget:
    def test_bars_are_the_token_counts(self, rank: Rank) -> None:
        methods = {"radical": rank(), "lowres": rank(pruner="lowres")}
        figure = token_budget(methods, truth=[2])
        order = methods["radical"].order
        for axes, ranking in zip(figure.axes, methods.values(), strict=True):
            total, kept = axes.containers
            assert [bar.get_height() for bar in total] == [ranking.total_tokens[k] for k in order]
            assert [bar.get_height() for bar in kept] == [ranking.kept_tokens[k] for k in order]
            assert [order[n] for n, bar in enumerate(kept) if bar.get_hatch()] == [2]
            counts = [f"{'✓ ' if k == 2 else ''}{ranking.kept_tokens[k]}" for k in order]
            assert [text.get_text() for text in axes.texts] == counts
        ticks = [tick.get_text() for tick in figure.axes[-1].get_xticklabels()]
        assert ticks == [f"candidate {k}" for k in order]

    def test_what_does_not_fit_is_refused(self, rank: Rank, images: list[Image.Image]) -> None:
        with pytest.raises(ValueError, match="at least one method"):
            token_budget({})
        with pytest.raises(ValueError, match="'b' ranks 2 candidates, the first method 6"):
            token_budget({"a": rank(), "b": rank(images[:2])})
        with pytest.raises(ValueError, match=r"\[9\] do not exist"):
            token_budget({"a": rank()}, order=[9])


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("PDF", b"%PDF"), ("svg", b"<?xml")])
def test_figures_are_saved_by_suffix(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = save_figure(pareto({"a": [(1, 2)]}), tmp_path / "new folder" / f"picture.{suffix}")
    assert path.is_absolute()
    assert path.read_bytes().startswith(start)


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    for name in ("picture.gif", "picture", "png"):
        with pytest.raises(ValueError, match="png, pdf, svg"):
            save_figure(pareto({"a": [(1, 2)]}), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_pyplot_and_global_settings_are_left_alone(
    rank: Rank, images: list[Image.Image], schedule: PruningSchedule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it fails from now on
    names = [name for name in matplotlib.rcParams if name != "backend"]  # asking for that one imports it
    before = [matplotlib.rcParams[name] for name in names]
    ranking = rank()
    figures = [
        retention_overlay({"radical": ranking}, images),
        layer_retention(ranking),
        entropy_profile(schedule),
        alpha_curve(schedule),
        pareto({"a": [(1, 2)]}),
        token_budget({"radical": ranking}),
    ]
    for number, figure in enumerate(figures):
        save_figure(figure, tmp_path / f"{number}.svg")
    assert [matplotlib.rcParams[name] for name in names] == before


def test_without_matplotlib_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'radical-haystack\[viz\]'"):
        pareto({"a": [(1, 2)]})
    assert dimmed(Image.new("RGB", (8, 8)), np.ones((1, 1), dtype=bool)).any() == np.False_


@given(st.text(max_size=60), st.integers(1, 30))
def test_shortened(text: str, length: int) -> None:
    short, line = shortened(text, length), " ".join(text.split())
    assert len(short) == min(len(line), length)
    assert short == line or (line.startswith(short.split("…")[0]) and "…" in short)
