"""Runs a grid on a Ray cluster of several nodes on this machine, kills runs, workers and nodes, and compares.

    python -m benchmarks.grid      # 12 runs, 9 kills; writes results/grid.json; needs coex-rl[ray]

Every run of the grid is also trained alone, undisturbed. In the end both must have the same weights, counts,
generators, episodes and losses, bit by bit, and no run may be lost.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks import machine
from benchmarks.kill import differences
from coex.cli import main as run_command
from coex.grid.attempts import history, is_finished
from coex.grid.plan import Grid, read_grid

RESULTS = Path("results/grid.json")
KINDS = ("run", "worker", "node")
GRID = """
games = ["gym:MiniGrid-Empty-5x5-v0", "gym:MiniGrid-FourRooms-v0"]
methods = ["a2c", "a2c+cts"]
seeds = 3
steps = 300
cores = 1
backoff = 1

[settings]
num_envs = 2
num_workers = 0
log_every_steps = 50
checkpoint.every_steps = 20
env.max_episode_frames = 20
"""


class Nodes:
    """A Ray cluster whose nodes come and go; its head starts no runs."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        self._nodes = [self.cluster.add_node(num_cpus=1) for _ in range(count)]

    def lose(self, chance: random.Random) -> None:
        """Kills one, and puts another in its place."""
        node = self._nodes.pop(chance.randrange(len(self._nodes)))
        self.cluster.remove_node(node, allow_graceful=False)
        self._nodes.append(self.cluster.add_node(num_cpus=1))


def trainings(out: Path) -> list[psutil.Process]:
    """The processes that train a run of the grid now."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "train" in line and any(word.startswith(str(out)) for word in line) and "-c" not in line:
            found.append(process)
    return found


def kill(kind: str, out: Path, nodes: Nodes, chance: random.Random) -> bool:
    """Kills one of that kind that is at work; False if there was none."""
    at_work = trainings(out)
    if not at_work:
        return False
    victim = chance.choice(at_work)
    try:
        if kind == "node":
            nodes.lose(chance)
        elif kind == "worker":
            parent = victim.parent()
            if parent is None or "ray::" not in " ".join(parent.cmdline()):
                return False
            parent.kill()
        else:
            victim.kill()
    except psutil.NoSuchProcess:
        return False
    return True


def torment(grid: Grid, kills: int, seed: int) -> tuple[Counter[str], float]:
    """Runs the grid on a cluster while it is taken apart; returns the kills by kind, and the seconds it took."""
    chance, done = random.Random(seed), Counter[str]()
    nodes = Nodes(3)
    began = time.monotonic()
    command = [sys.executable, "-m", "coex", "grid", str(grid.out), "--engine", "ray"]
    driver = subprocess.Popen([*command, "--address", nodes.cluster.address])
    try:
        while driver.poll() is None:
            time.sleep(chance.uniform(2.0, 12.0))
            kind = KINDS[done.total() % len(KINDS)]
            if done.total() < kills and kill(kind, grid.out, nodes, chance):
                done[kind] += 1
                print(f"killed a {kind}", flush=True)
    finally:
        driver.terminate()
        driver.wait()
        nodes.cluster.shutdown()  # type: ignore[no-untyped-call, unused-ignore]
    return done, time.monotonic() - began


def measure(kills: int, seed: int, scratch: Path) -> dict[str, Any]:
    """Returns what became of the grid, beside the same runs alone."""
    (scratch / "grid.toml").write_text(GRID + f"\n# {kills} kills\n")
    os.chdir(scratch)
    grid = read_grid(scratch / "grid.toml")
    grid.keep()
    done, seconds = torment(grid, kills, seed)
    rows = []
    for run in grid.runs:
        alone = scratch / "alone" / run.name
        run_command([str(alone) if word == str(run.out) else word for word in run.command])
        different = differences(alone, run.out) if is_finished(run) else ["it was lost"]
        rows.append({"run": run.name, "attempts": history(run).attempts, "differences": different})
        print(f"{run.name}: {', '.join(different) or 'identical'}", flush=True)
    return {
        "kills": dict(done),
        "seconds": round(seconds, 1),
        "runs": len(rows),
        "lost": sum(not is_finished(run) for run in grid.runs),
        "diverged": sum(bool(row["differences"]) for row in rows),
        "rows": rows,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, compare, write the file; exit code 1 if a run was lost or differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grid", description=__doc__)
    parser.add_argument("--kills", type=int, default=9, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the result goes (default: %(default)s)")
    options = parser.parse_args(arguments)
    out = options.out.absolute()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    facts = machine.facts() | {"ray": machine.installed_version("ray")}
    with tempfile.TemporaryDirectory(prefix="coex-grid-") as scratch:
        result = measure(options.kills, options.seed, Path(scratch).resolve())
        os.chdir(out.parent)
    out.write_text(
        json.dumps({"date": datetime.now(UTC).date().isoformat(), "machine": facts} | result, indent=1) + "\n"
    )
    print({name: result[name] for name in ("kills", "runs", "lost", "diverged")}, f"written to {out}")
    return int(result["lost"] > 0 or result["diverged"] > 0 or sum(result["kills"].values()) < options.kills)


if __name__ == "__main__":
    sys.exit(main())
