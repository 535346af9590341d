"""Loads `native.c`, compiled: as the wheel brings it, or else once, by the system's C compiler, into the user's cache.

`hatch_build.py` imports this file alone to build a wheel, so nothing but the standard library is imported here.
"""

import contextlib
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
from typing import Literal

_SOURCE = Path(__file__).with_name("native.c")
_FLAGS = ["-std=c11", "-O3", "-shared", "-fPIC"]
_POINTER, _INT = ctypes.c_void_p, ctypes.c_int


def _cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "coex"


def library_name() -> str:
    """Names the library after what it is made of and for, so that none that is stale or foreign is ever loaded."""
    digest = hashlib.sha256(_SOURCE.read_bytes() + " ".join(_FLAGS).encode()).hexdigest()[:16]
    return f"native-{sys.platform}-{os.uname().machine}-{digest}.so"


def build(library: Path) -> None:
    """Compiles the code; an OSError or a SubprocessError says why that cannot be."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise OSError("no C compiler")
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        built = Path(scratch) / library.name
        subprocess.run([compiler, *_FLAGS, "-o", built, _SOURCE, "-lm"], check=True, capture_output=True, text=True)
        built.replace(library)  # several processes may build at once: the last one wins, and all are the same


def _open() -> ctypes.CDLL:
    name = library_name()
    with contextlib.suppress(OSError):  # not from a wheel, or from one for another C library
        return ctypes.CDLL(str(_SOURCE.with_name(name)))
    library = _cache_dir() / name
    if not library.exists():
        build(library)
    return ctypes.CDLL(str(library))


@functools.cache
def load() -> ctypes.CDLL | None:
    """Returns the compiled functions, or None (said once) where they cannot be had; slower ways then do their work."""
    try:
        functions = _open()
    except (OSError, subprocess.SubprocessError) as error:
        warnings.warn(f"no compiled code, so everything works but more slowly ({error})", stacklevel=2)
        return None
    functions.coex_changed.argtypes = [_POINTER] * 4 + [_INT] * 2 + [_POINTER]
    functions.coex_blend.argtypes = [_POINTER] * 2 + [_INT] * 2 + [_POINTER] * 2 + [_INT, _POINTER]
    functions.coex_shrink.argtypes = [_POINTER] + [_INT] * 3 + [_POINTER] * 2 + [_INT] * 3
    functions.coex_push.argtypes = [_POINTER, _INT]
    functions.coex_distinct.argtypes = [_POINTER] + [_INT] * 3 + [_POINTER] * 2
    functions.coex_cts.argtypes = [_POINTER] + [_INT] * 5 + [_POINTER, _INT, _POINTER, ctypes.c_int64, _POINTER]
    return functions


def origin() -> Literal["wheel", "cache"] | None:
    """Says where the compiled functions are from; None if there are none."""
    functions = load()
    if functions is None:
        return None
    return "wheel" if Path(functions._name).parent == _SOURCE.parent else "cache"
