"""Charts, against positions worked out by hand."""

import re

import numpy as np
import pytest

from coex.report.charts import Line, Mark, chart, keep_apart, make_axis, short, thin_out, tick_label


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 37, [0, 10, 20, 30, 40]),
        (0, 0.9, [0, 0.25, 0.5, 0.75, 1]),
        (0, 1, [0, 0.25, 0.5, 0.75, 1]),
        (0, 0, [0, 0.25, 0.5, 0.75, 1]),
        (0, 6635, [0, 2000, 4000, 6000, 8000]),
        (-21, 20, [-40, -20, 0, 20]),
        (0, 4e-5, [0, 1e-5, 2e-5, 3e-5, 4e-5]),
    ],
)
def test_axes_are_round(low: float, high: float, ticks: list[float]) -> None:
    axis = make_axis(low, high)
    assert axis.ticks == pytest.approx(ticks)
    assert (axis.low, axis.high) == (axis.ticks[0], axis.ticks[-1])


@pytest.mark.parametrize(
    ("high", "ticks"), [(1, [0, 1]), (3, [0, 1, 2, 3]), (9, [0, 5, 10]), (100, [0, 25, 50, 75, 100])]
)
def test_whole_numbers_have_whole_ticks(high: float, ticks: list[float]) -> None:
    assert make_axis(0, high, whole=True).ticks == ticks


@pytest.mark.parametrize(
    ("high", "value", "label"),
    [
        (40, 10, "10"),
        (1, 0.25, "0.25"),
        (10, 2.5, "2.5"),
        (8000, 2000, "2,000"),
        (30_000, 10_000, "10k"),
        (0.2, 0.05, "0.05"),
    ],
)
def test_tick_labels_have_the_decimals_they_need(high: float, value: float, label: str) -> None:
    assert tick_label(value, make_axis(0, high)) == label


def test_short_numbers() -> None:
    assert [short(value) for value in (0.0, 1.234, 45.67, 1234.5, -3.5, 36827.0)] == [
        "0",
        "1.23",
        "45.7",
        "1,234",
        "−3.50",
        "36.8k",
    ]


def line(values: list[float], label: str = "", steps: list[float] | None = None) -> Line:
    return Line(label, np.array(steps or range(0, 100 * len(values), 100), float), np.array(values, float))


def test_a_line_goes_through_its_points() -> None:
    drawn = chart("t", "u", [line([0, 10, 40])])
    assert re.findall(r'class="line c0".* d="([^"]*)"', drawn) == ["M0.0 1000.0L500.0 750.0L1000.0 0.0"]
    assert '<span class="x" style="left:50.0%">100</span>' in drawn
    assert '<span class="y" style="top:75.0%">10</span>' in drawn
    assert '<span class="end c0" style="left:100.0%;top:0.0%">40</span>' in drawn


def test_a_band_goes_there_above_and_back_below() -> None:
    banded = Line("", np.array([0.0, 1.0]), np.array([2.0, 2.0]), np.array([1.0, 0.0]), np.array([3.0, 4.0]))
    assert 'class="band c0" d="M0.0 250.0L1000.0 0.0L1000.0 1000.0L0.0 750.0Z"' in chart("t", "u", [banded])


def test_a_mark_is_on_the_scale_unless_it_would_flatten_the_curve() -> None:
    near = chart("t", "u", [line([0, 10])], [Mark(20, "the paper")])
    assert '<path class="rule" d="M0 0.0H1000"/>' in near
    assert ">20</span>" in near
    far = chart("t", "u", [line([0, 10])], [Mark(6635, "the paper")])
    assert "rule" not in far
    assert "↑ the paper, beyond this scale" in far


def test_nothing_measured_nothing_drawn() -> None:
    assert chart("t", "u", [line([])]) == ""
    assert 'd="M1000.0 ' in chart("t", "u", [line([3.0], steps=[500])])


def test_labels_are_escaped() -> None:
    drawn = chart("<t>", "&", [line([1, 2], '<b>"'), line([1, 2], "other")], [Mark(1, "<i>")])
    assert "<b>&quot;" not in drawn.replace("<b>&lt;t&gt;</b>", "")
    assert "<i>" not in drawn


def test_long_lines_are_thinned_out_to_their_ends() -> None:
    thin = thin_out(line(list(range(10_000))))
    assert (len(thin.steps), thin.values[0], thin.values[-1]) == (150, 0, 9_999)


def test_labels_stay_with_lines_that_end_elsewhere() -> None:
    def distance(*lines: Line) -> float:
        one, other = re.findall(r'class="end[^>]*top:([\d.]+)%', chart("Title", "unit", lines))
        return abs(float(one) - float(other))

    first = line([0, 50], steps=[0, 100])
    assert distance(first, line([0, 51, 51], steps=[0, 100, 200])) < 3
    assert distance(first, line([0, 51], steps=[0, 101])) > 5


def test_labels_keep_apart_within_the_chart() -> None:
    assert keep_apart([10, 12, 50], 9) == [10, 19, 50]
    assert keep_apart([95, 99, 100], 9) == [82, 91, 100]
