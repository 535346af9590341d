"""One run, one writer, also where the kernel's lock does not hold."""

import errno
import fcntl
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from coex.errors import CoexError, UsageError
from coex.runs import lease
from coex.runs.lease import STALE_SECONDS, Lease, is_in_use, newest_lease
from coex.runs.lock import RunLock


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's directory, on a file system where everybody gets the lock."""
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


@pytest.fixture(autouse=True)
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda descriptor, operation: None)


def move_elsewhere(run: Path) -> None:
    """Lets the newest lease be another host's."""
    path = newest_lease(run)
    assert path is not None
    path.write_text(json.dumps(json.loads(path.read_text()) | {"host": "node7", "machine": "node7 another boot"}))


def age(run: Path, seconds: float) -> None:
    path = newest_lease(run)
    assert path is not None
    os.utime(path, (time.time() - seconds,) * 2)


def test_two_writers_never_have_one_run(run: Path) -> None:
    with RunLock(run):
        assert is_in_use(run)
        with pytest.raises(UsageError, match=f"in use by process {os.getpid()}:"), RunLock(run):
            pass
    assert not is_in_use(run)
    with RunLock(run):
        pass


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_no_obstacle(code: int, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with RunLock(run), pytest.raises(UsageError, match="in use"), RunLock(run):
        pass


def test_another_hosts_lease_holds_until_its_heartbeat_is_stale(run: Path) -> None:
    with RunLock(run):
        pass
    move_elsewhere(run)  # whose process we cannot see
    for seconds, held in ((0.0, True), (STALE_SECONDS - 30, True), (STALE_SECONDS + 30, False)):
        age(run, seconds)
        assert is_in_use(run) == held
    age(run, STALE_SECONDS - 30)
    with pytest.raises(UsageError, match=rf"in use by process {os.getpid()} on node7:"), RunLock(run):
        pass
    age(run, STALE_SECONDS + 30)
    with RunLock(run):
        assert [path.name for path in lease.lease_files(run)] == ["lease-2"]


def test_a_host_that_was_just_lost_is_waited_for(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when torchrun makes another host's process the first."""
    monkeypatch.setattr(lease, "STALE_SECONDS", 3.0)
    with RunLock(run):
        pass
    move_elsewhere(run)
    age(run, 1)
    said: list[str] = []
    with RunLock(run, said.append):
        assert [path.name for path in lease.lease_files(run)] == ["lease-2"]
    assert "on node7: waiting for a sign of life" in said[0]


def test_a_holder_that_lives_is_not_waited_for(run: Path) -> None:
    with RunLock(run):
        pass
    move_elsewhere(run)
    age(run, 5)
    with pytest.raises(UsageError, match=r"in use by .* on node7"), RunLock(run, lambda text: age(run, 0)):
        pass


def test_the_lease_of_the_next_is_left_alone(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing came of a run, and another host takes it at the moment of its end."""
    (run / "config.json").unlink()
    release, other = Lease.release, Lease(run)

    def release_and_lose(held: Lease) -> None:
        release(held)
        other.take(time.time())

    monkeypatch.setattr(Lease, "release", release_and_lose)
    with RunLock(run):
        pass
    assert newest_lease(run) == run / "lease-2"
    release(other)


def test_a_disk_that_is_full_leaves_no_lease_and_is_no_bad_input(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, descriptor: int, mode: str) -> None:
            os.close(descriptor)

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def write(self, content: bytes) -> None: ...

    monkeypatch.setattr(os, "fdopen", Full)
    with pytest.raises(CoexError, match="cannot be written: No space left") as found, RunLock(run):
        pass
    assert found.value.exit_code == 1
    assert lease.lease_files(run) == []


def test_a_dead_process_of_this_host_holds_nothing(run: Path) -> None:
    with RunLock(run):
        pass
    path = newest_lease(run)
    assert path is not None
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pid": dead.pid}))
    age(run, 0)
    assert not is_in_use(run)
    with RunLock(run):
        pass


def test_a_lease_that_is_only_just_written_counts(run: Path) -> None:
    (run / "lease-3").touch()
    assert is_in_use(run)
    with pytest.raises(UsageError, match="in use by another process"), RunLock(run):
        pass
    (run / "lease-3").write_text('["no lease"')
    age(run, STALE_SECONDS + 1)
    with RunLock(run):
        assert newest_lease(run) == run / "lease-4"


def test_asking_touches_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that polls cannot make a starting run fail: it takes no lock, not even for a moment."""
    with RunLock(run):
        pass
    before = [(path.name, path.stat().st_mtime_ns, path.stat().st_ino) for path in sorted(run.iterdir())]
    taken: list[int] = []
    monkeypatch.setattr(fcntl, "flock", lambda descriptor, operation: taken.append(operation))
    assert not is_in_use(run)
    assert not is_in_use(run / "missing")
    assert taken == []
    assert [(path.name, path.stat().st_mtime_ns, path.stat().st_ino) for path in sorted(run.iterdir())] == before


def test_nothing_is_left_where_nothing_came_of_it(tmp_path: Path) -> None:
    with RunLock(tmp_path / "new"):
        pass
    assert not (tmp_path / "new").exists()


def contend(run: Path, barrier: Barrier, won: Any) -> None:
    """Tries to take the run at the same moment as the others; a winner holds it until all have tried."""
    fcntl.flock = lambda descriptor, operation: None
    for _ in range(20):
        barrier.wait()
        held = Lease(run)
        try:
            held.take(time.time())
        except BlockingIOError:
            barrier.wait()
            continue
        with won.get_lock():
            won.value += 1
        barrier.wait()
        held.release()


def test_of_many_that_start_at_once_one_gets_it(run: Path) -> None:
    """A stale lease of another host, taken over by four processes at a time, twenty times."""
    with RunLock(run):
        pass
    context = multiprocessing.get_context("fork")
    barrier, won = context.Barrier(4), context.Value("i", 0)
    processes = [context.Process(target=contend, args=(run, barrier, won)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert 1 <= won.value <= 20  # never two in one round; between rounds one may still be letting go
    assert len(lease.lease_files(run)) == 1


WRITER = """
import sys, time
from pathlib import Path
from coex.runs import lease
lease.BEAT_SECONDS, lease.STALE_SECONDS = 0.05, 0.5
from coex.runs.lock import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_writer_that_was_given_up_ends_before_it_writes_on(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands still for longer than its lease lives, another host takes the run, and it wakes."""
    monkeypatch.setattr(lease, "STALE_SECONDS", 0.5)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, run], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"held\n"
    move = lease._owner()
    monkeypatch.setattr(lease, "_owner", lambda: move | {"machine": "node8", "host": "node8"})  # from here, elsewhere
    time.sleep(0.8)
    assert is_in_use(run)  # its heart beats
    writer.send_signal(signal.SIGSTOP)
    time.sleep(0.8)
    assert not is_in_use(run)
    with RunLock(run):
        writer.send_signal(signal.SIGCONT)
        _, errors = writer.communicate(timeout=10)
        assert writer.returncode == 1
        assert f"was taken by process {os.getpid()} on node8: this process ends".encode() in errors
        assert newest_lease(run) == run / "lease-2"
