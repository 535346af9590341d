"""One run on several processes: the same bit by bit, for every learner and bonus; stops and losses are survived."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill import differences
from coex.cli import main
from coex.config.field import FIELD
from coex.runs.checkpoints import CheckpointStore
from tests.bonuses.test_training import EMPTY, QUICK

STEPS = 120
SETTINGS = ("shards=4", "log_every_steps=20", "checkpoint.every_steps=40", "env.max_episode_frames=15")


def options(method: str, bonus: dict[str, Any], steps: int = STEPS) -> list[str]:
    settings = [*SETTINGS, *(f"bonus.{name}={value}" for name, value in flat(bonus))]
    if method.startswith("ppo"):
        settings += ["learner.num_steps=10", "learner.num_epochs=2", "learner.num_minibatches=2"]
    assignments = [part for setting in settings for part in ("--set", setting)]
    return [EMPTY, "--method", method, "--steps", str(steps), "--envs", "4", "--workers", "0", "--quiet", *assignments]


def flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs = []
    for name, value in settings.items():
        pairs += flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return pairs


def torchrun(processes: int, arguments: list[str], *, restarts: int = 0, timeout: int = 60) -> subprocess.Popen[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    command += ["--master-addr=127.0.0.1", f"--master-port={port}", f"--max-restarts={restarts}", "-m", "coex"]
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


@pytest.mark.slow
@pytest.mark.parametrize("method", ["a2c", "ppo", "a2c+coex", "ppo+coex", *(f"a2c+{name}" for name in FIELD)])
def test_two_processes_are_the_same_run_as_one(method: str, tmp_path: Path) -> None:
    """Weights, counts, clusters, moments, generators, environments, episodes and metrics."""
    arguments = options(method, QUICK.get(method.partition("+")[2], {}))
    assert main(["train", *arguments, "--out", str(tmp_path / "one")]) == 0
    finish(torchrun(2, ["train", *arguments, "--out", str(tmp_path / "two")]))
    assert differences(tmp_path / "one", tmp_path / "two") == []
    assert len((tmp_path / "one" / "episodes.csv").read_text().splitlines()) > 3
