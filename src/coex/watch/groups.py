"""Runs of one game side by side: seeds of a method as one curve, the paper's score at a common budget, and costs."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np

from coex.results.statistics import MIN_SEEDS, Floats, bootstrap_interval, interquartile_mean
from coex.watch.follow import Follower

_POINTS = 120  # of a curve
_DRAWS = 4_000  # of seeds for a curve's band, which is joined again whenever a run has grown; scores have more
Series = tuple[Sequence[float], Sequence[float]]  # steps and values


def compare(runs: Sequence[Follower], target: float | None = None) -> list[dict[str, Any]]:
    """Returns the methods of one game, in the order of their names: curves, scores and seeds, as JSON can hold them.

    The time to the mean return `target` is told of each; without one, it is half of the best score.
    """
    groups: dict[tuple[str, int], list[Follower]] = {}
    for run in runs:
        groups.setdefault((run.identity.variant, run.identity.schedule_steps), []).append(run)
    # The largest that every run has used; runs without a log point do not count.
    budget = int(min((run.points.newest["step"] for run in runs if run.points.count), default=0))
    names = [variant for variant, _ in groups]
    scores = {key: score(members, budget) for key, members in groups.items()}
    if target is None:
        target = max((found["middle"] for found in scores.values() if found), default=0.0) / 2
    return [
        {
            "label": variant + (f", planned for {schedule:,} steps" if names.count(variant) > 1 and schedule else ""),
            "seeds": sorted({run.identity.seed for run in members}),
            "budget": budget,
            "score": scores[variant, schedule],
            "costs": costs(members, target),
            "played": _played(members),
            "paper": members[0].identity.paper,
            "curve": join([run.points.series("return_mean40") for run in members]),
            "each": [
                {"id": run.key, **_thin(*run.points.series("return_mean40"))} for run in members if run.points.count
            ],
        }
        for (variant, schedule), members in sorted(groups.items())
    ]


def score(runs: Sequence[Follower], budget: int) -> dict[str, float] | None:
    """Returns IQM and bootstrap interval of three seeds or more, mean and range of fewer; None without any."""
    scores = []
    for run in runs:
        steps, values = run.points.series("max_return_mean40")
        within = [value for step, value in zip(steps, values, strict=True) if step <= budget]
        scores += within[-1:]
    if not scores:
        return None
    if len(scores) < MIN_SEEDS:
        return {"middle": float(np.mean(scores)), "low": min(scores), "high": max(scores), "seeds": len(scores)}
    low, high = bootstrap_interval(scores)
    return {"middle": float(interquartile_mean(scores)), "low": float(low), "high": float(high), "seeds": len(scores)}


def _played(runs: Sequence[Follower]) -> tuple[float, int] | None:
    """The mean return of the games that `coex eval` played with the runs' newest checkpoints, and their number."""
    played = [result for run in runs if (result := run.played()) is not None]
    games = sum(games for _, games in played)
    return (sum(mean * games for mean, games in played) / games, games) if played else None


def costs(runs: Sequence[Follower], target: float) -> dict[str, Any]:
    """Returns medians of rooms, states, steps a second, bytes, and when the mean of 40 episodes first was `target`."""
    newest = [run.points.newest for run in runs if run.points.count]
    times = [time_to(run, target) for run in runs if run.points.count]
    reached = [time for time in times if time is not None] if target > 0 else []
    return {
        "rooms": _median(point.get("rooms/true") or None for point in newest),  # 0: nobody looked
        "states": _median(point.get("counts/states") for point in newest),
        "rate": _median(point["step"] / point["seconds"] if point.get("seconds") else None for point in newest),
        "memory": _median(run.peak_memory for run in runs),
        "target": target,
        "reached": [*map(median, zip(*reached, strict=True)), len(reached), len(times)] if reached else None,
    }


def time_to(run: Follower, target: float) -> tuple[float, float] | None:
    """Returns the steps and seconds after which the mean return of 40 episodes first was `target`; None: it was not."""
    steps, returns = run.points.series("return_mean40")
    when = next((step for step, value in zip(steps, returns, strict=True) if value >= target), None)
    clock = dict(zip(*run.points.series("seconds"), strict=True))
    return None if when is None or when not in clock else (when, clock[when])


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def join(curves: Sequence[Series]) -> dict[str, list[float]] | None:
    """Returns the curve of several seeds where all have values, with their interval or, of few, their range."""
    curves = [(steps, values) for steps, values in curves if len(steps)]
    if not curves:
        return None
    if len(curves) == 1:
        return _thin(*curves[0])
    first, last = max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves)
    if first > last:
        return None
    grid = np.linspace(first, last, _POINTS if last > first else 1)
    values = np.stack([np.interp(grid, steps, values) for steps, values in curves])  # (S, P)
    if len(curves) < MIN_SEEDS:
        return _as_lists(grid, values.mean(0), values.min(0), values.max(0))
    return _as_lists(grid, interquartile_mean(values), *bootstrap_interval(values, max(100, _DRAWS // len(values))))


def _thin(steps: Sequence[float], values: Sequence[float]) -> dict[str, list[float]]:
    kept = np.linspace(0, len(steps) - 1, min(len(steps), _POINTS)).round().astype(int)
    return _as_lists(np.asarray(steps)[kept], np.asarray(values)[kept])


def _as_lists(steps: Floats, middle: Floats, low: Floats | None = None, high: Floats | None = None) -> dict[str, Any]:
    arrays = {"steps": steps, "middle": middle, "low": low, "high": high}
    return {
        name: [float(f"{value:.6g}") for value in values.tolist()]
        for name, values in arrays.items()
        if values is not None
    }
