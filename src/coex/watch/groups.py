"""Runs of one game side by side: seeds of a method as one curve, the paper's score at a common budget, and costs."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np

from coex.config.run import OPERATIONAL
from coex.results.statistics import MIN_SEEDS, Floats, bootstrap_interval, interquartile_mean
from coex.watch.follow import Follower, short

_POINTS = 160  # of a curve
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
    curves = {run.key: curve for run in runs if (curve := run.points.series("return_mean40"))[0]}
    ends = [step for steps, _ in curves.values() for step in (steps[0], steps[-1])]
    grid = np.unique(np.linspace(min(ends), max(ends), _POINTS)) if ends else np.empty(0)
    names = [variant for variant, _ in groups]
    scores = {key: score(members, budget) for key, members in groups.items()}
    if target is None:
        target = max((found["middle"] for found in scores.values() if found), default=0.0) / 2
    shared = _shared([members[0] for members in groups.values()])
    return [
        {
            "label": variant + planned,
            "short": _short(members[0], shared) + planned,
            "shared": ", ".join(shared),
            "seeds": sorted({run.identity.seed for run in members}),
            "budget": budget,
            "steps": [short(step) for step in grid.tolist()],
            "score": scores[variant, schedule],
            "costs": costs(members, target),
            "played": _played(members),
            "paper": members[0].identity.paper,
            "runs": [run.key for run in members],
            "curves": join(grid, [curves[run.key] for run in members if run.key in curves]),
        }
        for (variant, schedule), members in sorted(groups.items())
        for planned in [f", planned for {schedule:,} steps" if names.count(variant) > 1 and schedule else ""]
    ]


def _settings(run: Follower) -> list[str]:
    """What makes a run's method another one, as texts."""
    return [
        f"{name} = {text}" for name, text, is_changed in run.identity.settings
        if is_changed and name.partition(".")[0] not in OPERATIONAL
    ]  # fmt: skip


def _shared(runs: Sequence[Follower]) -> list[str]:
    """Returns the settings that all methods of a game have: nothing to tell them apart by."""
    first = _settings(runs[0]) if len(runs) > 1 else []
    return [text for text in first if all(text in _settings(run) for run in runs)]


def _short(run: Follower, shared: Sequence[str]) -> str:
    own = ", ".join(text for text in _settings(run) if text not in shared)
    return run.identity.method + (f" ({own})" if own else "")


def score(runs: Sequence[Follower], budget: int) -> dict[str, float] | None:
    """Returns the middle of the best scores within a budget and its interval, or of few its range; None without any."""
    scores = []
    for run in runs:
        steps, values = run.points.series("max_return_mean40")
        within = [value for step, value in zip(steps, values, strict=True) if step <= budget]
        scores += within[-1:]
    if not scores:
        return None
    middle, low, high = _sum_up(np.array(scores)).tolist()
    return {"middle": middle, "low": low, "high": high, "seeds": len(scores)}


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


def join(grid: Floats, curves: Sequence[Series]) -> dict[str, Any]:
    """Returns curves at common steps: each, and where all have values, their middle and its interval or range."""
    each = np.array([np.interp(grid, *curve, left=np.nan, right=np.nan) for curve in curves])  # (S, P)
    joined = np.full((3, len(grid)), np.nan)
    if len(each) and (shared := ~np.isnan(each).any(0)).any():
        joined[:, shared] = _sum_up(each[:, shared], max(100, _DRAWS // len(each)))
    middle, low, high, *rest = ([short(value) for value in values] for values in [*joined.tolist(), *each.tolist()])
    return {"middle": middle, "low": low, "high": high, "each": rest}


def _sum_up(values: Floats, draws: int = 2_000) -> Floats:
    """Returns IQM and bootstrap interval of three seeds or more, mean and range of fewer."""
    if len(values) < MIN_SEEDS:
        return np.stack([values.mean(0), values.min(0), values.max(0)])
    return np.stack([interquartile_mean(values), *bootstrap_interval(values, draws)])
