"""Steps/s and peak memory of PPO+CoEX at the paper's size, 128 environments × 128 steps.

    python -m benchmarks.footprint            # three rollouts: several minutes on two cores

Memory is the proportional set size summed over the run's processes: pages that they share count once.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks import machine
from benchmarks.measure import BenchmarkError, read_points, steady_rate
from benchmarks.rows import GAME

RESULTS = Path("results/footprint.json")
ROLLOUT_STEPS = 128 * 128
SAMPLE_SECONDS = 0.5
LIMIT_BYTES = 6e9  # what a run may take


def family_memory(process: psutil.Process) -> int:
    """Bytes that a process and its descendants hold together."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # it has ended since
            total += member.memory_full_info().pss
    return total


def watch(command: list[str]) -> int:
    """Runs the command to its end; its peak memory."""
    process, peak = psutil.Popen(command, stdout=subprocess.DEVNULL), 0
    try:
        while process.poll() is None:
            with contextlib.suppress(psutil.Error):
                peak = max(peak, family_memory(process))
            time.sleep(SAMPLE_SECONDS)
    finally:
        if process.poll() is None:
            process.terminate()
    if process.returncode:
        raise BenchmarkError(f"the run ended with exit code {process.returncode}")
    return peak


def measure(rollouts: int, method: str, options: Sequence[str]) -> dict[str, Any]:
    """One run of that many rollouts."""
    with tempfile.TemporaryDirectory(prefix="coex-bench-") as scratch:
        out = Path(scratch) / "run"
        steps = str(rollouts * ROLLOUT_STEPS)
        command = [sys.executable, "-m", "coex.cli", "train", GAME, "--method", method, "--preset", "paper"]
        peak = watch([*command, "--steps", steps, *options, "--out", str(out)])
        points = read_points(out / "metrics.jsonl")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "game": GAME,
        "method": method,
        "rollouts": rollouts,
        "machine": machine.facts(),
        # The first rollout, with its imports and first allocations, counts only where there is no other.
        "steps_per_second": steady_rate(points if rollouts > 1 else [(0, 0.0), *points], warmup_steps=0),
        "peak_bytes": peak,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write the file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.footprint",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rollouts", type=int, default=3, help="of 16,384 steps each (%(default)s)")
    parser.add_argument("--method", default="ppo+coex", help="(%(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the figures go (%(default)s)")
    options, rest = parser.parse_known_args(arguments)  # what it does not know goes to `coex train`
    try:
        figures = measure(options.rollouts, options.method, rest)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    rate, peak = figures["steps_per_second"], figures["peak_bytes"]
    print(f"{options.method}, 128 × 128: {rate:,.0f} steps/s, {peak / 1e9:.2f} GB at most; written to {options.out}")
    return 0 if peak < LIMIT_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
