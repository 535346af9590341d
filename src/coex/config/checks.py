"""What settings may be: every configuration checks itself when it is made, by these rules and in these words."""

import typing
from collections.abc import Callable
from typing import Any

from coex.errors import UsageError


def check_settings(config: Any, *, counts: str = "", positive: str = "", weights: str = "", shares: str = "") -> None:
    """Raises UsageError for the first setting, by its name, that does not fit.

    Counts are 1 or more, weights 0 or more, shares from 0 to 1; a setting of a Literal type is one of its choices.
    """
    rules: list[tuple[str, Callable[[float], bool], str]] = [
        (counts, lambda value: value >= 1, "at least 1"),
        (positive, lambda value: value > 0, "positive"),
        (weights, lambda value: value >= 0, "at least 0"),
        (shares, lambda value: 0 <= value <= 1, "from 0 to 1"),
    ]
    for names, fits, rule in rules:
        for name in names.split():
            if not fits(getattr(config, name)):
                raise UsageError(f"{name} must be {rule}, not {getattr(config, name)}")
    for name, kind in typing.get_type_hints(type(config)).items():
        if typing.get_origin(kind) is typing.Literal:
            check_choice(name, getattr(config, name), kind)


def check_choice(name: str, value: Any, kind: Any) -> None:
    """Raises UsageError if the value is not one of a Literal's choices."""
    if value not in typing.get_args(kind):
        raise UsageError(f"{name} takes one of {', '.join(map(str, typing.get_args(kind)))}, not {value!r}")
