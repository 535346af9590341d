"""Pseudo-counts (Bellemare et al. 2016): how often a picture was seen, by what one more look does to its density."""

import numpy as np
from numpy.typing import NDArray

_FLOOR = 0.01  # added to a pseudo-count: a picture that was never seen earns 10
_LARGEST_GAIN = 700.0  # nats, beyond which exp overflows and the count is 0

Floats = NDArray[np.float64]


def pseudo_counts(before: Floats, after: Floats) -> Floats:
    """N̂ = ρ(1 − ρ')/(ρ' − ρ) of log ρ and log ρ'; infinite where a look did not make the picture likelier."""
    gain = after - before
    with np.errstate(divide="ignore"):
        counts = -np.expm1(np.minimum(after, 0.0)) / np.expm1(np.clip(gain, 0.0, _LARGEST_GAIN))
    return np.where(gain > 0, np.where(gain > _LARGEST_GAIN, 0.0, counts), np.inf)


def count_bonus(counts: Floats) -> Floats:
    """(N̂ + 0.01)^−½."""
    bonus: Floats = (counts + _FLOOR) ** -0.5
    return bonus
