"""The run directory's files."""

import csv
import json
from pathlib import Path

import pytest

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
