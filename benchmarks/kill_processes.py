"""Kills processes of runs that several processes share, at random moments, and compares with runs of one process.

    python -m benchmarks.kill_processes      # 40 kills over 4 cases; writes results/kill-processes.json

Every case runs once in one process, undisturbed. Then the same run is started by torchrun with one, two or four
processes. A blow is either to one process, chosen by chance: torchrun brings the run back; or to all at once and to
torchrun, as when their machine is lost: the run is started again with another number of processes. In the end weights,
counts, clusters, generators, environments, episodes and losses must be the same, bit by bit.
"""

import argparse
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks import machine
from benchmarks.kill import differences, newest_step, reached_step, wait_for_moment, writing

RESULTS = Path("results/kill-processes.json")
EMPTY = "gym:MiniGrid-Empty-5x5-v0"
NUMBERS = (1, 2, 4)  # of processes
MAX_KILLS_A_RUN = 10  # then it may come to its end, and another run takes its place


@dataclass(frozen=True)
class Case:
    """One configuration; `every_steps` is the interval between checkpoints."""

    method: str
    game: str = EMPTY
    workers: int = 0
    steps: int = 1_200
    every_steps: int = 80
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.method} on {self.game}"

    @property
    def options(self) -> list[str]:
        """Of `coex train`."""
        settings = [f"checkpoint.every_steps={self.every_steps}", "log_every_steps=40", "shards=4", *self.settings]
        options = [self.game, "--method", self.method, "--steps", str(self.steps), "--envs", "4", "--quiet"]
        return [*options, "--workers", str(self.workers), *(part for one in settings for part in ("--set", one))]


CASES = (
    Case("a2c+coex", settings=("env.max_episode_frames=15",)),
    Case("ppo+coex", settings=("env.max_episode_frames=15", "learner.num_steps=10")),
    Case("a2c+rnd", settings=("env.max_episode_frames=15", "bonus.predictor.warmup=0")),
    Case("a2c+coex", "Freeway", workers=1, settings=("env.max_episode_frames=400",)),
)


@dataclass
class Outcome:
    """What became of the runs of one case."""

    blows: Counter[str] = field(default_factory=Counter)
    blows_inside_a_write: int = 0
    runs: int = 0
    lost: int = 0  # runs that did not come to their end
    most_steps_repeated: int = 0
    differences: list[str] = field(default_factory=list)


def start(case: Case, run: Path, processes: int) -> "subprocess.Popen[str]":
    """Starts a run or goes on with it, by torchrun."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}", "--max-restarts=100"]
    command += ["--master-addr=127.0.0.1", f"--master-port={port}", "-m", "coex", "train", *case.options]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COEX_TIMEOUT": "120"}
    with run.with_suffix(".log").open("a") as log:
        return subprocess.Popen(
            [*command, "--out", str(run), "--resume"], stdout=log, stderr=log, env=environment, text=True
        )


def strike(process: "subprocess.Popen[str]", kind: str, chance: random.Random) -> bool:
    """Kills one process of a run, or torchrun with all of them; False if there is none."""
    try:
        ranks = psutil.Process(process.pid).children()
        if kind == "process":
            chance.choice(ranks).kill()
        else:
            process.kill()  # before it notices that its children die
            for rank in ranks:
                for one in [*rank.children(recursive=True), rank]:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        one.kill()
            process.wait()
    except (psutil.NoSuchProcess, IndexError):
        return False
    return True


def torment(case: Case, run: Path, kills: int, chance: random.Random, outcome: Outcome) -> None:
    """One run, struck up to `kills` times, then left to come to its end."""
    outcome.runs += 1
    process, left = start(case, run, chance.choice(NUMBERS)), kills
    while left and wait_for_moment(process, run, chance):
        kind, was_writing = chance.choice(["process", "all"]), writing(run)
        repeated = reached_step(run) - max(newest_step(run), 0)
        if not strike(process, kind, chance):
            continue
        left -= 1
        outcome.blows[kind] += 1
        outcome.blows_inside_a_write += was_writing
        outcome.most_steps_repeated = max(outcome.most_steps_repeated, repeated)
        if kind == "all":
            process = start(case, run, chance.choice(NUMBERS))
    if process.wait():
        outcome.lost += 1
        outcome.differences.append(f"exit code {process.returncode}: {run.with_suffix('.log').read_text()[-2000:]}")


def run_case(case: Case, kills: int, chance: random.Random, scratch: Path) -> Outcome:
    """An undisturbed run of one process, and as many others as it takes to strike that often."""
    reference = scratch / "reference"
    command = [sys.executable, "-m", "coex", "train", *case.options, "--out", str(reference)]
    subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)
    outcome = Outcome()
    while outcome.blows.total() < kills:
        run = scratch / f"killed-{outcome.runs}"
        torment(case, run, min(MAX_KILLS_A_RUN, kills - outcome.blows.total()), chance, outcome)
        if not outcome.lost:
            outcome.differences += differences(reference, run)
    return outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, compare, write the file; exit code 1 if a run was lost or differs."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kill_processes", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--kills", type=int, default=40, help="over all cases (%(default)s)")
    parser.add_argument("--cases", nargs="+", metavar="TEXT", help="only those whose name holds one of these texts")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (%(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the result goes (%(default)s)")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if not options.cases or any(text in case.name for text in options.cases)]
    if not cases:
        raise SystemExit(f"no case's name holds one of {options.cases}")
    rows: list[dict[str, Any]] = []
    began, facts = time.monotonic(), machine.facts()
    for place, case in enumerate(cases):
        kills = options.kills * (place + 1) // len(cases) - options.kills * place // len(cases)
        with tempfile.TemporaryDirectory(prefix="coex-kill-") as scratch:
            outcome = run_case(case, kills, random.Random(f"{options.seed}/{place}"), Path(scratch))
        rows.append(asdict(case) | vars(outcome))
        verdict = ", ".join(outcome.differences[:5]) or "identical"
        print(f"{case.name}: {dict(outcome.blows)}: {verdict}", flush=True)
        totals = {
            "kills": sum(sum(row["blows"].values()) for row in rows),
            "kills_inside_a_write": sum(row["blows_inside_a_write"] for row in rows),
            "runs": sum(row["runs"] for row in rows),
            "lost": sum(row["lost"] for row in rows),
            "diverged": sum(bool(row["differences"]) for row in rows),
        }
        seconds = round(time.monotonic() - began, 1)
        result = {"date": datetime.now(UTC).date().isoformat(), "machine": facts, "seconds": seconds,
                  "totals": totals, "cases": rows}  # fmt: skip
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{totals}, written to {options.out}")
    return int(totals["lost"] > 0 or totals["diverged"] > 0)


if __name__ == "__main__":
    sys.exit(main())
