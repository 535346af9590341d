"""Nested settings by name: put into configurations, compared, read from files and from the command line."""

import dataclasses
import difflib
import json
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from coex.config.checks import check_choice
from coex.errors import UsageError

T = TypeVar("T")


def with_settings(config: T, settings: dict[str, Any], prefix: str = "") -> T:
    """`config` with nested `settings` put in; unknown names and wrong types are said, by their full name."""
    hints = typing.get_type_hints(type(config))
    changes: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in hints:
            raise UsageError(_unknown_setting(config, prefix + name, prefix))
        current = getattr(config, name)
        if dataclasses.is_dataclass(current) and not isinstance(current, type):
            if not isinstance(value, dict):
                keys = ", ".join(f"{prefix}{name}.{key.name}" for key in dataclasses.fields(current))
                raise UsageError(f"{prefix}{name} is a group of settings: set one of {keys}")
            changes[name] = with_settings(current, value, f"{prefix}{name}.")
        elif current is None:
            if value is not None:
                raise UsageError(f"{prefix}{name}: this method has no {name}")
        else:
            changes[name] = _convert(value, hints[name], prefix + name)
    try:
        return dataclasses.replace(config, **changes)  # type: ignore[type-var]
    except ValueError as error:  # a configuration that checks itself knows its fields, not where it stands
        raise UsageError(f"{prefix}{error}") from None


def _unknown_setting(config: Any, name: str, prefix: str) -> str:
    known = [prefix + key for key in typing.get_type_hints(type(config))]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known
    return f"there is no setting {name!r}; closest: {', '.join(close)}"


def _convert(value: Any, kind: Any, name: str) -> Any:
    """A value from JSON or, as a string, from the command line."""
    expected = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if typing.get_origin(kind) is typing.Literal:
        check_choice(name, value, kind)
        return value
    try:
        if kind is bool:
            if isinstance(value, bool):
                return value
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[value.lower()]
        if kind is int:
            return parse_int(value)
        if kind is float and not isinstance(value, bool):
            return float(value)
        if kind is str and isinstance(value, str):
            return value
    except (ValueError, KeyError, AttributeError, TypeError):
        pass
    raise UsageError(f"{name} takes {expected.get(kind, kind)}, not {value!r}")


def parse_int(value: Any) -> int:
    """A whole number as people write it: 200000, 200_000, 2e5."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = float(value)
    if isinstance(value, bool) or not number.is_integer():
        raise ValueError(value)
    return int(number) if "e" in str(value).lower() or "." in str(value) else int(value)


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """`["learner.gamma=0.9"]` -> `{"learner": {"gamma": "0.9"}}`."""
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set takes key=value, such as learner.gamma=0.99, not {assignment!r}")
        *groups, last = name.strip().split(".")
        inner = settings
        for group in groups:
            inner = inner.setdefault(group, {})
            if not isinstance(inner, dict):
                raise UsageError(f"--set {name}: {group} is given a value as well")
        inner[last] = value.strip()
    return settings


def merge_settings(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Nested `settings` with nested `changes` put over them."""
    merged = dict(settings)
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = merge_settings(merged[name], value) if both else value
    return merged


def flat_settings(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"learner": {"gamma": 0.9}}` → `{"learner.gamma": 0.9}`."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= flat_settings(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def setting_text(value: Any) -> str:
    """As `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def first_difference(ours: dict[str, Any], theirs: dict[str, Any], free: Sequence[str] = ()) -> str | None:
    """The first setting in which two configurations differ, as `learner.gamma is 0.99, not 0.9`; `free` ones may."""
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        one, other = ours.get(name), theirs.get(name)
        if name in free or one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            inner = first_difference(one, other)
            return inner and f"{name}.{inner}"
        return f"{name} is {one}, not {other}"
    return None


def load_config(path: Path) -> dict[str, Any]:
    """The settings of a `config.json`, still to be checked by `make_config`."""
    try:
        settings = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(settings, dict) or not {"game", "method", "total_steps"} <= settings.keys():
        raise UsageError(f"{path} is not a run's config.json: game, method and total_steps must be there")
    for name in ("game", "method"):
        if not isinstance(settings[name], str):
            raise UsageError(f"{path}: {name} takes text, not {settings[name]!r}")
    return settings
