"""Imported before any test: `coex` sets how torch's threads wait before torch is loaded."""

import coex  # noqa: F401
