"""Brings all runs of a grid to their ends, whatever they are run by."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from coex.grid.attempts import attempt, history, is_finished, is_given_up, note_failure, trace, wait_seconds
from coex.grid.plan import GridConfig, PlannedRun
from coex.runs.progress import duration

Submit = Callable[[PlannedRun], "Future[int]"]  # starts an attempt at a run; the future has its exit code
_POLL_SECONDS = 0.2


def drive(
    runs: Sequence[PlannedRun],
    config: GridConfig,
    submit: Submit,
    say: Callable[[str], None],
    should_stop: Callable[[], bool],
) -> list[PlannedRun]:
    """Attempts every run until it is finished or given up, or until it is asked to stop; returns those given up."""
    due = {run: 0.0 for run in runs if not is_finished(run) and not is_given_up(run, config)}
    active: dict[Future[int], tuple[PlannedRun, int]] = {}
    while (due or active) and not should_stop():
        for run in [run for run, moment in due.items() if moment <= time.monotonic()]:
            before = trace(run)
            active[submit(run)] = run, before
            del due[run]
        done = wait(active, _POLL_SECONDS, FIRST_COMPLETED).done
        for future in done:
            run, before = active.pop(future)
            least = 0.0
            if trace(run) == before:  # otherwise it would be tried for ever, and at once
                least = config.backoff
                with contextlib.suppress(OSError):  # a full disk
                    note_failure(run, _reason(future, run))
            if is_finished(run):
                say(f"{run.name}: finished ({sum(map(is_finished, runs))} of {len(runs)})")
            elif is_given_up(run, config):
                say(f"{run.name}: given up: {history(run).error}")
            else:
                past = history(run)
                seconds = max(least, wait_seconds(past, config))
                due[run] = time.monotonic() + seconds
                reason = "another process is at work on it" if past.was_in_use else past.error or "it was stopped"
                say(f"{run.name}: {reason}; again" + (f" in {duration(seconds)}" if seconds >= 1 else ""))
        if not active:
            time.sleep(_POLL_SECONDS)
    return [run for run in runs if not is_finished(run) and is_given_up(run, config)]


def _reason(future: "Future[int]", run: PlannedRun) -> str:
    """Why an attempt left nothing in the records."""
    if error := future.exception():
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return lines[-1] if lines else type(error).__name__
    return f"it left no trace in {run.records.parent}: does its machine see that directory?"


@contextlib.contextmanager
def local_engine(cores: int, jobs: int, should_stop: Callable[[], bool]) -> Iterator[Submit]:
    """Runs `jobs` attempts at a time on this machine; at its end it waits for those that stop and save."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield lambda run: pool.submit(attempt, run.command, str(run.out), str(run.records), cores, should_stop)
    finally:
        pool.shutdown(cancel_futures=True)
