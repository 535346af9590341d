"""Runs of one game side by side: seeds of a method as one curve, and the paper's score at a common budget."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from coex.results.statistics import MIN_SEEDS, Floats, bootstrap_interval, interquartile_mean
from coex.watch.costs import costs
from coex.watch.follow import Follower

_POINTS = 120  # of a curve
_RESAMPLES = 400  # for a curve's band; scores have the full number
Series = tuple[Sequence[float], Sequence[float]]  # steps and values


def compare(runs: Sequence[Follower], target: float | None = None) -> list[dict[str, Any]]:
    """Returns the methods of one game, in the order of their names: curves, scores and seeds, as JSON can hold them.

    The time to the mean return `target` is told of each; without one, it is half of the best score.
    """
    groups: dict[tuple[str, int], list[Follower]] = {}
    for run in runs:
        if run.identity is not None:
            groups.setdefault((run.identity.variant, run.identity.schedule_steps), []).append(run)
    budget = common_steps(runs)
    names = [variant for variant, _ in groups]
    scores = {key: score(members, budget) for key, members in groups.items()}
    if target is None:
        target = max((found["middle"] for found in scores.values() if found), default=0.0) / 2
    return [
        {
            "label": variant + (f", planned for {schedule:,} steps" if names.count(variant) > 1 and schedule else ""),
            "seeds": sorted({run.identity.seed for run in members if run.identity}),
            "budget": budget,
            "score": scores[variant, schedule],
            "costs": costs(members, target),
            "played": _played(members),
            "paper": members[0].identity and members[0].identity.paper,
            "curve": join([run.points.series("return_mean40") for run in members]),
            "each": [
                {"id": run_id(run), **_thin(*run.points.series("return_mean40"))} for run in members if run.points.count
            ],
        }
        for (variant, schedule), members in sorted(groups.items())
    ]


def run_id(run: Follower) -> str:
    """Returns a name for URLs that stays the same from server to server, and leads nowhere but to a table."""
    return hashlib.sha256(str(run.path).encode(errors="surrogateescape")).hexdigest()[:12]


def common_steps(runs: Sequence[Follower]) -> int:
    """Returns the largest budget that every run has used; runs without a log point do not count."""
    return int(min((run.points.newest["step"] for run in runs if run.points.count), default=0))


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
    return _as_lists(grid, interquartile_mean(values), *bootstrap_interval(values, _RESAMPLES))


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
