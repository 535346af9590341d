"""The parts of the page about several runs: by game, then by method, over seeds."""

from dataclasses import dataclass
from html import escape

import numpy as np

from coex.report.aggregate import aggregate
from coex.report.charts import NUM_COLOURS, Line, Mark, chart
from coex.report.run import Run
from coex.report.sections import CURVES, paper_mark
from coex.results.statistics import MIN_SEEDS, bootstrap_interval, interquartile_mean
from coex.runs.directory import score_at
from coex.runs.progress import count, number


@dataclass(frozen=True)
class Group:
    """The runs of one method, with the same settings and schedule, on one game."""

    label: str
    runs: list[Run]
    colour: int


@dataclass(frozen=True)
class Score:
    """The paper's score over seeds at a common number of steps."""

    middle: float
    low: float
    high: float
    seeds: int


def group_by_game(runs: list[Run]) -> dict[str, list[Group]]:
    """Games and methods in the order in which they were named."""
    games: dict[str, dict[tuple[str, int | None], list[Run]]] = {}
    for run in runs:
        games.setdefault(run.config.game, {}).setdefault((run.variant, run.schedule_steps), []).append(run)
    return {game: _groups(variants) for game, variants in games.items()}


def _groups(variants: dict[tuple[str, int | None], list[Run]]) -> list[Group]:
    groups = []
    names = [variant for variant, _ in variants]
    for index, ((variant, schedule), members) in enumerate(variants.items()):
        # What all runs of a method share needs no name.
        schedule_name = f", planned for {count(schedule)} steps" if schedule and names.count(variant) > 1 else ""
        groups.append(Group(variant + schedule_name, members, index % NUM_COLOURS))
    return groups


def common_steps(groups: list[Group]) -> int:
    """The largest budget that every run has used; runs without a log point do not count."""
    return min((run.step for group in groups for run in group.runs if run.points), default=0)


def score_of(group: Group, steps: int) -> Score | None:
    """IQM and bootstrap interval of three seeds or more; mean and range of fewer; None without any."""
    scores = [score for run in group.runs if (score := _score_at(run, steps)) is not None]
    if not scores:
        return None
    if len(scores) < MIN_SEEDS:
        return Score(float(np.mean(scores)), min(scores), max(scores), len(scores))
    low, high = bootstrap_interval(scores)
    return Score(float(interquartile_mean(scores)), float(low), float(high), len(scores))


def _score_at(run: Run, steps: int) -> float | None:
    points = [{"max_return_mean40": None} | point for point in run.points]
    return score_at(points, steps)


def table(groups: list[Group]) -> str:
    """One row a method."""
    steps = common_steps(groups)
    rows = "".join(_row(group, steps) for group in groups)
    return (
        f"<p>Scores are the best mean return of 40 episodes within {steps:,} steps, which every run "
        f"that has logged anything has done. From "
        f"{MIN_SEEDS} seeds on: interquartile mean and 95 % bootstrap interval; with fewer: mean and range. "
        "A game played is one that <code>coex eval</code> played with the newest checkpoint.</p>"
        '<div class="scroll"><table class="scores"><thead><tr><th>method</th><th>score</th><th>interval</th>'
        f"<th>seeds</th><th>games played</th><th>the paper</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(group: Group, steps: int) -> str:
    score = score_of(group, steps)
    middle = number(score.middle) if score else "–"
    interval = f"{number(score.low)} to {number(score.high)}" if score and score.seeds > 1 else "–"
    paper = group.runs[0].published
    published = f"{number(paper.score)} <small>{count(paper.steps)} steps</small>" if paper else "–"
    counted = sorted(run.config.seed for run in group.runs if run.points)
    return (
        f'<tr><th><i class="c{group.colour}"></i>{escape(group.label)}</th><td><b>{middle}</b></td><td>{interval}</td>'
        f"<td>{len(counted)} <small>({', '.join(map(str, counted)) or 'none yet'})</small></td>"
        f"<td>{_played(group)}</td><td>{published}</td></tr>"
    )


def _played(group: Group) -> str:
    """The mean return of the games that `coex eval` played with the runs' newest checkpoints."""
    played = [result for run in group.runs if (result := run.played) is not None]
    if not played:
        return "–"
    games = sum(games for _, games in played)
    mean = sum(mean * games for mean, games in played) / games
    return f"<b>{number(mean)}</b> <small>mean of {games}</small>"


def curves(groups: list[Group]) -> str:
    """The learning curves, then every measure that at least one method has; the first metric of each chart."""
    marks = [mark for group in groups for mark in paper_mark(group.runs[0], group.colour)]
    learning = _compare(
        "Learning curves", "mean return of the last 40 episodes", "return_mean40", groups, marks, "wide"
    )
    others = [_compare(title, unit, next(iter(keys)), groups, [], "") for title, unit, keys in CURVES]
    return f'<div class="charts">{learning}{"".join(others)}</div>'


def _compare(title: str, unit: str, key: str, groups: list[Group], marks: list[Mark], classes: str) -> str:
    lines = []
    for group in groups:
        measured = [series for run in group.runs if len((series := run.series(key))[0])]
        curve = aggregate(measured)
        if curve is not None:
            label = f"{group.label}, {len(measured)} seed{'s' if len(measured) > 1 else ''}"
            lines.append(Line(label, curve.steps, curve.middle, curve.low, curve.high, group.colour))
    return chart(title, unit, lines, marks, classes=classes)
