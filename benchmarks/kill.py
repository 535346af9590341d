"""Kills runs at random moments, lets them go on, and compares them with a run that was never stopped.

    python -m benchmarks.kill      # 136 kills over 68 cases; writes results/kill.json

Every case runs once undisturbed. Then the same run is started again and killed (SIGKILL) over and over: at a random
moment of its work, while it starts, or as soon as the temporary directory of a checkpoint is seen. In the end both
must have the same weights, counts, clusters, generators, emulators, episodes and losses, bit by bit.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import machine
from coex.results.published import GAMES
from coex.runs.checkpoints import CheckpointStore
from coex.runs.directory import EPISODES, METRICS, read_metrics

RESULTS = Path("results/kill.json")
TIMINGS = ("seconds", "steps_per_second")
CLOCKS = ("log/seconds", "log/point_seconds")
MAX_KILLS_A_RUN = 10  # then it may come to its end, and another run takes its place


@dataclass(frozen=True)
class Case:
    """One configuration; `every_steps` is the interval between checkpoints."""

    method: str
    game: str
    sticky: float = 0.0
    steps: int = 2_400
    every_steps: int = 240

    @property
    def name(self) -> str:
        return f"{self.method} on {self.game}, sticky {self.sticky:g}"

    @property
    def options(self) -> list[str]:
        """Of `coex train`: iterations and log points short enough to see how far a killed run had come."""
        settings = [f"checkpoint.every_steps={self.every_steps}", "log_every_steps=80", "env.max_episode_frames=1200"]
        settings += ["learner.num_steps=16"] if self.method.startswith("ppo") else []
        options = [self.game, "--method", self.method, "--steps", str(self.steps), "--sticky", str(self.sticky)]
        return [*options, "--envs", "4", "--quiet", *(part for one in settings for part in ("--set", one))]


# Both learners, with CoEX and without, in all games, sticky or not; the other bonuses in one game.
CASES = (
    *(Case(method, game, sticky)
      for method in ("a2c", "a2c+coex", "ppo", "ppo+coex") for game in GAMES for sticky in (0.0, 0.25)),
    *(Case(f"{learner}+{bonus}", "MontezumaRevenge", 0.25)
      for learner in ("a2c", "ppo") for bonus in ("coex-ram", "simhash")),
)  # fmt: skip


@dataclass
class Outcome:
    """What became of the runs of one case."""

    kills: int = 0
    kills_inside_a_write: int = 0
    kills_while_starting: int = 0
    runs: int = 0
    lost: int = 0  # runs that did not come to their end
    most_steps_repeated: int = 0
    differences: list[str] = field(default_factory=list)


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a state with its place."""
    if isinstance(tree, dict | list | tuple):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        yield path, (type(tree).__name__, len(tree))
        for key, value in items:
            yield from leaves(value, f"{path}/{key}" if path else str(key))
    elif isinstance(tree, np.ndarray | torch.Tensor):
        array = np.ascontiguousarray(tree)
        yield path, (str(array.dtype), array.shape, array.tobytes())
    else:
        yield path, repr(tree)


def differences(reference: Path, other: Path) -> list[str]:
    """In what two runs that should be the same are not."""
    found = []
    states = []
    for run in (reference, other):
        store = CheckpointStore(run)
        states.append(dict(leaves(store.read(store.steps()[-1]).state)))
    ours, theirs = states
    names = sorted((ours.keys() | theirs.keys()) - set(CLOCKS))
    found += [name for name in names if ours.get(name) != theirs.get(name)]
    if (reference / EPISODES).read_bytes() != (other / EPISODES).read_bytes():
        found.append(EPISODES)
    points = [[{k: v for k, v in point.items() if k not in TIMINGS} for point in read_metrics(run)]
              for run in (reference, other)]  # fmt: skip
    if points[0] != points[1]:
        found.append(METRICS)
    if events(reference) != events(other):
        found.append("tensorboard")
    return found


