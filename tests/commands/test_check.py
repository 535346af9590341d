"""`coex check` on worlds whose answers are known."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
import pytest

from coex.analysis import check as analysis
from coex.analysis.check import World, advise, check, describe_world
from coex.cli import main

PAGE = Path(__file__).parent.parent.parent / "docs" / "own-environment.md"


@pytest.fixture
def corridor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    (tmp_path / "checkedcorridor.py").write_text(code.replace("Corridor-v0", "CheckedCorridor-v0"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(analysis, "_AGAIN", 1)  # it need not find much here
    return "gym:checkedcorridor:CheckedCorridor-v0"


def test_a_corridor_in_one_screen_and_a_picture(corridor: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", corridor, "--steps", "2000", "--workers", "0", "--out", "found/world.png"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert any(line.startswith(f"  coex train {corridor} --method") for line in lines)
    picture = plt.imread("found/world.png")
    assert picture.shape[2] == 4
    assert picture[..., :3].std() > 0.1


def test_what_is_said_is_what_was_seen(corridor: str) -> None:
    world = check(corridor, 2_048, seed=0, num_workers=0)
    assert world.steps == 2_048
    assert len(world.actions) == 3
    assert world.changed > 0.9  # the lamps
    assert world.rooms == len(world.samples) == 1
    assert world.threshold > 0.7
    assert len(world.returns) == len(world.lengths) > 10
    assert max(world.lengths) == 60
    assert world.rewards == sum(score > 0 for score in world.returns)
    assert world.attention.sum() == pytest.approx(1, abs=1e-4)
    assert 0 < world.rate < world.env_rate


def make_world(**findings: object) -> World:
    known = {"accuracy": 0.9, "changed": 0.5, "rooms": 5, "threshold": 0.5, "returns": [0.0], "lengths": [9]}
    return World("gym:Any-v0", ["LEFT", "RIGHT"], 4_000, 1.5, **(known | findings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("findings", "word", "state"),
    [
        ({"accuracy": 0.5}, "Look for longer", "xyc"),
        ({"changed": 0.0}, "hardly ever changes", "xyc"),
        ({"rooms": 1}, "One room", "xy"),
        ({"rooms": 2_000}, "room of its own", "xy"),
        ({}, "never rewarded", "xyc"),
        ({"rewards": 32, "gains": 32, "returns": [1.0] * 16}, "plain ppo", ""),
        ({"rewards": 4_000, "returns": [-60.0, -485.0]}, "never rewarded", "xyc"),  # each step costs 1
        ({"rewards": 4_000, "gains": 4_000}, "every step would be a new state", "xyc"),
        ({"rewards": 9, "has_fractions": True}, "not whole numbers", "xyc"),
    ],
)
def test_advice(findings: dict[str, object], word: str, state: str) -> None:
    *advice, command = advise(make_world(**findings))
    assert any(word in line for line in advice)
    assert command.partition("bonus.state=")[2] == state


def test_the_one_game_that_has_ended_is_not_most_games() -> None:
    world = make_world(rewards=1, gains=1, returns=[1.0])
    assert not any("plain ppo" in line for line in advise(world))


def test_a_world_without_ends_is_described() -> None:
    rows = dict(describe_world(make_world(returns=[], lengths=[])))
    assert rows["episodes"].startswith("none ended")
    assert "1.8 times chance" in rows["something obeys them"]
    assert rows["rooms"] == "5 at τ = 0.5, chosen from the first observations"
    set_by_hand = make_world(changes={"bonus.clusters.threshold": 0.5})
    assert dict(describe_world(set_by_hand))["rooms"] == "5 at τ = 0.5, as set"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gym:Pendulum-v1", "--workers", "0"], "only discrete"),
        (["gym:Nothing-v9", "--workers", "0"], "not a registered"),
        (["freeway", "--steps", "10"], "at least 2000"),
        (["freeway", "--steps", "many"], "whole numbers"),
        (["freeway", "--out", "check.pdf"], ".png"),
        (["freway2"], "closest"),
        (["freeway", "--set", "seed=3"], "seed changes nothing"),
        (["freeway", "--set", "learner.gamma=0.9"], "learner changes nothing"),
        (["freeway", "--set", "bonus.adm.grid=500"], "grid takes 2 to 39"),
    ],
)
def test_bad_input_is_said(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_where_nothing_can_be_written_nothing_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(analysis, "check", None)
    assert main(["check", "freeway", "--out", str(tmp_path / "file" / "world.png")]) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err


def make_registered(monkeypatch: pytest.MonkeyPatch, look: Callable[[np.random.Generator], np.ndarray]) -> str:
    """A world of three actions that nothing obeys."""

    class Odd(gymnasium.Env[np.ndarray, int]):
        observation_space = gymnasium.spaces.Box(0, 255, (48, 48, 3), np.uint8)
        action_space = gymnasium.spaces.Discrete(3)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
            super().reset(seed=seed)
            return look(self.np_random), {}

        def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
            return look(self.np_random), 0.0, False, False, {}

    spec = gymnasium.envs.registration.EnvSpec("Odd-v0", Odd, max_episode_steps=50)
    monkeypatch.setitem(gymnasium.registry, "Odd-v0", spec)
    monkeypatch.setattr(analysis, "_AGAIN", 0)
    return "gym:Odd-v0"


def test_a_picture_that_never_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    still = np.full((48, 48, 3), 90, np.uint8)
    world = check(make_registered(monkeypatch, lambda _: still), 2_048, seed=0, num_workers=0)
    assert (world.changed, world.rooms, world.is_found) == (0.0, 1, False)
    assert "hardly ever changes" in advise(world)[0]


def test_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make_registered(monkeypatch, lambda generator: generator.integers(0, 256, (48, 48, 3)).astype(np.uint8))
    world = check(game, 2_048, seed=0, num_workers=0)
    assert (world.changed, world.is_found) == (1.0, False)
    assert world.rooms <= 3
