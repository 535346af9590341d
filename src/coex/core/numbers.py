"""What other people's programs give, taken as the numbers that it should be, or refused in one line."""

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coex.errors import UsageError


def whole(name: str, value: Any, least: int) -> int:
    """Returns a whole number, NumPy's among them, as Python's; raises UsageError for what is none, or too small."""
    try:
        number = int(operator.index(value))
    except TypeError:
        raise UsageError(f"{name} takes a whole number, not {value!r}") from None
    if number < least:
        raise UsageError(f"{name} must be at least {least}, not {number}")
    return number


def column(name: str, values: Any, size: int, dtype: Any) -> NDArray[Any]:
    """Returns (size,) of that type; raises UsageError for another shape, and where a number would be another one.

    That is so of halves as whole numbers, and of what is not finite.
    """
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # of unlike lengths; a tensor with gradients
        raise UsageError(f"{name} must be an array: {error}") from None
    if given.shape != (size,):
        raise UsageError(f"{name} must have the shape ({size},), not {given.shape}")
    if given.dtype.kind not in "biuf" or not np.isfinite(given).all():
        raise UsageError(f"{name} must be finite numbers, not {given.tolist()}")
    cast = given.astype(dtype)
    if cast.dtype.kind != "f" and not np.array_equal(cast, given):
        kind = "True and False" if cast.dtype.kind == "b" else "whole numbers"
        raise UsageError(f"{name} must be {kind}, not {given.tolist()}")
    return cast
