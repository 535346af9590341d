"""Curves of several seeds."""

import numpy as np

from coex.report.aggregate import aggregate


def curve(steps: list[float], values: list[float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(steps), np.array(values)


def test_curves_are_taken_together_where_all_of_them_are() -> None:
    both = aggregate([curve([0, 10], [0, 10]), curve([4, 20], [8, 40])], points=3)
    assert both is not None
    assert both.steps.tolist() == [4, 7, 10]
    assert both.middle.tolist() == [6, 10.5, 15]
    assert both.low is not None
    assert both.low.tolist() == [4, 7, 10]
    three = aggregate([curve([0, 1], [value, value]) for value in (1, 2, 6)], points=2)
    assert three is not None
    assert three.middle.tolist() == [3, 3]
    assert three.low is not None
    assert three.high is not None
    assert 1 <= three.low[0] < 3 < three.high[0] <= 6


def test_one_curve_is_itself_and_none_is_none() -> None:
    alone = aggregate([curve([1, 2, 5], [3, 4, 5]), curve([], [])])
    assert alone is not None
    assert (alone.steps.tolist(), alone.low) == ([1, 2, 5], None)
    assert aggregate([]) is None
    assert aggregate([curve([0, 1], [0, 0]), curve([2, 3], [0, 0])]) is None
