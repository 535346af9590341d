"""Files that others write, read as they grow: only regular files, only whole lines, only so much at a time."""

import os
import stat
from pathlib import Path

CHUNK = 4_000_000  # bytes read at once
_END = 64  # bytes before the place reached: if they have changed, the file was cut and has grown again


class Tail:
    """Follows one file of lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = self._offset = 0
        self._end = b""  # the last bytes read

    def read(self) -> tuple[bool, list[bytes]]:
        """Returns whether what was read before is gone, and the lines that came since; no file has none.

        A line that is longer than all that is read at once comes in pieces.
        """
        try:
            descriptor = open_regular(self._path)
        except OSError:
            return self._begin_anew(), []
        try:
            found = os.fstat(descriptor)
            is_same = found.st_ino == self._inode and found.st_size >= self._offset
            end = os.pread(descriptor, len(self._end), self._offset - len(self._end)) if is_same else None
            was_cut = end != self._end and self._begin_anew()
            self._inode = found.st_ino
            data = os.pread(descriptor, CHUNK, self._offset)
        finally:
            os.close(descriptor)
        taken = data[: data.rfind(b"\n") + 1] or (data if len(data) == CHUNK else b"")
        self._offset += len(taken)
        self._end = (self._end + taken)[-_END:]
        return was_cut, taken.removesuffix(b"\n").split(b"\n") if taken else []

    def _begin_anew(self) -> bool:
        """Returns whether anything had been read."""
        had_read = self._offset > 0
        self._inode, self._offset, self._end = 0, 0, b""
        return had_read


def open_regular(path: Path) -> int:
    """Opens a file to read, and returns its descriptor; raises OSError for a link, a pipe or a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a file")
    return descriptor


def read_small(path: Path, most: int) -> bytes | None:
    """Returns the content of a file of at most so many bytes; None for any other."""
    try:
        descriptor = open_regular(path)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most + 1)
    return content if len(content) <= most else None
