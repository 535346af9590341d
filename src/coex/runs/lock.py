"""One run, one writer."""

import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType

from coex.errors import UsageError
from coex.runs.files import LOCK


class RunLock:
    """Holds a run's directory for this process.

    The kernel lets go of the lock when the process ends, however it ends, so the file itself may stay: what counts is
    whether somebody holds it. Worker processes do not inherit it.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._descriptor = -1
        self._made = False  # whether the directory is ours to remove when nothing came of it

    def __enter__(self) -> "RunLock":
        if self._run.exists() and not self._run.is_dir():
            raise UsageError(f"{self._run} is a file: choose a directory")
        try:
            self._made = not self._run.exists()
            self._run.mkdir(parents=True, exist_ok=True)
            while not self._acquire():
                pass
        except BlockingIOError:
            raise UsageError(f"{self._run} is in use by {self._holder()}: only one process may write a run") from None
        except OSError as error:
            raise UsageError(f"{self._run} cannot be written: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            if os.listdir(self._run) == [LOCK]:
                (self._run / LOCK).unlink()
                if self._made:
                    self._run.rmdir()
        os.close(self._descriptor)

    def _acquire(self) -> bool:
        """Raises BlockingIOError when another process holds it; False if that one has just removed the file."""
        self._descriptor = os.open(self._run / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._descriptor), os.stat(self._run / LOCK)):
                    os.ftruncate(self._descriptor, 0)
                    os.write(self._descriptor, f"{os.getpid()}\n".encode())  # for the message to a second process
                    return True
        except OSError:
            os.close(self._descriptor)
            raise
        os.close(self._descriptor)
        return False

    def _holder(self) -> str:
        with contextlib.suppress(OSError):
            if pid := (self._run / LOCK).read_text().strip():
                return f"process {pid}"
        return "another process"


def is_in_use(run: Path) -> bool:
    """Whether a process is writing the run now; a reader's question, which holds nobody up for longer than it takes."""
    try:
        descriptor = os.open(run / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
