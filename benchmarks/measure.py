"""Steps per second of one training run, ours or a peer's, each in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.rows import GAME, Peer, Row

Point = tuple[int, float]  # agent steps done, seconds on any clock

# By default OpenMP's threads spin between torch's calls and take the cores from a peer's emulators: on 2 busy
# cores, a passive wait was two to three times as fast. A peer is probed with both and runs with the faster one.
WAIT_POLICIES: dict[str, dict[str, str]] = {"default": {}, "passive": {"OMP_WAIT_POLICY": "PASSIVE"}}
PROBE_STEPS = 4_000


class BenchmarkError(Exception):
    """A run that failed or left too little to measure."""


@dataclass(frozen=True)
class Settings:
    """How long and how often each run is measured."""

    rounds: int = 3
    steps: int = 20_000
    device: str = "cpu"

    @property
    def warmup_steps(self) -> int:
        """Steps at the start that do not count: imports, first allocations, compilation."""
        return self.steps // 5


def steady_rate(points: Sequence[Point], warmup_steps: int) -> float:
    """Steps/s from the first point at or after `warmup_steps` to the last point."""
    steady = [point for point in points if point[0] >= warmup_steps]
    if len(steady) < 2 or steady[-1][1] <= steady[0][1]:
        raise BenchmarkError(f"fewer than two points in time after {warmup_steps} steps: run more steps")
    (first_step, start), (last_step, end) = steady[0], steady[-1]
    return (last_step - first_step) / (end - start)


def read_points(metrics: Path) -> list[Point]:
    """The (step, seconds) points of a run's `metrics.jsonl`; a torn last line is left out."""
    lines = metrics.read_text(encoding="utf-8").split("\n")
    complete = [json.loads(line) for line in lines[:-1]]
    return [(int(entry["step"]), float(entry["seconds"])) for entry in complete]


def time_ours(row: Row, settings: Settings, seed: int) -> float:
    """Steps/s of `coex train`."""
    command = str(Path(sys.executable).with_name("coex"))
    with tempfile.TemporaryDirectory(prefix="coex-bench-") as scratch:
        out = Path(scratch) / "run"
        arguments = [
            "train",
            GAME,
            "--method",
            row.method,
            "--steps",
            str(settings.steps),
            "--seed",
            str(seed),
            "--set",
            f"learner.precision={row.precision}",
        ]
        run([command, *arguments, "--device", settings.device, *row.options, "--out", str(out), "--quiet"])
        return steady_rate(read_points(out / "metrics.jsonl"), settings.warmup_steps)


def probe_wait_policies(peer: Peer, settings: Settings) -> dict[str, float]:
    """The peer's steps/s in a short run under each of `WAIT_POLICIES`."""
    short = replace(settings, steps=PROBE_STEPS)
    return {name: time_peer(peer, short, seed=0, wait_policy=name) for name in WAIT_POLICIES}


def time_peer(peer: Peer, settings: Settings, seed: int, wait_policy: str) -> float:
    """Steps/s of a peer."""
    points = run_module(
        peer.module,
        *(peer.algorithm, *peer.options, "--game", GAME, "--environments", str(peer.environments)),
        *("--steps", str(settings.steps), "--seed", str(seed), "--device", settings.device),
        *("--arguments", json.dumps(peer.arguments)),
        environment=WAIT_POLICIES[wait_policy],
    )
    return steady_rate([(step, seconds) for step, seconds in points], settings.warmup_steps)


def run_module(module: str, *arguments: str, environment: dict[str, str] | None = None) -> Any:
    """The JSON that `python -m module` prints as its last line."""
    output = run([sys.executable, "-m", module, *arguments], environment)
    return json.loads(output.splitlines()[-1])


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    """The command's output; what it says on standard error is shown only if it fails."""
    try:
        finished = subprocess.run(
            command, env=os.environ | (environment or {}), capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise BenchmarkError(f"{Path(command[0]).name} is not installed here: run `make setup`") from None
    except subprocess.CalledProcessError as error:
        last_words = "\n".join(error.stderr.splitlines()[-20:])
        shown = " ".join([Path(command[0]).name, *command[1:]])
        raise BenchmarkError(f"`{shown}` ended with exit code {error.returncode}:\n{last_words}") from None
    return finished.stdout
