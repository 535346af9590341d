"""Runs a grid as a job array of a real SLURM on this machine, takes it apart, and compares.

    python -m benchmarks.slurm      # 6 runs, 8 blows; writes results/slurm.json; needs slurm-wlm and munge

A controller, a node and munge of their own are started on loopback, and end with the program. Tasks are asked to stop
as before their time limit, requeued as when they are preempted, killed, and lose their node. Every run of the grid is
also trained alone, undisturbed: both must be the same bit by bit, and no run may be lost.
"""

import argparse
import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from benchmarks import machine
from benchmarks.grid import trainings
from benchmarks.kill import differences
from coex.cli import main as run_command
from coex.grid.attempts import is_finished, newest_step
from coex.grid.plan import Grid, PlannedRun, read_grid

RESULTS = Path("results/slurm.json")
KINDS = ("limit", "preemption", "run", "node")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel", "squeue")
CPUS = 2
GRID = """
games = ["gym:MiniGrid-Empty-5x5-v0"]
methods = ["a2c", "a2c+cts"]
seeds = 3
steps = 600
cores = 1
backoff = 1

[settings]
num_envs = 2
num_workers = 0
log_every_steps = 50
checkpoint.every_steps = 20
env.max_episode_frames = 20

[sbatch]
time = "10"
"""
_CONFIG = """
ClusterName=coex
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={place}/socket/munge,cred_expire=5
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2
SlurmdParameters=config_overrides
SlurmdTimeout=15
ReturnToService=2
KillWait=20
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """Returns which programs of SLURM are not installed."""
    place = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return [name for name in PROGRAMS if shutil.which(name, path=place) is None]


class Slurm:
    """A cluster of one node on loopback, which other users cannot reach, in a directory of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.environment = os.environ | {
            "SLURM_CONF": str(place / "slurm.conf"),
            "PATH": os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]),
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Slurm":
        for name, mode in (("socket", 0o755), ("state", 0o700), ("spool", 0o755), ("munge", 0o700)):
            (self.place / name).mkdir()
            (self.place / name).chmod(mode)
        key = self.place / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        config = _CONFIG.format(
            host=socket.gethostname().split(".")[0], place=self.place, cpus=CPUS,
            user=os.environ.get("USER") or "root", controller_port=_free_port(), node_port=_free_port(),
        )  # fmt: skip
        (self.place / "slurm.conf").write_text(config)
        files = [f"--{name}={self.place}/munge/{name.split('-')[0]}"
                 for name in ("key-file", "pid-file", "log-file", "seed-file")]  # fmt: skip
        self._start("munged", "--foreground", "--force", f"--socket={self.place}/socket/munge", *files)
        _wait_until((self.place / "socket" / "munge").exists, 20)
        self._start("slurmctld", "-D")
        self.start_node()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.call("scancel", "--me")
            _wait_until(lambda: not self.tasks(), 60)
        for process in reversed(self._processes.values()):
            process.terminate()
            process.wait()

    def call(self, *command: str, given: str | None = None) -> str:
        """Returns what one of SLURM's programs says."""
        return subprocess.run(
            command, env=self.environment, input=given, capture_output=True, text=True, check=True
        ).stdout

    def start_node(self) -> None:
        """Starts the node, and waits until the controller has it."""
        self._start("slurmd", "-D")
        _wait_until(lambda: "idle" in self._states() or "mix" in self._states() or "alloc" in self._states(), 60)

    def lose_node(self) -> None:
        """Kills the node's daemon and all that it has started."""
        import psutil

        victims = [psutil.Process(self._processes["slurmd"].pid)]
        victims += [one for one in psutil.process_iter(["name"]) if one.info["name"] == "slurmstepd"
                    and str(self.place) in one.environ().get("SLURM_CONF", "")]  # fmt: skip
        for victim in [child for one in victims for child in (*one.children(recursive=True), one)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
        self._processes["slurmd"].wait()

    def tasks(self, state: str = "all") -> list[str]:
        """Returns the tasks in the queue that are in a state, as ARRAY_TASK."""
        return self.call("squeue", "--me", "--noheader", "--array", f"--states={state}", "--format=%i").split()

    def _states(self) -> str:
        with contextlib.suppress(subprocess.CalledProcessError):
            return self.call("sinfo", "--noheader", "--format=%t")
        return ""

    def _start(self, *command: str) -> None:
        with (self.place / f"{command[0]}.out").open("ab") as log:
            self._processes[command[0]] = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)


