"""One run on several hosts, here network namespaces: the same as in one process; a lost host is given up."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.hosts import Hosts, can_make_hosts, hosts
from benchmarks.kill import differences
from coex.cli import main
from coex.runs.checkpoints import CheckpointStore
from tests.distributed.test_processes import options, wait_for_step

SECONDS = 8  # after which a host that does not answer is given up
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not can_make_hosts(), reason="needs `ip` and the right to make network namespaces"),
]


@pytest.fixture
def two() -> Iterator[Hosts]:
    with hosts(2) as made:
        yield made


def torchrun(place: Hosts, number: int, run: Path, steps: int, *, restarts: int) -> "subprocess.Popen[str]":
    """The part of a host in a run, which goes on alone when the other is lost."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1:2", "--nproc-per-node=1"]
    command += ["--rdzv-backend=c10d", f"--rdzv-endpoint={place.addresses[0]}:29400", "--rdzv-id=run"]
    command += [f"--local-addr={place.addresses[number]}", f"--max-restarts={restarts}"]
    command += [
        f"--rdzv-conf=last_call_timeout=5,is_host={int(number == 0)}",
        "-m",
        "coex",
        "train",
        *options("a2c+coex", {}, steps),
    ]
    environment = {"GLOO_SOCKET_IFNAME": "net0", "OMP_NUM_THREADS": "1", "COEX_TIMEOUT": str(SECONDS)}
    return place.start(number, [*command, "--out", str(run), "--resume"], environment)


def end(place: Hosts, number: int, process: "subprocess.Popen[str]") -> None:
    for victim in place.processes(number):
        os.kill(victim, signal.SIGKILL)
    process.communicate()


def test_a_lost_host_is_given_up_and_the_run_goes_on_without_it(two: Hosts, tmp_path: Path) -> None:
    steps = 240
    assert main(["train", *options("a2c+coex", {}, steps), "--out", str(tmp_path / "one")]) == 0
    out = tmp_path / "run"
    first = torchrun(two, 0, out, steps, restarts=3)
    second = torchrun(two, 1, out, steps, restarts=3)
    wait_for_step(out, 40, first)
    assert second.poll() is None
    assert len(two.processes(1)) >= 2  # torchrun and its process
    two.cut_off(1)
    cut_at = max(CheckpointStore(out).steps())
    assert first.stderr is not None
    began, lines = time.monotonic(), []
    for line in first.stderr:
        lines.append(line)
        if line.startswith("coex: "):
            break
    assert time.monotonic() - began < SECONDS + 20
    assert "process 0 of 2 has lost another one, which ended or has not answered for 8 s" in lines[-1]
    assert f"the last good checkpoint is {CheckpointStore(out).path_of(cut_at)}"[:-4] in lines[-1]
    end(two, 1, second)
    _, errors = first.communicate(timeout=200)
    assert first.returncode == 0, "".join(lines) + errors
    assert differences(tmp_path / "one", out) == []
