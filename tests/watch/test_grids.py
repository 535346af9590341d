"""The state of a grid is shown as its files tell, and nothing that its file names is imported or followed."""

import json
import os
import sys
from pathlib import Path

import pytest

from coex.grid.plan import Grid, read_grid
from coex.grid.status import describe_grid
from coex.runs.lock import RunLock
from coex.watch.runs import Runs

from .conftest import write_run

FILE = 'games = ["freeway"]\nmethods = ["a2c", "ppo"]\nseeds = 2\nsteps = 1000\nfailures = 2\n'


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    (tmp_path / "small.toml").write_text(FILE + f'out = "{tmp_path / "runs"}"\n')
    grid = read_grid(tmp_path / "small.toml")
    grid.keep()
    return grid


def look(place: Path) -> list[dict[str, object]]:
    runs = Runs([place], describe_grid=describe_grid)
    runs.poll()
    found: list[dict[str, object]] = runs.overview(0)["grids"] or []
    return found


def fail(grid: Grid, number: int, code: int, error: str) -> None:
    with grid.runs[number].records.open("a") as file:
        for event in ({"start": "k", "time": 0, "host": "h", "step": -1}, {"end": "k", "code": code, "error": error}):
            file.write(json.dumps(event) + "\n")


def test_runs_of_a_grid_by_state(grid: Grid) -> None:
    assert [row["state"] for row in look(grid.out)[0]["runs"]] == ["waiting"] * 4
    finished = write_run(grid.runs[0].out)
    (finished / "summary.json").write_text('{"finished": true}')
    fail(grid, 0, 1, "once")
    fail(grid, 2, 2, "<b>bad input</b>")
    fail(grid, 3, 1, "out of memory")
    with RunLock(write_run(grid.runs[1].out)):
        runs = Runs([grid.out.parent], describe_grid=describe_grid)  # found by its runs
        runs.poll()
        runs._scanned_at = float("-inf")
        runs.poll()
        news = runs.overview(0)
    [shown] = news["grids"]
    assert shown["name"] == "runs"
    assert [row["name"] for row in shown["runs"]] == [run.name for run in grid.runs]
    told = [(row["state"], row["attempts"], row["error"]) for row in shown["runs"]]
    assert told == [
        ("finished", 1, ""), ("running", 0, ""), ("given up", 1, "<b>bad input</b>"), ("waiting", 1, "out of memory")
    ]  # fmt: skip
    cards = {card["name"].partition("/runs/")[2]: card["id"] for card in news["runs"]}
    assert [row["id"] for row in shown["runs"]] == [*(cards[run.name] for run in grid.runs[:2]), None, None]
    assert runs.overview(news["version"])["grids"] is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "[]",
        '{"runs": 5, "failures": 1}',
        '{"runs": [[]], "failures": 1}',
        "[" * 9_000,
        '{"runs": ["\\u0000"]}',
    ],
)
def test_a_broken_plan_is_no_grid(grid: Grid, content: str) -> None:
    (grid.out / ".grid" / "plan.json").write_text(content)
    write_run(grid.runs[0].out)
    assert look(grid.out) == []


def test_nothing_beyond_the_grid_is_read(grid: Grid, tmp_path: Path) -> None:
    plan = {"failures": 1, "runs": ["../../elsewhere", "/etc/passwd", "Freeway/a2c+this:Evil-1-s0", "pipe", "link"]}
    (grid.out / ".grid" / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "secret").write_text('{"start": "k", "step": -1}\n')
    (grid.out / ".grid" / "link.jsonl").symlink_to(tmp_path / "secret")
    os.mkfifo(grid.out / ".grid" / "pipe.jsonl")
    sys.modules.pop("this", None)
    [shown] = look(grid.out)
    assert [(row["state"], row["attempts"], row["id"]) for row in shown["runs"]] == [("waiting", 0, None)] * 5
    assert "this" not in sys.modules
