"""The learners learn, and CoEX finds what the plain learner does not."""

from pathlib import Path
from typing import Any

import pytest

import tests.worlds  # noqa: F401 - registers them
from coex.config.presets import make_config
from coex.runs.directory import read_metrics
from coex.training.loop import train


def learn(game: str, method: str, out: Path, **settings: Any) -> list[dict[str, Any]]:
    """Trains until 40 episodes in a row were nearly all won; returns the log's points."""

    def solved() -> bool:
        points = read_metrics(out)
        return bool(points) and points[-1]["episodes"] >= 40 and points[-1]["return_mean40"] >= 0.95

    config = make_config(game, method, {"num_workers": 0, "log_every_steps": 400, **settings})
    train(config, out, should_stop=solved)
    return read_metrics(out)


@pytest.mark.parametrize("method", ["a2c", "ppo"])
def test_it_learns_to_cross_a_room(method: str, tmp_path: Path) -> None:
    points = learn("gym:CoexRoom-v0", method, tmp_path / "run", total_steps=12_000)
    assert points[0]["return_mean40"] < 0.6  # by chance
    assert points[-1]["return_mean40"] >= 0.95
    assert points[-1]["step"] < 10_000


@pytest.mark.slow
def test_coex_finds_a_goal_that_the_plain_learner_does_not(tmp_path: Path) -> None:
    """35 steps to the right of 60, through six rooms: chance brings that about once in 100,000 episodes."""
    rooms = {"clusters": {"threshold": 2.0}}  # the walker's own move is no new room
    coex = learn("gym:CoexRooms-v0", "a2c+coex", tmp_path / "coex", total_steps=16_000, bonus=rooms)
    assert coex[-1]["return_mean40"] >= 0.95
    assert coex[-1]["step"] < 12_000
    assert coex[-1]["rooms/clusters"] == 6
    plain = learn("gym:CoexRooms-v0", "a2c", tmp_path / "plain", total_steps=coex[-1]["step"])
    assert plain[-1]["max_return_mean40"] == 0


@pytest.mark.slow
def test_a_worlds_scale_of_rewards_changes_nothing(tmp_path: Path) -> None:
    """The bonus has one weight beside rewards of 1/128, 1 and 128, also in a run that was stopped."""
    bonus = {"state": "xy", "adm": {"found_by": 0}}
    settings = {"total_steps": 480, "num_workers": 0, "log_every_steps": 80, "bonus": bonus}
    found = []
    for world in ("Room", "Little", "Much"):
        config, out = make_config(f"gym:Coex{world}-v0", "a2c+coex", settings), tmp_path / world
        train(config, out, should_stop=lambda out=out: len(read_metrics(out)) == 3)
        train(config, out, resume=True)
        found.append([{name: point[name] for name in ("policy_loss", "value_loss")} for point in read_metrics(out)])
        assert read_metrics(out)[2]["max_return_mean40"] > 0
    assert len(found[0]) == 6
    assert found[0] == found[1] == found[2]
