"""Who writes a run, told by files alone: for file systems that several hosts share, where locks may not hold.

A lease is a file `lease-N`. It is made by the one who succeeds in creating it, and its time of change is a heartbeat:
one that has not come for `STALE_SECONDS` is a host that is gone, and the next takes `lease-N+1`. Numbers only grow, so
that of two who find the same stale lease only one gets the next.
"""

import contextlib
import json
import os
import secrets
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

PREFIX = "lease-"
BEAT_SECONDS, STALE_SECONDS = 20.0, 300.0
_LARGEST = 1_000  # bytes of a lease that is read


class Lease:
    """Holds a run for this process until `release`; another host that has taken it ends the process at once."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self.path = run
        self._content = json.dumps(_owner() | {"token": secrets.token_hex(8)}).encode()
        self._over = threading.Event()
        self._guard = threading.Lock()  # no heartbeat after the release

    def take(self, now: float) -> None:
        """Takes the lease and keeps it alive; raises BlockingIOError when somebody else has it.

        `now` is the file system's time: clocks of hosts differ.
        """
        found = newest_lease(self._run)
        if found and is_alive(found, now):
            raise BlockingIOError
        self.path = self._run / f"{PREFIX}{_number(found) + 1 if found else 1}"
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            raise BlockingIOError from None
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._content)
        except OSError:  # a full disk: nobody is to wait for what nobody holds
            self.path.unlink(missing_ok=True)
            raise
        if newest_lease(self._run) != self.path:  # what we were shown of the directory was old
            self.path.unlink(missing_ok=True)
            raise BlockingIOError
        for path in lease_files(self._run):
            if path != self.path:
                path.unlink(missing_ok=True)
        threading.Thread(target=self._beat, name="lease", daemon=True).start()

    def release(self) -> None:
        """Leaves the lease to the next: a file whose heartbeat is long over, so that numbers go on."""
        self._over.set()
        with self._guard, contextlib.suppress(OSError):
            os.utime(self.path, (0, 0))

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            with self._guard, contextlib.suppress(OSError):  # a file server may be away: the next beat tells
                if self._over.is_set():
                    return
                found = newest_lease(self._run)
                if found == self.path and found.read_bytes() == self._content:
                    os.utime(self.path)
                else:
                    print(f"coex: {self._run} was taken by {owner(self._run)}: this process ends", file=sys.stderr)
                    sys.stderr.flush()
                    os._exit(1)  # at once: whatever it wrote now would be in the other's files


def lease_files(run: Path) -> list[Path]:
    """Returns the leases of a run, the newest last."""
    found = [run / name for name in os.listdir(run) if name.startswith(PREFIX) and _number(run / name)]
    return sorted(found, key=_number)


def newest_lease(run: Path) -> Path | None:
    """Returns the file of the newest lease; None where there was never one. Raises OSError without a directory."""
    return next(reversed(lease_files(run)), None)


def is_alive(lease: Path, now: float) -> bool:
    """Whether its holder still works: its process is here, or its heartbeat is not yet stale on another host."""
    try:
        if now - lease.stat(follow_symlinks=False).st_mtime > STALE_SECONDS:
            return False
    except OSError:
        return False
    holder = _read(lease)
    if holder.get("machine") != _owner()["machine"]:
        return True
    try:
        os.kill(int(holder["pid"]), 0)
    except ProcessLookupError:
        return False
    except (OSError, KeyError, ValueError):
        pass
    return True


def last_heard(run: Path) -> tuple[str, float] | None:
    """Returns the newest lease and the time of its last heartbeat; None where there is none."""
    with contextlib.suppress(OSError):
        found = newest_lease(run)
        return (found.name, found.stat(follow_symlinks=False).st_mtime) if found else None
    return None


def is_in_use(run: Path) -> bool:
    """Whether a process is writing the run now, here or elsewhere; asking touches nothing."""
    with contextlib.suppress(OSError):
        found = newest_lease(run)
        return found is not None and is_alive(found, time.time())
    return False


def owner(run: Path) -> str:
    """Returns who has or had the newest lease, for messages."""
    found = newest_lease(run)
    holder = _read(found) if found else {}
    if "pid" not in holder:
        return "another process"
    elsewhere = holder.get("machine") != _owner()["machine"]
    return f"process {holder['pid']}" + (f" on {holder.get('host')}" if elsewhere else "")


def _number(path: Path) -> int:
    digits = path.name.removeprefix(PREFIX)
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _read(lease: Path) -> dict[str, Any]:
    """The content of a lease; empty for one that is only just being written."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        descriptor = os.open(lease, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            content = json.loads(file.read(_LARGEST))
            return content if isinstance(content, dict) else {}
    return {}


def _owner() -> dict[str, Any]:
    """This process; `machine` is the same for those who can see it among their own processes."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):  # Linux: containers with one name are not one machine
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return {"host": parts[0], "machine": " ".join(parts), "pid": os.getpid()}