def events(run: Path) -> dict[str, list[tuple[int, float]]]:
    """All scalars that TensorBoard shows, in the order in which they were written."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    scalars: dict[str, list[tuple[int, float]]] = {}
    for path in sorted((run / "tensorboard").iterdir()):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.tag not in TIMINGS:
                    scalars.setdefault(value.tag, []).append((event.step, value.tensor.float_val[0]))
    return scalars


def newest_step(run: Path) -> int:
    return max(CheckpointStore(run).steps(), default=-1)


def reached_step(run: Path) -> int:
    """The last step of which the run has told."""
    points = read_metrics(run) if (run / METRICS).exists() else []
    return max((point["step"] for point in points), default=0)


def writing(run: Path) -> bool:
    return any((run / "checkpoints").glob(".tmp-*"))


def start(case: Case, run: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "coex.cli", "train", *case.options, "--out", str(run), "--resume"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for_moment(process: "subprocess.Popen[str]", run: Path, chance: random.Random) -> bool:
    """Waits for a moment to kill at; False if the run was over before that."""
    moment = chance.choice(["starting", "working", "working", "writing", "writing"])
    began_at, patience = newest_step(run), chance.uniform(0.0, 4.0)
    if moment != "starting":
        while newest_step(run) == began_at and process.poll() is None:  # until it has come somewhere
            time.sleep(0.005)
    deadline = time.monotonic() + patience
    while process.poll() is None and time.monotonic() < deadline:
        if moment == "writing" and time.monotonic() > deadline - patience / 2 and writing(run):
            time.sleep(chance.uniform(0.0, 0.02))
            break
        time.sleep(0.001)
    return process.poll() is None


def kill_somewhere(process: "subprocess.Popen[str]", run: Path, chance: random.Random) -> bool:
    """Waits for a moment and kills; False if the run was over before that."""
    in_time = wait_for_moment(process, run, chance)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return in_time


def torment(case: Case, run: Path, kills: int, chance: random.Random, outcome: Outcome) -> None:
    """One run, killed up to `kills` times, then left to come to its end."""
    outcome.runs += 1
    for _ in range(kills):
        if not kill_somewhere(start(case, run), run, chance):
            break
        outcome.kills += 1
        outcome.kills_inside_a_write += writing(run)
        outcome.kills_while_starting += newest_step(run) < 0
        repeated = reached_step(run) - max(newest_step(run), 0)
        outcome.most_steps_repeated = max(outcome.most_steps_repeated, repeated)
    last = start(case, run)
    _, errors = last.communicate()
    if last.returncode:
        outcome.lost += 1
        outcome.differences.append(f"exit code {last.returncode}: {errors.strip()[-300:]}")


def run_case(case: Case, kills: int, chance: random.Random, scratch: Path) -> Outcome:
    """An undisturbed run, and as many others as it takes to kill that often."""
    reference = scratch / "reference"
    process = start(case, reference)
    _, errors = process.communicate()
    if process.returncode:
        raise SystemExit(f"{case.name}: the undisturbed run failed: {errors.strip()}")
    outcome = Outcome()
    while outcome.kills < kills:
        run = scratch / f"killed-{outcome.runs}"
        torment(case, run, min(MAX_KILLS_A_RUN, kills - outcome.kills), chance, outcome)
        if not outcome.lost:
            outcome.differences += differences(reference, run)
    return outcome


def try_case(place: int, case: Case, kills: int, seed: int) -> Outcome:
    """`run_case` with moments and a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="coex-kill-") as scratch:
        return run_case(case, kills, random.Random(f"{seed}/{place}"), Path(scratch))


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kill", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=2 * len(CASES), help="over all cases (%(default)s)")
    parser.add_argument("--cases", nargs="+", metavar="TEXT", help="only those whose name holds one of these texts")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (%(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the result goes (%(default)s)")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs takes at least 1, not {options.jobs}")
    return options


def write_results(out: Path, rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Puts the cases so far into the file; returns their totals."""
    totals = {key: sum(row[key] for row in rows) for key in ("kills", "kills_inside_a_write", "runs", "lost")}
    totals["diverged"] = sum(bool(row["differences"]) for row in rows)
    result = {"date": datetime.now(UTC).date().isoformat(), "machine": machine.facts(), "totals": totals, "cases": rows}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return totals


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, compare, write the file; exit code 1 if a run was lost or differs."""
    options = parse_options(arguments)
    cases = [case for case in CASES if not options.cases or any(text in case.name for text in options.cases)]
    if not cases:
        raise SystemExit(f"no case's name holds one of {options.cases}")
    shares = [options.kills * (k + 1) // len(cases) - options.kills * k // len(cases) for k in range(len(cases))]
    rows = []
    pool = ThreadPoolExecutor(options.jobs)
    try:
        tries = (range(len(cases)), cases, shares, [options.seed] * len(cases))
        for case, outcome in zip(cases, pool.map(try_case, *tries), strict=True):
            rows.append(asdict(case) | asdict(outcome))
            totals = write_results(options.out, rows)  # after every case: what was seen is not lost with what was not
            verdict = ", ".join(outcome.differences[:5]) or "identical"
            counted = f"{outcome.kills} kills ({outcome.kills_inside_a_write} inside a write)"
            print(f"{case.name}: {counted}: {verdict}", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # a failure or Ctrl-C does not wait for the cases that have not begun
    print(f"{totals}, written to {options.out}")
    return int(totals["lost"] > 0 or totals["diverged"] > 0)


if __name__ == "__main__":
    sys.exit(main())
