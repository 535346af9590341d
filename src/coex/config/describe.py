"""Describes settings: their values, and what the comment beside each field says of it."""

import dataclasses
import inspect
import re
from typing import Any

from coex.config.settings import setting_text

_FIELD = re.compile(r"^    (\w+): [^#]*(?:#\s*(.*))?$")
Row = tuple[str, str, str, str]  # name, default, the paper's value where it differs, meaning


def describe(default: Any, paper: Any, prefix: str = "") -> list[Row]:
    """Returns a row for every setting of two configurations of one kind, nested ones by their full names."""
    meanings = field_comments(type(default))
    rows: list[Row] = []
    for field in dataclasses.fields(default):
        ours, theirs = getattr(default, field.name), getattr(paper, field.name)
        if dataclasses.is_dataclass(ours):
            rows += describe(ours, theirs, f"{prefix}{field.name}.")
        elif ours is not None:
            papers = f"(paper: {setting_text(theirs)})" if theirs != ours else ""
            rows.append((prefix + field.name, setting_text(ours), papers, meanings.get(field.name, "")))
    return rows


def field_comments(config: type) -> dict[str, str]:
    """Returns the comments beside a dataclass's fields: they are where a setting is explained, and nowhere else."""
    classes = [base for base in reversed(config.__mro__) if dataclasses.is_dataclass(base)]
    found = (_FIELD.match(line) for base in classes for line in inspect.getsource(base).splitlines())
    return {match[1]: match[2] for match in found if match and match[2]}
