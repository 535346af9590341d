"""One run on several processes: the same bit by bit, for every learner and bonus; stops and losses are survived."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.kill import differences
from coex.cli import main
from coex.config.presets import BONUSES
from coex.runs.checkpoints import CheckpointStore
from tests.bonuses.test_training import EMPTY, QUICK

STEPS = 120
SETTINGS = ("shards=4", f"schedule_steps={STEPS}", "log_every_steps=20", "env.max_episode_frames=15")


def options(method: str, bonus: dict[str, Any], steps: int = STEPS, more: Sequence[str] = ()) -> list[str]:
    settings = [*SETTINGS, "checkpoint.every_steps=40", *(f"bonus.{name}={value}" for name, value in flat(bonus))]
    if method.startswith("ppo"):
        settings += ["learner.num_steps=10", "learner.num_epochs=2", "learner.num_minibatches=2"]
    assignments = [part for setting in (*settings, *more) for part in ("--set", setting)]
    game = "MontezumaRevenge" if method.endswith("-ram") else EMPTY
    return [game, "--method", method, "--steps", str(steps), "--envs", "4", "--workers", "0", "--quiet", *assignments]


def flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs = []
    for name, value in settings.items():
        pairs += flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return pairs


def torchrun(
    processes: int, arguments: list[str], *, module: str = "coex", restarts: int = 0, timeout: int = 60
) -> subprocess.Popen[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    command += ["--master-addr=127.0.0.1", f"--master-port={port}", f"--max-restarts={restarts}", "-m", module]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COEX_TIMEOUT": str(timeout)}
    return subprocess.Popen([*command, *arguments], env=environment, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    _, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors
    return errors


def workers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that torchrun has started, by rank, once all are at work."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in children.read_text().split()]


def wait_for_step(run: Path, step: int, process: subprocess.Popen[str]) -> None:
    while max(CheckpointStore(run).steps(), default=-1) < step:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process, undisturbed."""
    out = tmp_path_factory.mktemp("alone") / "run"
    assert main(["train", *options("a2c+coex", {}), "--out", str(out)]) == 0
    return out


@pytest.mark.slow
def test_two_processes_are_the_same_run_as_one(tmp_path: Path) -> None:
    """Weights, counts, clusters, moments, generators, environments, episodes and metrics, with every bonus."""
    methods = ["a2c", "ppo", "ppo+coex", *(f"a2c+{name}" for name in BONUSES)]
    finish(torchrun(2, [str(tmp_path / "two"), *methods], module="tests.distributed.every_method"))
    for method in methods:
        one = tmp_path / "one" / method
        assert main(["train", *options(method, QUICK.get(method.partition("+")[2], {})), "--out", str(one)]) == 0
        assert differences(one, tmp_path / "two" / method) == [], method
        assert len((one / "episodes.csv").read_text().splitlines()) > 3, method


@pytest.mark.slow
def test_a_run_goes_on_with_fewer_processes(one: Path, tmp_path: Path) -> None:
    """Four, then two, then one: nothing is kept by process."""
    out = tmp_path / "run"
    finish(torchrun(4, ["train", *options("a2c+coex", {}, steps=40), "--out", str(out)]))
    finish(torchrun(2, ["resume", str(out), "--steps", "80", "--quiet"]))
    assert main(["resume", str(out), "--steps", str(STEPS), "--quiet"]) == 0
    assert differences(one, out) == []


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_torchrun_brings_a_run_back_whose_process_was_killed(rank: int, one: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = torchrun(2, ["train", *options("a2c+coex", {}), "--out", str(out), "--resume"], restarts=1)
    wait_for_step(out, 40, process)
    os.kill(workers(process)[rank], signal.SIGKILL)
    finish(process)
    assert differences(one, out) == []


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["first", "second", "torchrun"])
def test_whoever_is_asked_to_stop_the_run_is_saved_within_ten_seconds(asked: str, tmp_path: Path) -> None:
    """In the second of iterations that take long, while the second process may be waiting for the first one's bonus."""
    out = tmp_path / "run"
    arguments = options("ppo+coex", {}, 1_000_000, ["learner.num_steps=200", "checkpoint.every_steps=0"])
    process = torchrun(2, ["train", *arguments, "--out", str(out)])
    while not (out / "metrics.jsonl").exists() or not (out / "metrics.jsonl").stat().st_size:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    time.sleep(3)
    ranks, before = workers(process), CheckpointStore(out).steps()
    began = time.monotonic()
    os.kill({"first": ranks[0], "second": ranks[1], "torchrun": process.pid}[asked], signal.SIGTERM)
    while CheckpointStore(out).steps() == before:
        assert time.monotonic() - began < 10
        time.sleep(0.01)
    process.communicate()
    assert process.returncode != 0
    assert CheckpointStore(out).steps()[-1] >= 800
    store = CheckpointStore(out)
    assert store.read(store.steps()[-1]).manifest.step == store.steps()[-1]


@pytest.mark.slow
def test_a_process_that_hangs_is_given_up_in_one_line(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = torchrun(2, ["train", *options("a2c", {}, 1_000_000), "--out", str(out)], timeout=4)
    wait_for_step(out, 40, process)
    ranks = workers(process)
    os.kill(ranks[1], signal.SIGSTOP)
    try:
        assert process.stderr is not None
        began = time.monotonic()
        line = next(line for line in process.stderr if line.startswith("coex: "))
        assert 2 < time.monotonic() - began < 30
        assert "process 0 of 2 has lost another one, which ended or has not answered for 4 s" in line
        assert "the last good checkpoint is" in line
    finally:
        os.kill(ranks[1], signal.SIGKILL)
        process.communicate()
    assert process.returncode != 0


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_two_processes_share_a_gpu(tmp_path: Path) -> None:
    arguments = [*options("ppo+coex", {}), "--device", "cuda"]
    finish(torchrun(2, ["train", *arguments, "--out", str(tmp_path / "run")]))
    assert max(CheckpointStore(tmp_path / "run").steps()) == STEPS
