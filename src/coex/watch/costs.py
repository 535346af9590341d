"""What methods found and what they cost: medians over the seeds of a method."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from coex.watch.follow import Follower


def costs(runs: Sequence[Follower], target: float) -> dict[str, Any]:
    """Returns rooms, states, steps a second, bytes, and when the mean of 40 episodes first was `target`."""
    times = [time_to(run, target) for run in runs if run.points.count]
    reached = [time for time in times if time is not None]
    found: dict[str, Any] = {
        "rooms": _median(_last(run, "rooms/true") or None for run in runs),  # 0: nobody looked
        "states": _median(_last(run, "counts/states") for run in runs),
        "rate": _median(_rate(run) for run in runs),
        "memory": _median(run.peak_memory for run in runs),
        "target": target,
        "reached": None,
    }
    if reached and target > 0:
        steps, seconds = (median(part) for part in zip(*reached, strict=True))
        found["reached"] = [steps, seconds, len(reached), len(times)]
    return found


def time_to(run: Follower, target: float) -> tuple[float, float] | None:
    """Returns the steps and seconds after which the mean return of 40 episodes first was `target`; None: it was not."""
    steps, returns = run.points.series("return_mean40")
    when = next((step for step, value in zip(steps, returns, strict=True) if value >= target), None)
    clock = dict(zip(*run.points.series("seconds"), strict=True))
    return None if when is None or when not in clock else (float(when), float(clock[when]))


def _last(run: Follower, name: str) -> float | None:
    values = run.points.series(name)[1]
    return float(values[-1]) if len(values) else None


def _rate(run: Follower) -> float | None:
    seconds = _last(run, "seconds")
    return float(run.points.newest["step"]) / seconds if seconds else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
