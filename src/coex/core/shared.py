"""Memory that the processes of one machine share: a file in it, which each of them maps."""

import math
import os
import tempfile
from pathlib import Path

import torch
from torch import Tensor

MEMORY = "/dev/shm"


def allocate_shared(shape: tuple[int, ...], dtype: torch.dtype) -> bytes:
    """Returns the path of a new file for such numbers; nothing where there is no room for it, or no such place."""
    try:
        file, path = tempfile.mkstemp(prefix="coex-", dir=MEMORY)
    except OSError:
        return b""
    try:
        os.posix_fallocate(file, 0, math.prod(shape) * dtype.itemsize)
    except OSError:
        Path(path).unlink()
        return b""
    finally:
        os.close(file)
    return path.encode()


def open_shared(path: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Returns the numbers in the file: what one process writes to them, all see."""
    return torch.from_file(path, shared=True, size=math.prod(shape), dtype=dtype).view(shape)
