"""Compiles `native.c` while a wheel is built, so that it runs compiled code where there is no compiler."""

import importlib.util
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags


def platform_tag() -> str:
    """Names this system; on Linux without a word about its C library, which is for auditwheel to find out."""
    return next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))


def _load_native(root: Path) -> ModuleType:
    """Imports `native.py` by itself: a build has none of the packages that `coex` needs."""
    spec = importlib.util.spec_from_file_location("native", root / "src/coex/core/native.py")
    if spec is None or spec.loader is None:
        raise ImportError("src/coex/core/native.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CompiledCode(BuildHookInterface[Any]):
    """Adds the library to the wheel beside `native.py`; without a compiler the wheel is for any platform."""

    _scratch: "tempfile.TemporaryDirectory[str] | None" = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # whoever edits native.c has it compiled at first use
            return
        native = _load_native(Path(self.root))
        self._scratch = tempfile.TemporaryDirectory()
        library = Path(self._scratch.name) / native.library_name()
        try:
            native.build(library)
        except (OSError, subprocess.SubprocessError) as error:
            cause = getattr(error, "stderr", None) or error
            self.app.display_warning(f"The wheel has no compiled code, and compiles it at first use: {cause}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"  # ctypes: no part of Python's own binary interface
        build_data["force_include"][str(library)] = f"coex/core/{library.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()
