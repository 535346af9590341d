"""Compiles `native.c` once with the system's C compiler and keeps the result in the user's cache directory."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

_SOURCE = Path(__file__).with_name("native.c")
_FLAGS = ["-std=c11", "-O3", "-shared", "-fPIC"]
_POINTER, _INT = ctypes.c_void_p, ctypes.c_int


def _cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "coex"


def _build(library: Path) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise OSError("no C compiler")
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        built = Path(scratch) / library.name
        subprocess.run([compiler, *_FLAGS, "-o", built, _SOURCE], check=True, capture_output=True, text=True)
        built.replace(library)  # several processes may build at once: the last one wins, and all are the same


@functools.cache
def load() -> ctypes.CDLL | None:
    """The compiled functions, or None (said once) where they cannot be had; slower ways then do their work."""
    digest = hashlib.sha256(_SOURCE.read_bytes() + " ".join(_FLAGS).encode()).hexdigest()[:16]
    library = _cache_dir() / f"native-{sys.platform}-{os.uname().machine}-{digest}.so"
    try:
        if not library.exists():
            _build(library)
        functions = ctypes.CDLL(str(library))
    except (OSError, subprocess.SubprocessError) as error:
        warnings.warn(f"no compiled code, so everything works but more slowly ({error})", stacklevel=2)
        return None
    functions.coex_changed.argtypes = [_POINTER] * 4 + [_INT] * 2 + [_POINTER]
    functions.coex_blend.argtypes = [_POINTER] * 2 + [_INT] * 2 + [_POINTER] * 2 + [_INT, _POINTER]
    functions.coex_shrink.argtypes = [_POINTER] + [_INT] * 3 + [_POINTER] * 2 + [_INT] * 3
    functions.coex_push.argtypes = [_POINTER, _INT]
    functions.coex_distinct.argtypes = [_POINTER] + [_INT] * 3 + [_POINTER] * 2
    return functions
