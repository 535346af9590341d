"""Several seeds, against SciPy."""

import numpy as np
import pytest
from scipy import stats

from coex.report.statistics import aggregate, bootstrap_interval, iqm


@pytest.mark.parametrize("seeds", [1, 3, 4, 5, 8, 11])
def test_iqm_is_scipys_trimmed_mean(seeds: int) -> None:
    values = np.random.default_rng(seeds).normal(size=(seeds, 6))
    np.testing.assert_allclose(iqm(values), stats.trim_mean(values, 0.25, axis=0))


def test_iqm_by_hand() -> None:
    assert iqm([100.0, 1.0, 2.0, 3.0]) == 2.5
    assert iqm([1.0, 2.0, 6.0]) == 3.0


def test_the_interval_is_scipys_percentile_bootstrap() -> None:
    values = np.random.default_rng(0).normal(10, 3, size=9)
    low, high = bootstrap_interval(values)
    theirs = stats.bootstrap(
        (values,), lambda x, axis: stats.trim_mean(x, 0.25, axis=axis), method="percentile", rng=1
    ).confidence_interval
    assert low == pytest.approx(theirs.low, abs=0.2)
    assert high == pytest.approx(theirs.high, abs=0.2)
    assert bootstrap_interval(values) == (low, high)


def test_equal_seeds_leave_no_doubt() -> None:
    low, high = bootstrap_interval(np.full((4, 2), 7.0))
    assert low.tolist() == high.tolist() == [7.0, 7.0]


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
