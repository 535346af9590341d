"""The command, as a user types it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from coex.cli import main
from coex.envs import ROMS, ram
from coex.results import published
from coex.runs.directory import read_metrics
from tests.children import Children


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train pacmann", "closest:"),
        ("train", "which game?"),
        ("train hero --method a2d", "closest: a2c"),
        ("train hero --method pppo", "closest: ppo"),
        ("train hero --preset desktop", "default or paper"),
        ("train --config none.json --preset paper", "exclude each other"),
        ("train hero --method ppo --set learner.num_epochs=0", "learner.num_epochs"),
        ("train hero --method ppo --envs 1 --set learner.num_steps=3", "learner.num_minibatches"),
        ("train hero --steps 0", "total_steps"),
        ("train hero --steps many", "total_steps"),
        ("train hero --envs -1", "num_envs"),
        ("train hero --workers -2", "num_workers"),
        ("train hero --seed -1", "seed"),
        ("train hero --sticky 1.5", "env.sticky"),
        ("train hero --set nosuch=1", "nosuch"),
        ("train hero --set learner.gamma=high", "learner.gamma"),
        ("train hero --device cuda", "use --device cpu"),
        ("train hero --device toaster", "--device takes cpu"),
        ("train hero --device meta", "--device takes cpu"),
        ("train hero --method a2c+coex --set bonus.clusters.seed=-1", "bonus.clusters.seed"),
        ("train hero --config none.json", "cannot read none.json"),
        ("train gym:Pendulum-v1", "only discrete ones"),
        ("train gym:NoSuchThing-v0", "not a registered"),
        ("train gym:nosuchmodule:Thing-v0", "PYTHONPATH"),
        ("train hero --wandb x --steps 80 --envs 2 --quiet", "pip install 'coex-rl[wandb]'"),
        ("trian hero", "invalid choice"),
        ("train hero --nosuch", "unrecognized arguments"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert main(arguments.split()) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("coex: ")
    assert message in line
    assert not list(tmp_path.rglob("config.json"))


def test_lists_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games"]) == 0
    games = capsys.readouterr().out
    assert [line.split()[0] for line in games.splitlines()[1:9]] == list(published.GAMES)
    assert all(re.search(rf"\b{game}\b", games) for game in ROMS)
    assert games.count("held out") == len(ram.HELD_OUT_GAMES)
    assert games.count("\n") < 40
    assert main(["methods"]) == 0
    assert "a2c" in capsys.readouterr().out
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out.startswith("coex 0.")


@pytest.mark.parametrize(
    ("arguments", "slow"), [(["train", "--help"], {"torch", "cv2", "gymnasium"}), (["games"], {"torch"})]
)
def test_help_and_lists_do_not_wait_for_torch(arguments: list[str], slow: set[str]) -> None:
    code = f"import sys; from coex.cli import main\ntry: main({arguments})\nexcept SystemExit: pass\n"
    check = f"assert not {slow} & set(sys.modules), 'slow imports'"
    subprocess.run([sys.executable, "-c", code + check], check=True, capture_output=True)


def test_a_second_run_in_the_same_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = f"train freeway --steps 160 --envs 2 --workers 0 --quiet --out {tmp_path / 'run'}".split()
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    summary = (tmp_path / "run" / "summary.json").read_bytes()
    assert main(arguments) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert (tmp_path / "run" / "summary.json").read_bytes() == summary


@pytest.mark.parametrize("options", ["--method a2c", "--method ppo --set learner.num_steps=40"])
def test_a_run_can_be_repeated_from_its_configuration(options: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    shared = "--steps 400 --envs 3 --workers 0 --seed 4 --sticky 0.25 --quiet"
    assert main(f"train freeway {options} {shared} --out {first}".split()) == 0
    assert main(f"train --config {first}/config.json --quiet --out {second}".split()) == 0
    assert (first / "config.json").read_text() == (second / "config.json").read_text()
    assert (first / "episodes.csv").read_text() == (second / "episodes.csv").read_text()
    assert read_metrics(first)[-1]["policy_loss"] == read_metrics(second)[-1]["policy_loss"]


def test_another_length_has_its_own_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(f"train freeway --steps 80 --envs 2 --workers 0 --quiet --out {first}".split()) == 0
    assert main(f"train --config {first}/config.json --steps 160 --out {second}".split()) == 0
    assert "learning rate" not in capsys.readouterr().err
    assert json.loads((second / "config.json").read_text())["schedule_steps"] == 160


@pytest.mark.parametrize(("method", "falls"), [("a2c --preset paper", True), ("ppo --preset paper", False)])
def test_a_rate_that_has_come_to_0_is_said(
    method: str, falls: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (
        "--steps 40 --envs 2 --workers 0 --set schedule_steps=20 --set learner.num_steps=10 --set log_every_steps=20"
    )
    command = f"train freeway --method {method} {options}"
    assert main([*command.split(), "--out", str(tmp_path / "run")]) == 0
    assert ("learning rate" in capsys.readouterr().err) == falls
    assert (read_metrics(tmp_path / "run")[-1]["learning_rate"] == 0) == falls


def test_a_configuration_of_an_earlier_version_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"game": "Freeway", "method": "a2c", "total_steps": 40, "num_envs": 2}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert main(["train", "--config", str(tmp_path / "config.json"), "--out", str(tmp_path / "run")]) == 0
    assert "preset, seed, num_workers, …" in capsys.readouterr().err
    for name, value in (("game", 5), ("method", [1])):
        (tmp_path / "config.json").write_text(json.dumps(settings | {name: value}))
        assert main(["train", "--config", str(tmp_path / "config.json")]) == 2
        assert re.search(rf"\b{name} .*{re.escape(repr(value))}", capsys.readouterr().err)


def start_run(children: Children, out: Path, *arguments: str) -> int:
    """Starts a run that would last for hours; returns its process once it has begun, which leads a group."""
    command = ["train", "freeway", "--steps", "1e7", "--out", str(out), *arguments, "--set", "log_every_steps=100"]
    pid = children.start(*command, errors=out.with_name("errors"))
    while not (out / "metrics.jsonl").exists() or not (out / "metrics.jsonl").stat().st_size:
        os.kill(pid, 0)  # raises once the process is gone
        time.sleep(0.02)
    return pid


@pytest.mark.parametrize(
    ("number", "code", "method"),
    [(signal.SIGINT, 130, "a2c"), (signal.SIGTERM, 143, "a2c"), (signal.SIGINT, 130, "ppo")],
)
def test_a_signal_ends_a_run_with_its_files_complete(
    number: int, code: int, method: str, tmp_path: Path, children: Children
) -> None:
    pid = start_run(children, tmp_path / "run", "--envs", "2", "--workers", "2", "--method", method)
    os.killpg(pid, number)  # to the workers too, as a terminal or a batch system does
    assert children.wait() == code
    errors = (tmp_path / "errors").read_text()
    assert "Traceback" not in errors
    assert "stopped after" in errors
    assert (tmp_path / "run" / "summary.json").exists()
    assert all("step" in point for point in read_metrics(tmp_path / "run"))


def test_a_rank_that_is_not_torchruns_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other launchers set it, too: this run is alone, and so it speaks, and saves when a signal asks it to stop."""
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    command = "train gym:MiniGrid-Empty-5x5-v0 --steps 40 --envs 2 --workers 0"
    assert main([*command.split(), "--out", str(tmp_path / "run")]) == 0
    assert "everything is in" in capsys.readouterr().err


def test_a_dead_worker_stops_the_run_with_its_cause(tmp_path: Path, children: Children) -> None:
    pid = start_run(children, tmp_path / "run", "--envs", "16", "--workers", "2")
    workers = [process for process in psutil.Process(pid).children() if "spawn_main" in " ".join(process.cmdline())]
    assert len(workers) == 2
    workers[0].kill()
    assert children.wait() == 1
    errors = (tmp_path / "errors").read_text()
    assert "signal 9" in errors
    assert "Traceback" not in errors
    assert not any(worker.is_running() for worker in workers)
