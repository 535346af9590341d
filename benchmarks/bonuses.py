"""What each bonus costs: steps/s and memory of `a2c+BONUS` beside plain A2C in the same rounds (part of `make bench`).

Every run is in a process of its own; a round is one run of each, and ratios are taken within it.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import machine
from benchmarks.measure import BenchmarkError, read_points, run, steady_rate
from benchmarks.rows import GAME
from benchmarks.speed import positive, say, with_spread
from coex.config.presets import BONUSES

RESULTS = Path("results/bench-bonuses.json")
PLAIN = "a2c"
# A bonus that is still warming up costs less than it will.
OPTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("rnd", "noveld"), ("--set", "bonus.predictor.warmup=0")),
    **dict.fromkeys(("curiosity", "curiosity-random"), ("--set", "bonus.warmup=0")),
}


def measure_method(method: str, steps: int, seed: int) -> tuple[float, int]:
    """Steps/s of one run after its first fifth, and the most bytes that its process held."""
    options = OPTIONS.get(method.partition("+")[2], ())
    with tempfile.TemporaryDirectory(prefix="coex-bench-") as scratch:
        out = Path(scratch) / "run"
        every = f"log_every_steps={max(steps // 10, 1)}"
        arguments = ["train", GAME, "--method", method, "--steps", str(steps), "--seed", str(seed), "--set", every]
        run([sys.executable, "-m", "coex", *arguments, *options, "--out", str(out), "--quiet"])
        summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
        return steady_rate(read_points(out / "metrics.jsonl"), steps // 5), int(summary["peak_memory"])


def measure(bonuses: Sequence[str], steps: int, rounds: int) -> list[dict[str, Any]]:
    """A row a method; plain A2C is the first of each round."""
    methods = [PLAIN, *(f"{PLAIN}+{bonus}" for bonus in bonuses)]
    rates: dict[str, list[float]] = {method: [] for method in methods}
    memory: dict[str, int] = {}
    for seed in range(rounds):
        for method in methods:
            rate, memory[method] = measure_method(method, steps, seed)
            rates[method].append(rate)
            say(f"round {seed + 1} of {rounds}: {method} {rate:,.0f} steps/s, {memory[method] / 1e6:,.0f} MB")
    return [
        {
            "method": method,
            "steps_per_second": found,
            "ratio": median(ours / plain for ours, plain in zip(found, rates[PLAIN], strict=True)),
            "peak_memory": memory[method],
            "options": OPTIONS.get(method.partition("+")[2], ()),
        }
        for method, found in rates.items()
    ]


def render(rows: Sequence[dict[str, Any]]) -> str:
    """One line a method."""
    lines = [f"{'method':<26}{'steps/s':<22}{'of plain A2C':<15}memory"]
    for row in rows:
        rate, memory = with_spread(row["steps_per_second"]), f"{row['peak_memory'] / 1e6:,.0f} MB"
        lines.append(f"{row['method']:<26}{rate:<22}{row['ratio']:<15.0%}{memory}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bonuses", description=__doc__)
    parser.add_argument("--rounds", type=positive, default=3, help="runs of each method (%(default)s)")
    parser.add_argument("--steps", type=positive, default=10_000, help="agent steps a run (%(default)s)")
    names = [name for name in BONUSES if not name.endswith("-ram")]
    parser.add_argument("--bonuses", nargs="+", choices=names, default=names, help="which (all)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the figures go (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one short round, to see it work; writes nothing")
    options = parser.parse_args(arguments)
    rounds, steps = (1, 2_000) if options.quick else (options.rounds, options.steps)
    try:
        rows = measure(options.bonuses, steps, rounds)
    except BenchmarkError as error:
        say(f"error: {error}")
        return 1
    print(f"\n{GAME}, {steps:,} agent steps a run, median of {rounds} (lowest–highest)\n\n{render(rows)}")
    if not options.quick:
        results: dict[str, Any] = {
            "date": datetime.now(UTC).date().isoformat(),
            "game": GAME,
            "machine": machine.facts(),
        }
        results |= {"steps": steps, "rounds": rounds, "rows": rows}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        say(f"\nwritten to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
