"""Settings of the documentation's site, which `make docs` builds from the Markdown beside this file."""

import dataclasses
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import coex
from coex.config.describe import field_comments

project = "CoEX"
version = release = coex.__version__
copyright = "CoEX contributors"
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]  # $$ … $$, as GitHub shows it
myst_heading_anchors = 3  # page.md#a-heading, as GitHub has them

default_role = "code"  # docstrings have single backticks, as Markdown does
autoclass_content = "both"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"CoEX {version}"
html_show_sphinx = False
html_copy_source = False

_DOCS = Path(__file__).parent
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#]+|images/ram)\)")


def setup(app: Sphinx) -> None:
    app.connect("source-read", lambda app, page, source: source.__setitem__(0, _unlink(source[0])))
    app.connect("autodoc-process-docstring", _describe)
    app.connect("autodoc-skip-member", lambda app, what, name, value, skip, options: skip or _is_tuple_field(value))


def _unlink(text: str) -> str:
    """Directories, sources and generated tables are links on GitHub, and plain text on the site, which has them not."""

    def plain(link: re.Match[str]) -> str:
        target = _DOCS / link[2]
        return link[1] if target.is_dir() or target.suffix in (".py", ".md") else link[0]

    return _LINK.sub(plain, text)


def _describe(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text, in which | and * mark nothing up; the comment beside a field describes it."""
    if lines and lines[0].startswith("Create new instance of"):  # a named tuple's own words
        lines.clear()
        return
    parts = ((part, number % 2) for number, part in enumerate("\n".join(lines).split("`")))
    lines[:] = "`".join(part if is_code else _plain(part) for part, is_code in parts).split("\n")
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        comments = field_comments(value)
        lines += [f":param {field}: {_plain(comment)}" for field, comment in comments.items()]


def _plain(text: str) -> str:
    return re.sub(r"([|*]|_\b)", r"\\\1", text)


def _is_tuple_field(value: Any) -> bool:
    return type(value).__name__ == "_tuplegetter"
