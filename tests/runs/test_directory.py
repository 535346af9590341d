"""The run directory's files."""

import csv
import itertools
import json
import os
import time
from pathlib import Path

import pytest

from benchmarks.kill import events
from coex.config.presets import make_config
from coex.errors import UsageError
from coex.rollouts.rollout import Episode
from coex.runs.directory import RunDirectory, ScoreBoard, read_metrics, score_at

CONFIG = make_config("hero", "a2c", {"total_steps": 100})


def test_the_score_is_the_best_mean_of_40_episodes() -> None:
    board = ScoreBoard()
    assert board.mean is None
    assert board.record is None
    for score in [100.0] + [0.0] * 39:
        board.add(score)
    assert board.record == board.mean == 2.5
    for score in range(80):
        board.add(score)
    assert board.mean == sum(range(40, 80)) / 40 == board.record
    board.add(-1000.0)
    assert board.mean < board.record == 59.5


def test_few_episodes_are_no_record_once_there_are_40() -> None:
    board = ScoreBoard()
    board.add(400.0)
    assert board.record == 400.0  # all there is
    for _ in range(40):
        board.add(0.0)
    assert board.record == 10.0  # the first full window


def test_everything_is_written_and_can_be_read_back(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run", CONFIG) as run:
        run.add_episodes([Episode(env=3, step=64, score=75.0, length=4, truncated=False)])
        run.log({"step": 80, "loss": 0.5, "max_return_mean40": 75.0, "nothing": None, "odd": float("nan")})
        run.log({"step": 160, "loss": 0.25, "max_return_mean40": 80.0})
        run.finish({"finished": True})
    points = read_metrics(tmp_path / "run")
    assert points[0] == {"step": 80, "loss": 0.5, "max_return_mean40": 75.0, "nothing": None, "odd": None}
    assert [score_at(points, steps) for steps in (79, 80, 159, 1_000)] == [None, 75.0, 75.0, 80.0]
    with (tmp_path / "run" / "episodes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows == [{"episode": "0", "step": "64", "env": "3", "return": "75.0", "length": "4", "truncated": "0"}]
    assert json.loads((tmp_path / "run" / "config.json").read_text()) == CONFIG.to_dict()
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == {"finished": True}


def test_tensorboard_gets_the_numbers(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with RunDirectory(tmp_path / "run", CONFIG) as run:
        for step in (80, 160):
            run.log({"step": step, "adm/distance": step / 10, "rooms": [1, 2]})
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("adm/distance")] == [(80, 8.0), (160, 16.0)]


def test_a_torn_last_line_is_left_out_and_another_is_said(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"step": 1}\n{"step": 2}\n{"ste')
    assert [point["step"] for point in read_metrics(tmp_path)] == [1, 2]
    metrics.write_text('{"step": 1}\n{"ste\n{"step": 3}\n')
    with pytest.raises(UsageError, match="line 2"):
        read_metrics(tmp_path)


def test_nothing_is_ever_written_over(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run", CONFIG):
        pass
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
    with pytest.raises(UsageError, match="already holds a run"):
        RunDirectory(tmp_path / "run", CONFIG)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="not empty"):
        RunDirectory(tmp_path / "other", CONFIG)
    with pytest.raises(UsageError, match="is a file"):
        RunDirectory(tmp_path / "other" / "thesis.tex", CONFIG)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}


def log(run: RunDirectory, *steps: int) -> None:
    for step in steps:
        run.scores.episodes = step // 80 - 1  # as a checkpoint restores it
        run.add_episodes([Episode(env=0, step=step, score=1.0, length=4, truncated=False)])
        run.log({"step": step, "loss": 1 / step})


def cut(path: Path, safe: int, kept: float) -> None:
    """Leaves a part of what was written after the first `safe` bytes."""
    os.truncate(path, safe + round(kept * (path.stat().st_size - safe)))


PARTS = (0.0, 0.4, 1.0)
CLOCKS = {"runs": lambda n: 1e9 + n, "stands": lambda n: 1e9, "is set back": lambda n: 1e9 - 60 * n}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("kept", list(itertools.product(PARTS, repeat=3)))
def test_whatever_a_kill_leaves_the_logs_go_on_from_the_checkpoint(
    kept: tuple[float, ...], clock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed twice with parts of two more points in its files, and once while it starts."""
    count = itertools.count()
    monkeypatch.setattr(time, "time", lambda: CLOCKS[clock](next(count)))
    monkeypatch.setattr(os, "getpid", lambda: 9_999 - next(count))
    out, logs = tmp_path / "killed", None
    for first in (80, 160):
        with RunDirectory(out, CONFIG, logs=logs) as run:
            log(run, first)
            logs = run.logs()
            log(run, first + 80, first + 160)
        newest = max((name for name in logs if "tensorboard" in name), key=lambda name: (out / name).stat().st_mtime_ns)
        for name, part in zip(("metrics.jsonl", "episodes.csv", newest), kept, strict=True):
            cut(out / name, logs[name], part)
    with RunDirectory(out, CONFIG, logs=logs):
        pass
    with RunDirectory(out, CONFIG, logs=logs) as run:
        log(run, 240, 320)
    with RunDirectory(tmp_path / "whole", CONFIG) as run:
        log(run, 80, 160, 240, 320)
    for name in ("metrics.jsonl", "episodes.csv"):
        assert (out / name).read_text() == (tmp_path / "whole" / name).read_text()
    assert events(out) == events(tmp_path / "whole")
