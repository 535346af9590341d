"""One run's attempts: each a process of its own, and a record of all, from which it follows what is to be done next."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coex.grid.plan import GridConfig, PlannedRun
from coex.runs.files import SUMMARY
from coex.runs.lock import IN_USE
from coex.runs.visits import newest_checkpoint
from coex.watch.tail import read_small

STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)  # exit codes of a run that was asked to stop, and has saved
_BAD_INPUT = 2
_LARGEST_RECORD = 10_000_000  # bytes
_POLL_SECONDS, _WAIT_SECONDS, _LONGEST_WAIT = 0.2, 15.0, 3_600.0
# On Linux the kernel asks a run to stop when the process that started it dies: it saves, and another may go on with it.
_ENDS_WITH_US = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); "
    "os.getppid() == int(sys.argv[1]) and os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)


@dataclass(frozen=True)
class History:
    """What the attempts at a run have come to."""

    attempts: int = 0
    failures: int = 0  # without progress, so far
    is_hopeless: bool = False  # bad input: another attempt would end in the same way
    was_in_use: bool = False  # the last one found another process at work
    error: str = ""  # the last one's last line

    def is_in_vain(self, most_failures: int) -> bool:
        """Whether another attempt would be."""
        return self.is_hopeless or self.failures >= most_failures


def attempt(
    command: Sequence[str], out: str, records: str, cores: int, should_stop: Callable[[], bool] = lambda: False
) -> int:
    """Starts a run or goes on with it in a process of its own, and returns that one's exit code.

    All that it takes is text and numbers, so that it can be called on another machine. When it `should_stop`, or is
    interrupted, the run is asked to save.
    """
    record = Path(records)
    record.parent.mkdir(parents=True, exist_ok=True)
    key, began = secrets.token_hex(4), time.time()
    _append(record, {"start": key, "time": began, "host": socket.gethostname(), "step": newest_step(Path(out))})
    log = record.with_suffix(".log")
    with log.open("ab") as errors:
        before = errors.tell()
        process = subprocess.Popen(
            [*_guarded(), "-m", "coex", *command], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
            start_new_session=True, env=os.environ | {"OMP_NUM_THREADS": str(cores)},
        )  # fmt: skip
    try:
        was_told = False
        while (code := process.poll()) is None:
            if should_stop() and not was_told:
                process.terminate()  # once: a second signal would not let it save
                was_told = True
            time.sleep(_POLL_SECONDS)
    except BaseException:  # Ray cancels a task by KeyboardInterrupt
        process.terminate()
        code = process.wait()
        raise
    finally:
        if code is not None:
            seconds = round(time.time() - began, 1)
            error = "" if code in (0, *STOPPED) else _last_words(log, before, code)
            _append(record, {"end": key, "code": code, "seconds": seconds, "error": error})
    return code


def trace(run: PlannedRun) -> int:
    """Returns how many lines the records of a run have: an attempt that adds none has not begun."""
    return len(_read(run.records))


def note_failure(run: PlannedRun, error: str) -> None:
    """Writes down a failure of an attempt that could not do so itself."""
    key = secrets.token_hex(4)
    start = {"start": key, "time": time.time(), "host": socket.gethostname(), "step": newest_step(run.out)}
    _append(run.records, start)
    _append(run.records, {"end": key, "code": 1, "seconds": 0.0, "error": error})


def history(run: PlannedRun) -> History:
    """Returns what the records of a run tell."""
    return read_history(run.records, newest_step(run.out))


def read_history(records: Path, step: int) -> History:
    """Returns what records tell of a run whose newest checkpoint is that of `step`.

    An attempt without an end, whose machine or worker died, is a failure, too.
    """
    starts: dict[str, dict[str, Any]] = {}
    attempts = 0
    for event in _read(records):
        if "start" in event:
            starts[event["start"]] = event
            attempts += 1
        elif "end" in event and event["end"] in starts:
            starts[event["end"]] |= event
        elif "forgiven" in event:
            starts = {}
    ended = list(starts.values())
    refused = [one for one in ended if one.get("code") == _BAD_INPUT and IN_USE in one["error"]]
    failed = [one for one in ended if one.get("code") not in (0, *STOPPED) and one not in refused]
    return History(
        attempts=attempts - len(refused),
        failures=sum(one["step"] >= step for one in failed),
        is_hopeless=any(one.get("code") == _BAD_INPUT for one in failed),
        was_in_use=bool(ended) and ended[-1] in refused,
        error="" if not ended or ended[-1] not in failed else ended[-1].get("error", "its machine or worker was lost"),
    )


def forgive(run: PlannedRun) -> None:
    """Lets a run that was given up begin with no failures to its name."""
    if run.records.exists():
        _append(run.records, {"forgiven": time.time()})


def is_given_up(run: PlannedRun, config: GridConfig) -> bool:
    """Whether another attempt would be in vain."""
    return history(run).is_in_vain(config.failures)


def wait_seconds(past: History, config: GridConfig) -> float:
    """Returns how long to wait before the next attempt: not at all after progress."""
    if past.was_in_use:
        return min(_WAIT_SECONDS, config.backoff)
    return min(config.backoff * 5.0 ** min(past.failures - 1, 9), _LONGEST_WAIT) if past.failures else 0.0


def is_finished(run: PlannedRun) -> bool:
    """Whether the run has come to its end and said so."""
    try:
        summary = json.loads((run.out / SUMMARY).read_text())
        return bool(summary["finished"]) and summary["step"] >= run.config.total_steps
    except (OSError, ValueError, KeyError, TypeError):
        return False


def newest_step(out: Path) -> int:
    """Returns the step of a run's newest checkpoint; -1 where there is none."""
    place = newest_checkpoint(out)
    return int(place.name.removeprefix("step-")) if place else -1


def _guarded() -> list[str]:
    """The interpreter, which on Linux ends with us."""
    if sys.platform != "linux":
        return [sys.executable]
    return [sys.executable, "-S", "-c", _ENDS_WITH_US, str(os.getpid())]


def _append(path: Path, event: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def _read(path: Path) -> list[dict[str, Any]]:
    """The events of a record; a line that was torn by a kill is left out."""
    events = []
    for line in (read_small(path, _LARGEST_RECORD) or b"").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def _last_words(log: Path, begin: int, code: int) -> str:
    """What ended an attempt: a signal, or the last line of what it wrote, which is the log from `begin` on."""
    if code < 0:
        return f"ended by signal {-code}"
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - 4_000))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip().removeprefix("coex: ") for line in reversed(lines) if line.strip()), f"exit code {code}")
