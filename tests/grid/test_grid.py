"""Many runs from one file: planned, tried again, given up, told about; on this machine and on Ray."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from benchmarks.grid import trainings
from benchmarks.kill import differences
from coex.cli import main
from coex.grid.attempts import History, attempt, forgive, history, is_finished, newest_step, wait_seconds
from coex.grid.drive import drive
from coex.grid.plan import Grid, GridConfig, PlannedRun, read_grid
from coex.grid.status import standing
from coex.runs.lock import RunLock

NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
EMPTY = "gym:MiniGrid-Empty-5x5-v0"
SMALL = """
[settings]
num_envs = 2
num_workers = 0
log_every_steps = 20
checkpoint.every_steps = 20
env.max_episode_frames = 15
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a grid's file."""
    monkeypatch.chdir(tmp_path)

    def write_one(text: str = SMALL, **table: Any) -> Path:
        head = {"games": [EMPTY], "methods": ["a2c"], "seeds": 2, "steps": 40, "backoff": 0.1} | table
        lines = [f"{name} = {json.dumps(value)}" for name, value in head.items() if value is not None]
        (tmp_path / "small.toml").write_text("\n".join(lines) + "\n" + text)
        return tmp_path / "small.toml"

    return write_one


def test_a_file_names_runs(write: Callable[..., Path], tmp_path: Path) -> None:
    grid = read_grid(write(games=["freeway", EMPTY], methods=["a2c", "ppo+coex"], seeds=[0, 7], cores=2, text=""))
    names = [run.name for run in grid.runs]
    assert names[:5] == [
        "Freeway/a2c-40-s0", "Freeway/ppo+coex-40-s0", "MiniGrid-Empty-5x5-v0/a2c-40-s0",
        "MiniGrid-Empty-5x5-v0/ppo+coex-40-s0", "Freeway/a2c-40-s7",
    ]  # fmt: skip
    assert len(names) == 8
    assert {run.out.parent.parent for run in grid.runs} == {tmp_path / "runs" / "small"}
    assert (grid.runs[1].config.total_steps, grid.runs[1].config.num_workers) == (40, 2)
    grid.keep()
    assert [run.command for run in read_grid(grid.out).runs] == [run.command for run in grid.runs]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"games": ["pong-pong"]}, "pong-pong"),
        ({"methods": ["a2c", "a2c+nothing"]}, "a2c[+]nothing"),
        ({"methods": "a2c"}, "methods takes a list of names"),
        ({"seeds": 0}, "seeds takes how many"),
        ({"seeds": [1, 1]}, "seeds has 1 twice"),
        ({"steps": None}, "steps is missing"),
        ({"step": 3}, "step"),
        ({"cores": 0}, "cores must be at least 1"),
        ({"gpus": 1.5}, "gpus must be a part of one or a whole number, not 1.5"),
        pytest.param({"gpus": 1}, "--device cuda: ", marks=NO_GPU),
        ({"text": "[settings]\nseed = 3\n"}, "settings.seed: that is said above"),
        ({"text": "[settings]\nlearner.gama = 3\n"}, "gama"),
        ({"games": ["freeway", "Freeway"]}, "twice"),
        ({"text": "[settings\n"}, "is not TOML"),
        ({"text": "[sbatch]\narray = '0-9'\n"}, "sbatch.array: there is a task for each run"),
        ({"text": "[sbatch]\nnodelist = ['a', 'b']\n"}, "sbatch.nodelist takes a line of text"),
        ({"text": "[sbatch]\ntasks-at-once = '7'\n"}, "sbatch.tasks-at-once takes a whole number"),
    ],
)
def test_bad_input_is_told_in_one_line_before_anything_starts(
    table: dict[str, Any], message: str, write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(**table)
    assert main(["grid", str(file)]) == 2
    errors = capsys.readouterr().err.strip()
    assert "\n" not in errors
    assert re.search(message, errors)
    assert not (file.parent / "runs").exists()


@pytest.fixture
def run(write: Callable[..., Path]) -> PlannedRun:
    grid = read_grid(write())
    grid.keep()
    return grid.runs[0]


def note(run: PlannedRun, *events: dict[str, Any]) -> None:
    with run.records.open("a") as file:
        for event in events:
            file.write(json.dumps(event) + "\n")


def fail(run: PlannedRun, key: str, step: int = -1, code: int = 1, error: str = "out of memory") -> None:
    note(run, {"start": key, "step": step}, {"end": key, "code": code, "error": error})


def reach(run: PlannedRun, step: int) -> None:
    (run.out / "checkpoints" / f"step-{step:012}").mkdir(parents=True)


def test_failures_are_tried_again_later_and_later_then_given_up(run: PlannedRun) -> None:
    config, waits = GridConfig(steps=1), []
    for number in range(5):
        assert not history(run).is_in_vain(config.failures)
        fail(run, str(number))
        waits.append(wait_seconds(history(run), config))
    assert waits == [60, 300, 1_500, 3_600, 3_600]
    assert wait_seconds(History(failures=1_000), config) == 3_600
    assert history(run).is_in_vain(config.failures)
    forgive(run)
    assert history(run) == History(attempts=5)


def test_progress_makes_up_for_failures(run: PlannedRun) -> None:
    fail(run, "a")
    fail(run, "b", step=-1)
    reach(run, 20)
    assert history(run).failures == 0
    assert wait_seconds(history(run), GridConfig(steps=1)) == 0
    fail(run, "c", step=20)
    assert history(run).failures == 1


def test_bad_input_is_never_tried_again(run: PlannedRun) -> None:
    fail(run, "a", code=2, error="no such game")
    assert history(run).is_in_vain(100)


def test_a_run_that_another_process_writes_has_not_failed(run: PlannedRun) -> None:
    fail(run, "a", code=2, error=f"{run.out} is in use by process 7: only one process may write a run")
    past = history(run)
    assert (past.attempts, past.failures, past.is_hopeless, past.was_in_use) == (0, 0, False, True)
    assert wait_seconds(past, GridConfig(steps=1)) == 15


def test_an_attempt_that_cannot_begin_is_a_failure(run: PlannedRun) -> None:
    """As on a node without coex, or one that does not see the directory: not tried for ever, and at once."""

    def submit(run: PlannedRun) -> "Future[int]":
        future: Future[int] = Future()
        future.set_exception(RuntimeError("ray::attempt()\n  ...\nModuleNotFoundError: No module named 'coex'\n"))
        return future

    said: list[str] = []
    config = GridConfig(steps=40, failures=2, backoff=0.1)
    assert drive([run], config, submit, said.append, lambda: len(said) > 5) == [run]
    assert said == [
        f"{run.name}: ModuleNotFoundError: No module named 'coex'; again",
        f"{run.name}: given up: ModuleNotFoundError: No module named 'coex'",
    ]


def test_an_attempt_that_leaves_no_trace_is_a_failure(run: PlannedRun) -> None:
    def submit(run: PlannedRun) -> "Future[int]":
        future: Future[int] = Future()
        future.set_result(0)
        return future

    said: list[str] = []
    assert drive([run], GridConfig(steps=40, failures=1), submit, said.append, lambda: len(said) > 5) == [run]
    assert "does its machine see that directory?" in said[0]


def test_the_last_error_is_the_last_attempts(run: PlannedRun) -> None:
    run.records.with_suffix(".log").write_text("coex: something of an earlier attempt\n")
    code = "import os; os.kill(os.getpid(), 9)"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coex.grid.attempts._guarded", lambda: [sys.executable, "-c", code])
        assert attempt([], str(run.out), str(run.records), 1) == -9
        assert history(run).error == "ended by signal 9"
        patch.setattr("coex.grid.attempts._guarded", lambda: [sys.executable, "-c", "raise SystemExit(3)"])
        assert attempt([], str(run.out), str(run.records), 1) == 3
        assert history(run).error == "exit code 3"


def test_tasks_that_start_at_once_read_the_whole_file(write: Callable[..., Path]) -> None:
    grid = read_grid(write())
    grid.keep()
    file = grid.out / ".grid" / "grid.toml"
    with file.open() as reader:
        before = file.stat()
        grid.keep()
        assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        read_grid(write(seeds=3)).keep()
        assert reader.read() == grid.text  # who had begun to read the old one
    assert len(read_grid(grid.out).runs) == 3
    assert sorted(path.name for path in file.parent.iterdir()) == ["grid.toml", "plan.json"]


def test_an_attempt_without_an_end_is_a_lost_machine(run: PlannedRun) -> None:
    note(run, {"start": "a", "step": -1})
    with run.records.open("a") as file:
        file.write('{"end": "a", "co')  # torn by the loss
    assert (history(run).failures, history(run).error) == (1, "its machine or worker was lost")
    assert standing(Grid(run.out.parent.parent, GridConfig(steps=1), (run,), ""), run).state == "waiting"


def test_a_stopped_run_has_not_failed(run: PlannedRun) -> None:
    fail(run, "a", code=143, error="")
    assert (history(run).failures, history(run).attempts) == (0, 1)


@pytest.mark.slow
def test_a_grid_comes_to_its_end_though_runs_are_killed_and_broken(
    write: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run is killed and goes on; one has only damaged checkpoints, and is given up; the third is left alone."""
    grid = read_grid(write(seeds=3, steps=300, failures=2))
    broken, killed = grid.runs[0], grid.runs[1]
    assert main([*broken.command[:-2], "--steps", "20", "--set", "schedule_steps=300", "--quiet"]) == 0
    for path in (broken.out / "checkpoints").rglob("*.npz"):
        path.write_bytes(b"nothing")
    (broken.out / "config.json").write_text(
        (broken.out / "config.json").read_text().replace('"total_steps": 20,', '"total_steps": 300,')
    )
    process = subprocess.Popen([sys.executable, "-m", "coex", "grid", str(tmp_path / "small.toml"), "--jobs", "2"],
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    while newest_step(killed.out) < 20:
        assert process.poll() is None
        time.sleep(0.05)
    [victim] = [one for one in trainings(killed.out) if one.parent().pid == process.pid]
    assert standing(grid, killed).state == "running"
    victim.kill()
    _, errors = process.communicate()
    assert process.returncode == 1
    assert f"{broken.name} was given up" in errors
    assert f"{killed.name}: ended by signal 9; again" in errors
    assert "2 of 3" in errors
    assert main(["grid", "status", str(grid.out)]) == 0
    table = capsys.readouterr().out
    assert "3 runs: 2 finished, 0 running, 0 waiting, 1 given up" in table
    assert (history(killed).attempts, history(broken).attempts) == (2, 2)
    alone = tmp_path / "alone"
    assert main([str(alone) if word == str(killed.out) else word for word in killed.command]) == 0
    assert differences(alone, killed.out) == []
    assert main(["report", str(grid.out), "--no-video", "--out", str(tmp_path / "report.html")]) == 0


@pytest.mark.slow
def test_ctrl_c_saves_all_runs_and_the_same_command_goes_on(write: Callable[..., Path], tmp_path: Path) -> None:
    grid = read_grid(write(steps=200))
    command = [sys.executable, "-m", "coex", "grid", str(tmp_path / "small.toml"), "--jobs", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while min(newest_step(one.out) for one in grid.runs) < 20:
        assert process.poll() is None
        time.sleep(0.05)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert time.monotonic() - began < 15
    assert process.returncode == 130
    assert "the runs are stopped and saved" in errors
    assert not trainings(grid.out)
    assert [history(one).failures for one in grid.runs] == [0, 0]
    assert subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0
    assert all(map(is_finished, grid.runs))


def test_a_run_in_use_is_left_to_its_process_and_waited_for(write: Callable[..., Path]) -> None:
    grid = read_grid(write(seeds=1))
    [run], said = grid.runs, list[str]()
    grid.keep()
    stop = iter([False] * 3 + [True] * 1_000)
    with ThreadPoolExecutor(1) as pool, RunLock(run.out):
        lost = drive(
            grid.runs, grid.config, lambda run: pool.submit(attempt, run.command, str(run.out), str(run.records), 1),
            said.append, lambda: bool(said) and next(stop),
        )  # fmt: skip
    assert lost == []
    assert "another process is at work on it; again" in said[0]
    assert history(run).failures == 0


@pytest.mark.slow
@NO_GPU
@pytest.mark.skipif(find_spec("ray") is None, reason="needs coex-rl[ray]")
def test_ray_does_not_wait_for_what_this_machine_has_not(
    write: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["grid", str(write(gpus=2)), "--engine", "ray"]) == 2
    assert "gpus = 2: this machine has" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs coex-rl[ray]")
@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999", "nonsense"])
def test_a_cluster_that_is_not_there_is_told_at_once(
    address: str, write: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    assert main(["grid", str(write()), "--engine", "ray", "--address", address]) == 1
    assert time.monotonic() - began < 30
    assert f"coex: there is no Ray cluster at {address}: " in capfd.readouterr().err.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs coex-rl[ray]")
def test_ray_on_this_machine_is_reached_from_this_machine_only(write: Callable[..., Path], tmp_path: Path) -> None:
    grid = read_grid(write(seeds=1, steps=200))
    command = [sys.executable, "-m", "coex", "grid", str(tmp_path / "small.toml"), "--engine", "ray"]
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    while not trainings(grid.out):
        assert process.poll() is None
        time.sleep(0.1)
    driver = psutil.Process(process.pid)
    listening = [connection.laddr.ip for one in [driver, *driver.children(recursive=True)]
                 for connection in one.net_connections() if connection.status == psutil.CONN_LISTEN]  # fmt: skip
    assert len(listening) >= 4
    assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
    assert process.wait() == 0
    assert is_finished(grid.runs[0])
