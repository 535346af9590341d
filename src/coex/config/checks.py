"""What a learner's settings may be."""

from collections.abc import Callable
from typing import Any

from coex.errors import UsageError


def check_settings(config: Any, *, counts: str = "", positive: str = "", weights: str = "", shares: str = "") -> None:
    """Refuses counts below 1, rates that are not positive, negative weights and shares outside [0, 1]."""
    rules: list[tuple[str, Callable[[float], bool], str]] = [
        (counts, lambda value: value >= 1, "be at least 1"),
        (positive, lambda value: value > 0, "be positive"),
        (weights, lambda value: value >= 0, "not be negative"),
        (shares, lambda value: 0 <= value <= 1, "be from 0 to 1"),
    ]
    for names, fits, rule in rules:
        for name in names.split():
            if not fits(getattr(config, name)):
                raise UsageError(f"{name} must {rule}, not {getattr(config, name)}")
