"""Settings of the documentation's site, which `make docs` builds from the Markdown beside this file."""

import importlib
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
autodoc_default_options = {"members": True, "undoc-members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
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


def _unlink(text: str) -> str:
    """Directories, sources and generated tables are links on GitHub and plain text on the site, which does not hold them."""

    def plain(link: re.Match[str]) -> str:
        target = _DOCS / link[2]
        return link[1] if target.is_dir() or target.suffix in (".py", ".md") else link[0]

    return _LINK.sub(plain, text)


def _describe(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """A field's comment is its description, and docstrings are plain text: | and * mark nothing up in them."""
    owner, _, field = name.rpartition(".")
    if what in ("attribute", "property") and owner.startswith("coex."):
        module, _, kind = owner.rpartition(".")
        comment = field_comments(getattr(importlib.import_module(module), kind)).get(field)
        if comment:
            lines[:] = [comment]
        elif lines and lines[0].startswith("Alias for field number"):
            lines.clear()
    parts = ((part, number % 2) for number, part in enumerate("\n".join(lines).split("`")))
    lines[:] = "`".join(part if is_code else re.sub(r"([|*]|_\b)", r"\\\1", part) for part, is_code in parts).split("\n")
