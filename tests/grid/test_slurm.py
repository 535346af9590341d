"""A grid as a job array: by a real SLURM where it is installed, and by a stand-in that runs the script as a task."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.slurm import Slurm, compare, missing, torment
from coex.cli import main
from coex.grid.attempts import is_finished, newest_step
from coex.grid.plan import Grid, read_grid

FILE = """
games = ["gym:MiniGrid-Empty-5x5-v0"]
methods = ["a2c"]
seeds = 2
steps = 400
backoff = 1

[settings]
num_envs = 2
num_workers = 0
checkpoint.every_steps = 20
env.max_episode_frames = 15

[sbatch]
partition = "all"
tasks-at-once = 7
exclusive = true
requeue = true
"""


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    (tmp_path / "grid.toml").write_text(f'out = "{tmp_path / "runs"}"\n{FILE}')
    grid = read_grid(tmp_path / "grid.toml")
    grid.keep()
    return grid


@pytest.fixture
def script(grid: Grid, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["grid", "slurm", str(tmp_path / "grid.toml")]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    return tmp_path / "script"


def test_the_script_asks_for_what_the_file_says(script: Path, grid: Grid) -> None:
    text = script.read_text()
    for option in ("partition=all", "exclusive", "requeue", "signal=B:USR1@120", "array=0-1%7", "cpus-per-task=1"):
        assert f"#SBATCH --{option}\n" in text
    assert all(run.name in text for run in grid.runs)
    assert subprocess.run(["bash", "-n", script]).returncode == 0


def test_gpus_are_asked_for_with_a_number_of_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SLURM refuses --gpus-per-task without one."""
    (tmp_path / "grid.toml").write_text(f'out = "{tmp_path / "runs"}"\ngpus = 0.5\n{FILE}')
    assert main(["grid", "slurm", str(tmp_path / "grid.toml")]) == 0
    text = capsys.readouterr().out
    assert "#SBATCH --ntasks=1\n" in text
    assert "#SBATCH --gpus-per-task=1\n" in text


@pytest.mark.slow
@pytest.mark.parametrize(("number", "is_requeued"), [(signal.SIGUSR1, True), (signal.SIGTERM, False)])
def test_a_task_saves_and_is_requeued_before_its_limit(
    number: int, is_requeued: bool, script: Path, grid: Grid, tmp_path: Path
) -> None:
    """A stand-in for SLURM: the script as task 1 of job 7, and `scontrol` writes down what it is asked."""
    (tmp_path / "scontrol").write_text(f'#!/bin/bash\necho "$@" >> {tmp_path / "asked"}\n')
    (tmp_path / "scontrol").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_JOB_ID": "7",
    }  # fmt: skip
    task = subprocess.Popen(["bash", script], env=environment, stderr=subprocess.DEVNULL)
    while newest_step(grid.runs[1].out) < 20:
        assert task.poll() is None
        time.sleep(0.05)
    task.send_signal(number)
    if is_requeued:
        task.send_signal(number)  # once more changes nothing
    assert task.wait() == 143
    assert (tmp_path / "asked").exists() == is_requeued
    if is_requeued:
        assert (tmp_path / "asked").read_text() == "requeue 7_1\n"
    assert 20 <= newest_step(grid.runs[1].out) < 400
    assert newest_step(grid.runs[0].out) == -1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    bool(missing()) or "COEX_SLURM" not in os.environ, reason="needs slurm-wlm and munge, COEX_SLURM=1, and six minutes"
)
def test_a_real_slurm_brings_all_runs_to_their_ends(grid: Grid, tmp_path: Path) -> None:
    (tmp_path / "slurm").mkdir(mode=0o755)
    text = (grid.out / ".grid" / "grid.toml").read_text().replace("exclusive = true\n", "")
    (grid.out / ".grid" / "grid.toml").write_text(text)
    with Slurm(tmp_path / "slurm") as slurm:
        done = torment(slurm, grid, ["limit", "preemption"], random.Random(0), 600)
    assert done.total() >= 1
    assert all(map(is_finished, grid.runs))
    assert compare(grid, tmp_path) == {run.name: [] for run in grid.runs}
