"""Tables: the paper's figures and ours, line under line, as Markdown and CSV."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from coex.paper.curves import TableCell, measure
from coex.paper.study import Request, Row, Study
from coex.runs.progress import count, number

NOT_RUN = "not run"
_LEGEND = (
    "Best mean return of 40 episodes within the budget. *Ours*: score · steps × seeds; from 3 seeds on it is the "
    "interquartile mean with its 95 % bootstrap interval, below that the mean. *Paper*: what it printed, at its budget."
)


def draw_table(study: Study, request: Request) -> list[Path]:
    """`<name>.md` and `<name>.csv`."""
    lines = [line for row in study.rows for line in _lines(study, row, request)]
    request.out.mkdir(parents=True, exist_ok=True)
    stem = request.out / study.stem(request.games)
    markdown, table = Path(f"{stem}.md"), Path(f"{stem}.csv")
    markdown.write_text(_markdown(study, request.games, lines))
    with table.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "game", "paper_steps", "paper", "preset", "ours", "low", "high", "steps", "seeds"])
        for line in lines:
            for game, cell in zip(request.games, line.cells, strict=True):
                row, preset = line.row, line.row.preset if line.row.method else None
                ours = (cell.value, cell.low, cell.high, cell.steps, cell.seeds) if cell else (None,) * 5
                writer.writerow([row.label, game, row.steps, row.published.get(game), preset, *ours])
    return [markdown, table]


class _Line(NamedTuple):
    """What we measured of a row with one preset; nothing, of rows that are others'."""

    row: Row
    cells: list[TableCell | None]  # one a game


def _lines(study: Study, row: Row, request: Request) -> list[_Line]:
    """One line for the row's preset, and one for the paper's where there is something to show."""
    if not row.method:
        return [_Line(row, [None] * len(request.games))]
    rows = [row, replace(row, preset="paper")]
    lines = [_Line(one, [measure(study, one, game, request.steps, request.out) for game in request.games])
             for one in rows]  # fmt: skip
    return lines if any(lines[1].cells) and row.preset != "paper" else lines[:1]


def _markdown(study: Study, games: tuple[str, ...], lines: Sequence[_Line]) -> str:
    text = [f"# {study.title}", "", _LEGEND, ""]
    text += [_join(["method", "", *games]), _join(["---"] * 2 + ["---:"] * len(games))]
    published: Row | None = None
    for row, cells in lines:
        if published is None or (row.label, row.steps) != (published.label, published.steps):
            published = row
            if row.published:
                scores = [number(row.published.get(game)) for game in games]
                text.append(_join([row.label, f"paper, {count(row.steps)}", *scores]))
        if row.method:
            label = "" if row.published else row.label
            text.append(_join([label, f"ours, {row.preset} preset", *map(format_cell, cells)]))
    text += ["", *(f"- {note}" for note in study.notes)] if study.notes else []
    return "\n".join(text) + "\n"


def format_cell(cell: TableCell | None) -> str:
    """`34 [33.5, 34] · 1M × 3`."""
    if cell is None:
        return NOT_RUN
    value = "no episode ended" if cell.value is None else number(cell.value)
    interval = "" if cell.low is None else f" [{number(cell.low)}, {number(cell.high)}]"
    return f"{value}{interval} · {count(cell.steps)} × {cell.seeds}"


def _join(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
