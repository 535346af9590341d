"""The loop as a whole: it repeats itself, and it learns."""

import time
from pathlib import Path

import pytest

from coex.methods import make_config
from coex.rundir import read_metrics
from coex.train import train

TIMINGS = ("seconds", "steps_per_second")


def run(out: Path, game: str = "montezuma", **settings: object) -> list[dict[str, float]]:
    train(make_config(game, "a2c", {"log_every_steps": 200, **settings}), out)
    points = read_metrics(out)
    return [{key: value for key, value in point.items() if key not in TIMINGS} for point in points]


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    settings = {"total_steps": 2_400, "num_envs": 4, "env": {"sticky": 0.25, "max_episode_frames": 400}}
    first, second = (run(tmp_path / name, **settings) for name in ("first", "second"))
    assert first == second
    episodes = [(tmp_path / name / "episodes.csv").read_text() for name in ("first", "second")]
    assert episodes[0] == episodes[1]
    assert len(episodes[0].splitlines()) > 10
    other = run(tmp_path / "third", seed=1, **settings)
    assert other[-1]["policy_loss"] != first[-1]["policy_loss"]


def test_points_hold_what_the_documentation_promises(tmp_path: Path) -> None:
    point = run(tmp_path / "run", total_steps=400, num_envs=4)[-1]
    promised = {
        "step",
        "frame",
        "episodes",
        "return_mean40",
        "max_return_mean40",
        "policy_loss",
        "value_loss",
        "entropy",
    }
    assert promised <= point.keys()
    assert (point["step"], point["frame"]) == (400, 1_600)


@pytest.mark.timeout(400)
def test_a2c_learns_to_reach_the_goal_of_an_empty_grid(tmp_path: Path) -> None:
    config = make_config("gym:MiniGrid-Empty-5x5-v0", "a2c", {"total_steps": 200_000, "log_every_steps": 2_000})
    started = time.monotonic()

    def solved() -> bool:
        points = read_metrics(tmp_path / "run")
        return bool(points) and points[-1]["episodes"] >= 40 and points[-1]["return_mean40"] >= 0.9

    summary = train(config, tmp_path / "run", should_stop=solved)
    assert summary["return_mean40"] >= 0.9
    assert summary["step"] <= 200_000
    assert time.monotonic() - started < 180