def submit(slurm: Slurm, grid: Grid) -> None:
    """Does as `coex grid slurm FILE | sbatch`."""
    script = subprocess.run(
        [sys.executable, "-m", "coex", "grid", "slurm", str(grid.out)], capture_output=True, text=True, check=True
    ).stdout
    slurm.call("sbatch", given=script)


def strike(slurm: Slurm, kind: str, grid: Grid, chance: random.Random) -> bool:
    """Disturbs a task that is at work on a run; False if there is none."""
    at_work = trainings(grid.out)
    running = [task for task in slurm.tasks("running") if newest_step(_run_of(grid, task).out) > 0]
    if not at_work or not running:
        return False
    task = chance.choice(running)
    try:
        match kind:
            case "limit":  # what SLURM sends `--signal=B:USR1@120` before it
                slurm.call("scancel", "--batch", "--signal=USR1", task)
            case "preemption":
                slurm.call("scontrol", "requeue", task)
            case "run":
                chance.choice(at_work).send_signal(signal.SIGKILL)
            case "node":
                slurm.lose_node()
                time.sleep(chance.uniform(0.0, 5.0))
                slurm.start_node()
    except subprocess.CalledProcessError as error:  # it has just ended
        print(f"{kind}: {error.stderr.strip()}", flush=True)
        return False
    return True


def torment(slurm: Slurm, grid: Grid, kinds: Sequence[str], chance: random.Random, seconds: float) -> Counter[str]:
    """Runs the grid as an array, with these blows at random moments; returns those that fell."""
    submit(slurm, grid)
    left, done, deadline = list(kinds), Counter[str](), time.monotonic() + seconds
    while slurm.tasks() and time.monotonic() < deadline:
        time.sleep(chance.uniform(0.5, 4.0))
        if left and strike(slurm, left[0], grid, chance):
            done[left.pop(0)] += 1
    return done


def compare(grid: Grid, scratch: Path) -> dict[str, list[str]]:
    """Returns in what each run differs from the same one alone."""
    found = {}
    for run in grid.runs:
        alone = scratch / "alone" / run.name
        run_command([str(alone) if word == str(run.out) else word for word in run.command])
        found[run.name] = differences(alone, run.out) if is_finished(run) else ["it was lost"]
        if not is_finished(run):
            print(run.records.read_text(), *(path.read_text() for path in run.records.parent.glob("slurm-*")), sep="\n")
    return found


def _run_of(grid: Grid, task: str) -> PlannedRun:
    """The array has all runs of the grid, in order, where it was submitted once."""
    return grid.runs[int(task.partition("_")[2])]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit("SLURM does not come up: its words are in its directory")
        time.sleep(0.1)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="coex-slurm-") as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


def main(arguments: Sequence[str] | None = None) -> int:
    """Strike, compare, write the file; exit code 1 if a run was lost or differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slurm", description=__doc__)
    parser.add_argument("--blows", type=int, default=8, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the result goes (default: %(default)s)")
    options = parser.parse_args(arguments)
    if lacking := missing():
        raise SystemExit(f"SLURM is not installed: {', '.join(lacking)} (Debian: apt-get install slurm-wlm munge)")
    with _scratch() as scratch:
        (scratch / "grid.toml").write_text(f'out = "{scratch / "runs"}"\n{GRID}')
        grid = read_grid(scratch / "grid.toml")
        grid.keep()
        (scratch / "slurm").mkdir(mode=0o755)
        began = time.monotonic()
        with Slurm(scratch / "slurm") as slurm:
            version = slurm.call("sinfo", "--version").split()[-1]
            kinds = [KINDS[number % len(KINDS)] for number in range(options.blows)]
            done = torment(slurm, grid, kinds, random.Random(options.seed), 3_600)
        seconds = round(time.monotonic() - began, 1)
        found = compare(grid, scratch)
    for name, different in found.items():
        print(f"{name}: {', '.join(different) or 'identical'}", flush=True)
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine.facts() | {"slurm": version},
        "blows": dict(done),
        "seconds": seconds,
        "runs": len(found),
        "lost": sum(different == ["it was lost"] for different in found.values()),
        "diverged": sum(bool(different) for different in found.values()),
        "rows": [{"run": name, "differences": different} for name, different in found.items()],
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print({name: result[name] for name in ("blows", "runs", "lost", "diverged")}, f"written to {options.out}")
    return int(result["diverged"] != 0 or done.total() < options.blows)


if __name__ == "__main__":
    sys.exit(main())
