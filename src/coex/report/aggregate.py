"""Curves of several seeds as one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coex.results.statistics import MIN_SEEDS, Floats, bootstrap_interval, interquartile_mean


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
    if len(curves) < MIN_SEEDS:
        return Curve(grid, values.mean(0), values.min(0), values.max(0))
    return Curve(grid, interquartile_mean(values), *bootstrap_interval(values))
