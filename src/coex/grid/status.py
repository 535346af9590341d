"""How every run of a grid stands, as its files tell."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coex.grid.attempts import history, is_finished, newest_step, read_history
from coex.grid.plan import PLAN, RECORDS, Grid, PlannedRun, records_of
from coex.runs.lease import is_in_use
from coex.runs.progress import count, duration, number
from coex.watch.follow import Follower
from coex.watch.tail import read_small

_HEADINGS = ("run", "state", "step", "steps/s", "left", "score", "attempts", "last error")
_LONGEST_ERROR = 80
_LARGEST_PLAN, _MOST_RUNS = 4_000_000, 1_000  # bytes, and runs of a grid, for the live page


@dataclass(frozen=True)
class Standing:
    """One run: its state is finished, running, waiting or given up; None for what is not known yet."""

    name: str
    state: str
    step: int
    rate: float | None
    seconds_left: float | None
    score: float | None  # the paper's: the best mean return of 40 episodes
    attempts: int
    error: str


def standing(grid: Grid, run: PlannedRun) -> Standing:
    """Returns how a run stands; nothing is touched."""
    follower = Follower(run.out, run.name)
    while follower.poll():  # a long log is read piece by piece
        pass
    past, newest = history(run), follower.points.newest
    if is_in_use(run.out):
        state = "running"
    elif is_finished(run):
        state = "finished"
    else:
        state = "given up" if past.is_in_vain(grid.config.failures) else "waiting"
    step = int(newest.get("step", max(newest_step(run.out), 0)))
    rate = newest.get("steps_per_second")
    left = None if state == "finished" or not rate else (run.config.total_steps - step) / rate
    error = "" if state == "finished" else past.error
    return Standing(run.name, state, step, rate, left, newest.get("max_return_mean40"), past.attempts, error)


def describe_grid(out: Path, followed: Mapping[Path, Follower]) -> dict[str, Any] | None:
    """Returns how the runs of the grid in a directory stand, for the live page; None where no grid was started.

    Of the grid itself only names are taken, so that nothing that its file says is imported.
    """
    content = read_small(out / RECORDS / PLAN, _LARGEST_PLAN)
    if content is None:
        return None
    plan, rows = json.loads(content), []
    for name in plan["runs"][:_MOST_RUNS]:
        run = followed.get(out / name)
        past = read_history(records_of(out, name), newest_step(run.path) if run else -1)
        if run and run.status in ("running", "finished"):
            state = run.status
        else:
            state = "given up" if past.is_in_vain(plan["failures"]) else "waiting"
        error = "" if state == "finished" else past.error[:300]
        rows.append({"id": run and run.key, "name": name, "state": state, "attempts": past.attempts, "error": error})
    return {"name": out.name, "runs": rows}


def describe(rows: Sequence[Standing]) -> str:
    """Returns a table with a line of totals below it."""
    cells = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADINGS))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    totals = Counter(row.state for row in rows)
    counted = ", ".join(f"{totals[state]} {state}" for state in ("finished", "running", "waiting", "given up"))
    return "\n".join([*lines, "", f"{len(rows)} runs: {counted}"])


def _cells(row: Standing) -> tuple[str, ...]:
    error = row.error if len(row.error) <= _LONGEST_ERROR else row.error[: _LONGEST_ERROR - 1] + "…"
    return (
        row.name,
        row.state,
        count(row.step),
        number(row.rate),
        "–" if row.seconds_left is None else duration(max(row.seconds_left, 0.0)),
        number(row.score),
        str(row.attempts),
        error,
    )
