"""Tables: the paper's figures and ours, line under line, as Markdown and CSV."""

import csv
from pathlib import Path

from coex.paper.results import Cell, measure
from coex.paper.study import Request, Row, Study
from coex.progress import count, number

NOT_RUN = "not run"
_LEGEND = (
    "Best mean return of 40 episodes within the budget. *Ours*: score · steps × seeds; from 3 seeds on it is the "
    "interquartile mean with its 95 % bootstrap interval, below that the mean. *Paper*: what it printed, at its budget."
)


def draw_table(study: Study, request: Request) -> list[Path]:
    """`<name>.md` and `<name>.csv`."""
    games = request.games
    cells = {
        (row.label, row.steps, game): measure(study, row, game, request.steps, request.out)
        for row in study.our_rows()
        for game in games
    }
    request.out.mkdir(parents=True, exist_ok=True)
    stem = request.out / study.stem(games)
    markdown, table = Path(f"{stem}.md"), Path(f"{stem}.csv")
    markdown.write_text(_markdown(study, games, cells))
    with table.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "game", "paper_steps", "paper", "ours", "low", "high", "steps", "seeds"])
        for row in study.rows:
            for game in games:
                cell = cells.get((row.label, row.steps, game))
                ours = (cell.value, cell.low, cell.high, cell.steps, cell.seeds) if cell else (None,) * 5
                writer.writerow([row.label, game, row.steps, row.published.get(game), *ours])
    return [markdown, table]


def _markdown(study: Study, games: tuple[str, ...], cells: dict[tuple[str, int, str], Cell | None]) -> str:
    lines = [f"# {study.title}", "", _LEGEND, ""]
    lines += [_line(["method", "", *games]), _line(["---"] * 2 + ["---:"] * len(games))]
    for row in study.rows:
        lines.append(_line([row.label, f"paper, {count(row.steps)}", *(_published(row, game) for game in games)]))
        if row.method:
            lines.append(_line(["", "ours", *(format_cell(cells[row.label, row.steps, game]) for game in games)]))
    return "\n".join(lines) + "\n"


def format_cell(cell: Cell | None) -> str:
    """`34 [33.5, 34] · 1M × 3`."""
    if cell is None:
        return NOT_RUN
    value = "no episode ended" if cell.value is None else number(cell.value)
    interval = "" if cell.low is None else f" [{number(cell.low)}, {number(cell.high)}]"
    return f"{value}{interval} · {count(cell.steps)} × {cell.seeds}"


def _published(row: Row, game: str) -> str:
    return number(row.published.get(game))


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
