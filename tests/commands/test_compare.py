"""Bonuses side by side: what is run, what is listed, and the page."""

import json
import re
from pathlib import Path

import pytest

from coex.cli import main
from coex.commands import compare
from coex.watch.follow import Follower
from coex.watch.groups import time_to

GAME = "gym:MiniGrid-Empty-5x5-v0"
SMALL = "--envs 2 --workers 0 --quiet --set log_every_steps=20 --set env.max_episode_frames=10"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands run, in this process: a new one would only import everything again."""
    run: list[list[str]] = []

    def run_here(command: list[str]) -> int:
        run.append(command)
        return main(command)

    monkeypatch.setattr(compare, "run_command", run_here)
    return run


def test_it_runs_what_is_missing_and_writes_one_page(
    commands: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = f"compare {GAME} --bonuses none,cts --steps 40 --seeds 2 --score 0.5 --runs {tmp_path} {SMALL}".split()
    assert main([*arguments, "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 4
    assert main(arguments) == 0
    assert [f"coex {' '.join(command)}" for command in commands] == listed
    assert [command[3] for command in commands] == ["a2c", "a2c+cts"] * 2  # a seed of everything first
    page = Path(capsys.readouterr().out.strip()).read_text()
    embedded = re.search(r'<script type="application/json" id="embedded">(.*?)</script>', page, re.DOTALL)
    assert embedded
    plain, cts = json.loads(embedded[1])["overview"]["games"]["MiniGrid-Empty-5x5-v0"]
    assert (plain["label"].split(" (")[0], cts["label"].split(" (")[0], cts["seeds"]) == ("A2C", "A2C+CTS", [0, 1])
    assert cts["costs"]["rate"] > 0
    assert cts["costs"]["memory"] > 1e7
    assert (cts["costs"]["target"], cts["costs"]["reached"]) == (0.5, None)
    commands.clear()
    assert main(arguments) == 0  # everything is there
    assert not commands
    assert main([*arguments, "--list"]) == 0
    assert main([*arguments, "--render", "--out", str(tmp_path / "other.html")]) == 0
    assert (tmp_path / "other.html").exists()
    run = Follower(tmp_path / "MiniGrid-Empty-5x5-v0" / "a2c-40-s0", "a2c")
    run.poll()
    assert time_to(run, 1e9) is None
    assert time_to(run, -1.0) == (20.0, run.points.series("seconds")[1][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--bonuses cts,nothing --steps 40", "unknown method 'a2c+nothing'"),
        ("--bonuses cts,cts --steps 40", "--bonuses takes names, each once"),
        ("--bonuses , --steps 40", "--bonuses takes names"),
        ("--bonuses cts --steps 40 --score high", "--score takes a number"),
        ("--bonuses cts --steps x", "--steps takes a whole number"),
        ("--bonuses cts --steps 40 --out page.txt", "ends in .html"),
        ("--bonuses cts --steps 40 --render", "there is no run"),
        ("--bonuses coex-ram --steps 40", "no RAM truth"),
        ("--bonuses cts --steps 40 --level x", "env.first_level takes a whole number"),
        ("--bonuses cts --steps 40 --set coex:bonus.state=xy", "'coex' is not one of --bonuses"),
        ("--bonuses cts --steps 40 --set cts:bonus.state=xy", "there is no setting 'bonus.state'"),
        ("--bonuses cts --steps 40 --set cts:bonus.depth", "--set takes"),
    ],
)
def test_mistakes_are_said_before_anything_runs(
    arguments: str, message: str, commands: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", GAME, *arguments.split(), "--runs", str(tmp_path / "runs")]) == 2
    assert message in capsys.readouterr().err
    assert not commands


def test_a_level_and_a_bonus_have_settings_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = "--level 5 --set coex:bonus.state=xy --set learner.gamma=0.9"
    arguments = f"compare {GAME} --bonuses none,coex --steps 40 {settings} --runs {tmp_path} --list"
    assert main(arguments.split()) == 0
    plain, coex = capsys.readouterr().out.splitlines()
    shared = "--set env.levels=1 --set env.first_level=5 {}--set learner.gamma=0.9 --out " + str(tmp_path)
    assert shared.format("") + "/MiniGrid-Empty-5x5-v0-level-5/a2c-40-s0" in plain
    assert shared.format("--set bonus.state=xy ") + "/MiniGrid-Empty-5x5-v0-level-5/a2c+coex-40-s0" in coex
    assert main(f"compare freeway --bonuses none --steps 40 --level 1 --runs {tmp_path}".split()) == 2
    assert "--level is for gym: environments" in capsys.readouterr().err


def test_a_run_that_fails_ends_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "run_command", lambda command: 1)
    assert main(["compare", GAME, "--bonuses", "cts", "--steps", "40", "--runs", str(tmp_path)]) == 1
