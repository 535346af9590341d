"""One run, one writer."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from coex.errors import CoexError, UsageError
from coex.runs.files import LOCK
from coex.runs.lease import BEAT_SECONDS, STALE_SECONDS, Lease, last_heard, owner

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of file systems that have none: the lease stands alone
_OF_THE_PATH = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG)
_WAIT_SECONDS = 1.0
IN_USE = "is in use by"  # what a second writer is told, for those who read it


class RunLock:
    """Holds a run's directory for this process: by the kernel's lock, and by a lease where that does not reach.

    The kernel lets go of the lock when the process ends, however it ends, so the file itself may stay: what counts is
    whether somebody holds it. Worker processes do not inherit it. On a file system that hosts share, the lock may hold
    on one host only, or not exist; the lease (runs/lease.py) holds on all of them.
    """

    def __init__(self, run: Path, waits: Callable[[str], None] | None = None) -> None:
        """With `waits`, which is told so, it waits while nothing is heard of the holder, who may be lost."""
        self._run = run
        self._waits = waits
        self._descriptor = -1
        self._lease = Lease(run)
        self._made = False  # whether the directory is ours to remove when nothing came of it

    def __enter__(self) -> "RunLock":
        if self._run.exists() and not self._run.is_dir():
            raise UsageError(f"{self._run} is a file: choose a directory")
        try:
            self._made = not self._run.exists()
            self._run.mkdir(parents=True, exist_ok=True)
            self._take()
        except BlockingIOError:
            raise UsageError(f"{self._run} {IN_USE} {owner(self._run)}: only one process may write a run") from None
        except OSError as error:  # a full disk or a lost file server is nothing that was said wrong
            kind = UsageError if error.errno in _OF_THE_PATH else CoexError
            raise kind(f"{self._run} cannot be written: {error.strerror}") from None
        return self

    def _take(self) -> None:
        """Raises BlockingIOError when another process has the run."""
        told, heard, deadline = False, last_heard(self._run), time.monotonic() + STALE_SECONDS + BEAT_SECONDS
        while True:
            try:
                while not self._acquire():
                    pass
                try:
                    return self._lease.take(os.fstat(self._descriptor).st_mtime)
                except OSError:
                    os.close(self._descriptor)
                    raise
            except BlockingIOError:
                if not self._waits or last_heard(self._run) != heard or time.monotonic() > deadline:
                    raise
            if not told:
                self._waits(f"{self._run} {IN_USE} {owner(self._run)}: waiting for a sign of life, or until it is lost")
                told = True
            time.sleep(_WAIT_SECONDS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lease.release()
        with contextlib.suppress(OSError):
            own = self._lease.path  # not another's, who has the run since a moment
            if set(os.listdir(self._run)) == {LOCK, own.name}:
                for path in (own, self._run / LOCK):
                    path.unlink()
                if self._made:
                    self._run.rmdir()
        os.close(self._descriptor)

    def _acquire(self) -> bool:
        """Raises BlockingIOError when another process holds it; False if that one has just removed the file."""
        self._descriptor = os.open(self._run / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            _lock(self._descriptor)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._descriptor), os.stat(self._run / LOCK)):
                    os.utime(self._descriptor)  # for the lease: what time it is on the file system
                    return True
        except OSError:
            os.close(self._descriptor)
            raise
        os.close(self._descriptor)
        return False


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
