"""Aggregates over seeds: interquartile means and bootstrap intervals."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

MIN_SEEDS = 3  # for an interval
_RESAMPLES, _LEVEL = 2_000, 0.95


class Aggregate(NamedTuple):
    """(…) over seeds; without an interval where there are too few of them."""

    value: Floats
    low: Floats | None
    high: Floats | None


def aggregate(values: ArrayLike) -> Aggregate:
    """(n, …) one row a seed: the interquartile mean with its interval from 3 seeds on, the mean below."""
    values = np.asarray(values, np.float64)
    if len(values) < MIN_SEEDS:
        return Aggregate(values.mean(0), None, None)
    return Aggregate(interquartile_mean(values), *bootstrap_interval(values))


def interquartile_mean(values: ArrayLike, axis: int = 0) -> Floats:
    """The mean without the lowest and the highest quarter, rounded down: of 3 seeds, the plain mean."""
    ordered = np.sort(np.moveaxis(np.asarray(values, np.float64), axis, 0), axis=0)
    cut = len(ordered) // 4
    middle: Floats = ordered[cut : len(ordered) - cut].mean(0)
    return middle


def bootstrap_interval(values: ArrayLike, resamples: int = _RESAMPLES) -> tuple[Floats, Floats]:
    """(n, …) -> the 95 % percentile interval of the interquartile mean, over seeds drawn with replacement."""
    values = np.asarray(values, np.float64)
    draws = np.random.default_rng(0).integers(len(values), size=(resamples, len(values)))  # the same at every call
    means = interquartile_mean(values[draws], axis=1)  # (resamples, …)
    low, high = np.quantile(means, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    return low, high
