"""Files that others write, read as they grow: only regular files, only whole lines, only so much at a time."""

import os
import stat
from pathlib import Path
from typing import NamedTuple

CHUNK = 4_000_000  # bytes read at once
_END = 64  # bytes before the place reached: if they have changed, the file was cut and has grown again
_LONGEST_LINE = 64_000


class Read(NamedTuple):
    """What came of looking at a file once more."""

    was_cut: bool  # what was read before is gone: the lines begin anew
    lines: list[bytes]
    num_too_long: int


class Tail:
    """Follows one file of lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = self._offset = self._size = 0
        self._end = b""  # the last bytes read
        self._skipping = False  # within a line that is too long

    def read(self) -> Read:
        """Returns the whole lines that came since the last call; a file that is not there has none."""
        try:
            descriptor = open_regular(self._path)
        except OSError:
            was_cut = self._offset > 0
            self.__init__(self._path)  # type: ignore[misc]
            return Read(was_cut, [], 0)
        try:
            return self._read(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> Read:
        found = os.fstat(descriptor)
        was_cut = self._offset > 0 and (
            found.st_ino != self._inode
            or found.st_size < self._offset
            or os.pread(descriptor, len(self._end), self._offset - len(self._end)) != self._end
        )
        if was_cut:
            self.__init__(self._path)  # type: ignore[misc]
        self._inode = found.st_ino
        data = os.pread(descriptor, CHUNK, self._offset)
        whole, newline, _ = data.rpartition(b"\n")
        num_too_long = 0
        if newline:
            lines = whole.split(b"\n")
            if self._skipping:
                del lines[0]
            self._skipping = False
            num_too_long = sum(len(line) > _LONGEST_LINE for line in lines)
            lines = [line for line in lines if len(line) <= _LONGEST_LINE]
            taken = len(whole) + 1
        else:
            lines = []
            taken = len(data) if len(data) > _LONGEST_LINE else 0  # too long already: its rest is passed over
            num_too_long = int(taken > 0 and not self._skipping)
            self._skipping = self._skipping or taken > 0
        self._offset += taken
        self._end = (self._end + data[:taken])[-_END:]
        return Read(was_cut, lines, num_too_long)


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
