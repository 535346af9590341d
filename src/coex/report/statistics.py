"""What several seeds say together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

LEAST_SEEDS = 3  # for an interval that means something
_RESAMPLES = 2_000
_CONFIDENCE = 0.95


def iqm(values: ArrayLike) -> Floats:
    """The interquartile mean over the first axis: the mean without the lowest and the highest quarter."""
    ordered = np.sort(np.asarray(values, np.float64), axis=0)
    cut = len(ordered) // 4
    return np.asarray(ordered[cut : len(ordered) - cut].mean(axis=0))


def bootstrap_interval(values: ArrayLike, seed: int = 0) -> tuple[Floats, Floats]:
    """The 95 % percentile interval of the IQM over the first axis, from resampled seeds: (S, …) → (…), (…)."""
    values = np.asarray(values, np.float64)
    picks = np.random.default_rng(seed).integers(len(values), size=(len(values), _RESAMPLES))  # (S, B)
    means = iqm(values[picks])  # (B, …)
    low, high = np.quantile(means, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2], axis=0)
    return low, high


@dataclass(frozen=True)
class Curve:
    """One method's curve over its seeds; the band is their interval, or their range when they are few."""

    steps: Floats  # (P,)
    middle: Floats  # (P,)
    low: Floats | None = None  # (P,)
    high: Floats | None = None


def aggregate(curves: Sequence[tuple[Floats, Floats]], points: int = 120) -> Curve | None:
    """The curve of several seeds' (steps, values), where all of them have values; None where there is no such place."""
    curves = [(steps, values) for steps, values in curves if len(steps)]
    if not curves:
        return None
    if len(curves) == 1:
        return Curve(*curves[0])
    first, last = max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves)
    if first > last:
        return None
    grid = np.linspace(first, last, points if last > first else 1)
    values = np.stack([np.interp(grid, steps, values) for steps, values in curves])  # (S, P)
    if len(curves) < LEAST_SEEDS:
        return Curve(grid, values.mean(0), values.min(0), values.max(0))
    return Curve(grid, iqm(values), *bootstrap_interval(values))
