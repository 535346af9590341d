"""The tables of archive runs: what is read from finished runs, and what is not known."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import archive
from benchmarks.measure import Settings
from benchmarks.rows import Row
from coex.config.presets import make_config

GRID = archive.GRIDS[0]
SETTINGS = {"total_steps": 3_000, "seed": 2, "env": {"levels": 1, "first_level": archive.LAYOUT}}


def leave_run(
    path: Path, game: str, method: str, points: list[dict[str, Any]], episodes: str = "", **more: Any
) -> None:
    path.mkdir(parents=True)
    config = make_config(game, method, SETTINGS | more)
    (path / "config.json").write_text(json.dumps(config.to_dict()))
    (path / "metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    (path / "episodes.csv").write_text(f"episode,step,env,return,length,truncated\n{episodes}")
    (path / "summary.json").write_text(json.dumps({"finished": True}))


def test_a_goal_is_met_in_an_episode_or_in_a_burst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tmp_path / "runs"
    points = [{"step": step, "archive/best": best, "archive/best_length": 31, "return_mean40": None}
              for step, best in ((1_000, 0.0), (2_000, 0.6), (3_000, 0.7))]  # fmt: skip
    leave_run(runs / "a", f"gym:{GRID}", "archive", points, "0,2900,0,0.5,9,0\n")
    leave_run(runs / "b" / "c", f"gym:{GRID}", "a2c+coex", [{"step": 3_000, "return_mean40": 0.0}], "0,80,0,0.0,80,0\n")
    leave_run(runs / "other", f"gym:{GRID}", "a2c", [{"step": 3_000, "return_mean40": 0.0}])
    leave_run(runs / "elsewhere", f"gym:{GRID}", "archive", points, env={"levels": 1, "first_level": 6})
    leave_run(runs / "stopped", f"gym:{GRID}", "archive", points)
    (runs / "stopped" / "summary.json").unlink()
    monkeypatch.setattr(archive, "RESULTS", tmp_path)
    archive.keep_table("minigrid", runs)
    assert (tmp_path / "minigrid.md").read_text().splitlines()[2:] == [
        f"| {GRID} | a2c+coex | 2 | – | 3,000 | – | – | 0.0 |",
        f"| {GRID} | archive | 2 | deterministic environment | 3,000 | 2,000 | 31 | – |",
    ]


def test_games_that_were_only_explored_make_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = {
        "step": 3_000,
        "archive/best": 400.0,
        "archive/best_length": 77,
        "archive/cells": 1_234,
        "archive/rooms": 5,
    }
    env: dict[str, Any] = {"levels": 0, "first_level": 0}
    explored: dict[str, Any] = {"env": env, "learner": {"explore_steps": 3_000}}
    leave_run(tmp_path / "runs" / "Hero", "hero", "archive", [point | {"adm/distance": 0.61234}], **explored)
    leave_run(tmp_path / "runs" / "taught", "hero", "archive", [point], env=env)
    leave_run(tmp_path / "runs" / "ram", "hero", "archive-ram", [point], **explored)
    (tmp_path / "runs" / "taught" / "config.json").write_text(
        json.dumps(dataclasses.replace(make_config("hero", "archive"), total_steps=1_000_000).to_dict())
    )
    monkeypatch.setattr(archive, "RESULTS", tmp_path)
    archive.keep_table("games", tmp_path / "runs")
    [row] = json.loads((tmp_path / "games.json").read_text())["runs"]
    assert list(row.values()) == ["Hero", 2, "resettable simulator", 3_000, 400.0, 77, 1_234, 5, None, 0.612]


def test_speed_is_of_exploring_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def time_one(row: Row, settings: Settings, seed: int) -> float:
        assert row.options == ("--set", "learner.explore_steps=500")
        assert settings.steps == 500
        return {"archive": 100.0, "archive-ram": 300.0}[row.method] + seed

    monkeypatch.setattr(archive, "time_ours", time_one)
    monkeypatch.setattr(archive, "RESULTS", tmp_path)
    archive.keep_speed(500, [0, 1])
    found = json.loads((tmp_path / "speed.json").read_text())
    assert found["steps_per_second"] == {"archive": [100.0, 101.0], "archive-ram": [300.0, 301.0]}
    assert found["machine"]["cores"] >= 1


def test_no_run_makes_an_empty_table() -> None:
    assert archive.as_table([]) == ""
