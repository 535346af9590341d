"""Bonuses side by side: what is run, what is listed, and the page."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coex.cli import main
from coex.commands import compare
from coex.runs.visits import newest_checkpoint
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
    assert (plain["short"], cts["short"]) == ("A2C", "A2C+CTS")
    assert "env.max_episode_frames = 10" in plain["shared"]  # said once, not with each of them
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
        ("--bonuses cts --steps 40 --score nan", "--score takes a number"),
        ("--bonuses cts --steps 40 --seeds 0", "--seeds takes at least 1, not 0"),
        ("--bonuses cts --steps 40 --jobs 0", "--jobs takes at least 1"),
        ("--bonuses cts --steps 40 --jobs two", "--jobs takes a whole number"),
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


def test_so_many_at_a_time_share_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    arguments = f"compare {GAME} --bonuses none --steps 40 --runs {tmp_path} --list --jobs"
    for jobs, workers in ((2, 4), (3, 2), (20, 1)):
        assert main([*arguments.split(), str(jobs)]) == 0
        assert f"--workers {workers} --quiet" in capsys.readouterr().out
    assert main([*arguments.split(), "2", "--workers", "0"]) == 0
    assert "--workers 0" in capsys.readouterr().out


@pytest.mark.slow
def test_runs_at_a_time_save_when_they_are_stopped_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """One of three fails: the others come to their ends, and the page shows what there is."""
    options = "--envs 2 --workers 0 --set log_every_steps=200 --set phi-eb:learner.learning_rate=1e30"
    arguments = f"compare {GAME} --bonuses none,cts,phi-eb --steps 2000 --runs {tmp_path} --jobs 2 {options}"
    command = [sys.executable, "-m", "coex", *arguments.split()]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    runs = [tmp_path / "MiniGrid-Empty-5x5-v0" / f"{method}-2000-s0" for method in ("a2c", "a2c+cts")]
    wait_for(lambda: all(newest_checkpoint(run) for run in runs))  # two at a time
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "3 runs are missing, 2 at a time" in said
    assert "the same command goes on" in said
    saved = [int(place.name.removeprefix("step-")) for run in runs if (place := newest_checkpoint(run))]
    assert not any(is_alive(run) for run in runs)
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 1, finished.stderr
    assert re.search(r"a2c\+phi-eb-2000-s0 failed; its last words are in .*\.log", finished.stderr)
    assert Path(finished.stdout.strip()).read_text().startswith("<!doctype html>")
    for run, step in zip(runs, saved, strict=True):
        assert json.loads((run / "summary.json").read_text())["finished"]
        words = next((tmp_path / ".grid").glob(f"*{run.name}.jsonl")).read_text().splitlines()
        starts = [json.loads(line)["step"] for line in words if "start" in json.loads(line)]
        assert starts == [-1, step]  # it went on where it was stopped


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_alive(run: Path) -> bool:
    with (run / "lock").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_run_that_fails_ends_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "run_command", lambda command: 1)
    assert main(["compare", GAME, "--bonuses", "cts", "--steps", "40", "--runs", str(tmp_path)]) == 1
