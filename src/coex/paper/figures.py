"""Figures: curves of our runs, one panel a game, with the paper's score in the legend where it gave one."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from coex.paper.curves import Curve, find_curves
from coex.paper.study import Request, Row, Study
from coex.paper.tables import NOT_RUN
from coex.results.statistics import Floats, aggregate
from coex.runs.progress import count, number

_MAX_COLUMNS, _GRID_POINTS, _DPI = 4, 100, 100


class Line(NamedTuple):
    """One method's curve in one game."""

    row: Row
    game: str
    seeds: int
    steps: Floats  # (P,)
    each: Floats  # (n, P) the seeds
    value: Floats  # (P,) over them
    low: Floats | None
    high: Floats | None


def draw_curves(study: Study, request: Request, *, metric: str = "return_mean40", ylabel: str) -> list[Path]:
    """`<name>.png` and `<name>.csv`."""
    lines = [line for game in request.games for row in study.our_rows() if (line := _line(row, game, request, metric))]
    request.out.mkdir(parents=True, exist_ok=True)
    stem = request.out / study.stem(request.games)
    picture, table = Path(f"{stem}.png"), Path(f"{stem}.csv")
    _draw(study, request.games, lines, ylabel, picture)
    with table.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["game", "method", "seeds", "step", metric, "low", "high"])
        for line in lines:
            low, high = (bound if bound is not None else [None] * len(line.steps) for bound in (line.low, line.high))
            for step, *values in zip(line.steps, line.value, low, high, strict=True):
                texts = ["" if value is None else f"{value:.5g}" for value in values]
                writer.writerow([line.game, line.row.label, line.seeds, round(step), *texts])
    return [picture, table]


def draw_panels(study: Study, request: Request, *, ylabel: str) -> list[Path]:
    """`<name>.png`: a panel for each bonus of the first game, a colour for each learner, dashed without a bonus."""
    game = request.games[0]
    found = [line for row in study.our_rows() if (line := _line(row, game, request, "return_mean40"))]
    bonuses = list(dict.fromkeys(_bonus(row) for row in study.our_rows() if _bonus(row)))
    learners = list(dict.fromkeys(row.method.partition("+")[0] for row in study.our_rows()))
    rows = math.ceil(len(bonuses) / _MAX_COLUMNS)
    figure, grid = plt.subplots(
        rows, _MAX_COLUMNS, figsize=(2.5 * _MAX_COLUMNS, 1.8 * rows + 0.6), layout="constrained", squeeze=False,
        sharex=True, sharey=True,
    )  # fmt: skip
    for axes, bonus in zip(grid.flat, bonuses, strict=False):
        seeds = max((line.seeds for line in found if _bonus(line.row) == bonus), default=0)
        axes.set_title(f"{bonus} ({_seeds(seeds)})" if seeds else f"{bonus}: {NOT_RUN}", fontsize="small")
        for line in found:
            if _bonus(line.row) in ("", bonus):
                colour = f"C{learners.index(line.row.method.partition('+')[0])}"
                _draw_line(axes, line, colour, style="-" if _bonus(line.row) else ":")
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda steps, _: count(steps)))
        axes.tick_params(labelsize="x-small")
    for axes in grid.flat[len(bonuses) :]:
        axes.axis("off")
    figure.supylabel(ylabel, fontsize="small")
    keys = [Line2D([], [], color=f"C{k}", label=learner) for k, learner in enumerate(learners)]
    keys.append(Line2D([], [], color="grey", linestyle=":", label="without a bonus"))
    figure.legend(handles=keys, fontsize="small", frameon=False, ncols=len(keys), loc="outside lower center")
    figure.suptitle(study.title, fontsize="medium")
    request.out.mkdir(parents=True, exist_ok=True)
    picture = Path(f"{request.out / study.stem(request.games)}.png")
    figure.savefig(picture, dpi=_DPI)
    plt.close(figure)
    return [picture]


def _bonus(row: Row) -> str:
    return row.method.partition("+")[2]


def _line(row: Row, game: str, request: Request, metric: str) -> Line | None:
    curves = [series for curve in find_curves(request.out, game, row.variant(game), request.steps)
              if len((series := _series(curve, metric))[0])]  # fmt: skip
    if not curves:
        return None
    # From where all have begun to where all have come, so that every point is over the same seeds.
    start, end = max(steps[0] for steps, _ in curves), min(min(steps[-1] for steps, _ in curves), request.steps)
    grid = np.linspace(min(start, end), end, _GRID_POINTS)
    each = np.stack([np.interp(grid, steps, values) for steps, values in curves])  # (n, P)
    return Line(row, game, len(curves), grid, each, *aggregate(each))


def _series(curve: Curve, metric: str) -> tuple[list[float], list[float]]:
    points = [point for point in curve.points if point.get(metric) is not None]
    return [point["step"] for point in points], [point[metric] for point in points]


def _draw(study: Study, games: Sequence[str], lines: Sequence[Line], ylabel: str, path: Path) -> None:
    columns = min(len(games), _MAX_COLUMNS)
    rows = math.ceil(len(games) / columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(3.4 * columns, 3.3 * rows + 0.4), layout="constrained", squeeze=False
    )
    for axes, game in zip(grid.flat, games, strict=False):
        _panel(axes, game, [line for line in lines if line.game == game], study)
    for axes in grid.flat[len(games) :]:
        axes.axis("off")
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel)
    figure.suptitle(study.title, fontsize="medium")
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)


def _panel(axes: Any, game: str, lines: Sequence[Line], study: Study) -> None:
    axes.set_title(game, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    if not lines:
        axes.text(0.5, 0.5, NOT_RUN, transform=axes.transAxes, ha="center", color="grey")
        axes.set(xticks=[], yticks=[])
        return
    for line in lines:
        colour = f"C{study.rows.index(line.row)}"  # a method has one colour in all panels
        _draw_line(axes, line, colour, label=_label(line))
    missing = [row.label for row in study.our_rows() if row not in [line.row for line in lines]]
    for label in missing:
        axes.plot([], [], color="none", label=f"{label}: {NOT_RUN}")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda steps, _: count(steps)))
    axes.tick_params(labelsize="x-small")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.legend(fontsize=6.5, frameon=False, loc="upper left", bbox_to_anchor=(-0.1, -0.08))  # below the curves


def _draw_line(axes: Any, line: Line, colour: str, *, label: str | None = None, style: str = "-") -> None:
    axes.plot(line.steps, line.value, color=colour, label=label, linewidth=1.5, linestyle=style)
    if line.low is not None and line.high is not None:
        axes.fill_between(line.steps, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
    elif line.seeds > 1:
        axes.plot(line.steps, line.each.T, color=colour, alpha=0.3, linewidth=0.7)


def _seeds(number: int) -> str:
    return f"{number} seed{'' if number == 1 else 's'}"


def _label(line: Line) -> str:
    seeds = _seeds(line.seeds)
    published = line.row.published.get(line.game)
    paper = "" if published is None else f"; paper {number(published)} at {count(line.row.steps)}"
    return f"{line.row.label} ({seeds}{paper})"
