"""Aggregates against SciPy and against all resamples there are."""

import itertools

import numpy as np
import pytest
from scipy.stats import bootstrap, trim_mean

from coex.results.statistics import aggregate, bootstrap_interval, interquartile_mean


@pytest.mark.parametrize("seeds", [1, 2, 3, 4, 5, 7, 8, 13])
def test_the_interquartile_mean_is_scipys_trimmed_mean(seeds):
    values = np.random.default_rng(seeds).normal(size=(seeds, 6))
    np.testing.assert_allclose(interquartile_mean(values), trim_mean(values, 0.25, axis=0))


def test_by_hand():
    assert interquartile_mean([1, 2, 3, 100]) == 2.5
    assert interquartile_mean([0, 3, 9]) == 4  # with 3 seeds it is the mean, as in the paper
    assert aggregate([1, 5]).value == 3
    assert aggregate([1, 5]).low is None


def test_the_interval_is_that_of_all_resamples():
    values = np.array([0.0, 1.0, 3.0, 8.0])
    means = [trim_mean(resample, 0.25) for resample in itertools.product(values, repeat=4)]
    low, high = bootstrap_interval(values, resamples=200_000)
    np.testing.assert_allclose([low, high], np.quantile(means, [0.025, 0.975]), atol=0.26)


def test_intervals_of_curves_are_those_of_their_points():
    values = np.random.default_rng(0).normal(size=(5, 3))
    low, high = bootstrap_interval(values)
    for point in range(3):
        assert (low[point], high[point]) == bootstrap_interval(values[:, point])
    assert (low < interquartile_mean(values)).all()
    assert (interquartile_mean(values) < high).all()


def test_the_interval_is_scipys_percentile_bootstrap() -> None:
    values = np.random.default_rng(0).normal(10, 3, size=9)
    low, high = bootstrap_interval(values)
    theirs = bootstrap(
        (values,), lambda x, axis: trim_mean(x, 0.25, axis=axis), method="percentile", rng=1
    ).confidence_interval
    assert low == pytest.approx(theirs.low, abs=0.2)
    assert high == pytest.approx(theirs.high, abs=0.2)
    assert bootstrap_interval(values) == (low, high)


def test_equal_seeds_leave_no_doubt() -> None:
    low, high = bootstrap_interval(np.full((4, 2), 7.0))
    assert low.tolist() == high.tolist() == [7.0, 7.0]
