"""Training speed beside Stable-Baselines3's and a bare loop's, and what this machine allows (`make bench`).

Ours and the peers' runs alternate, each in a process of its own, so that a machine which slows down does so
for all. Ratios are taken within a round of one run each; the table shows medians over the rounds.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import machine
from benchmarks.measure import (
    BenchmarkError,
    Settings,
    probe_wait_policies,
    run_module,
    time_ours,
    time_peer,
)
from benchmarks.rows import GAME, ROWS, Peer, Row

RESULTS = Path("results/bench.json")
QUICK = Settings(rounds=1, steps=5_000)
LIMIT_SECONDS = 2.0  # how long each limit is measured, each time


def measure_rows(rows: Sequence[Row], settings: Settings) -> list[dict[str, Any]]:
    """Alternating runs of ours and of the peers that these rows have in common, and their ratios."""
    peers = [peer for peer in rows[0].peers if peer.is_installed]
    policies = {peer.label: probe(peer, settings) for peer in peers}
    rates: dict[str, list[float]] = {name: [] for name in [row.name for row in rows] + [peer.label for peer in peers]}
    for seed in range(settings.rounds):
        runs: list[tuple[str, Callable[[], float]]] = [
            *((row.name, partial(time_ours, row, settings, seed)) for row in rows),
            *((peer.label, partial(time_peer, peer, settings, seed, best(policies[peer.label]))) for peer in peers),
        ]
        # To and fro, so that who comes first gains nothing on a machine that gets steadily slower.
        for name, run in runs if seed % 2 == 0 else reversed(runs):
            rates[name].append(run())
            say(f"round {seed + 1} of {settings.rounds}: {name} {rates[name][-1]:,.0f} steps/s")
    return [summarise(row, rates, policies) for row in rows]


def summarise(row: Row, rates: dict[str, list[float]], policies: dict[str, dict[str, float]]) -> dict[str, Any]:
    """What the results file says of a row, given steps/s by name; a peer that is missing has none."""
    ours = rates[row.name]
    peers = [asdict(peer) for peer in row.peers]
    for peer in peers:
        if theirs := rates.get(peer["label"]):
            peer["probed_wait_policies"] = policies[peer["label"]]
            peer["wait_policy"] = best(policies[peer["label"]])
            peer["steps_per_second"] = theirs
            peer["median"] = median(theirs)
            peer["ratio"] = median(mine / its for mine, its in zip(ours, theirs, strict=True))
    return {
        "row": row.name,
        "epochs": row.epochs,
        "precision": row.precision,
        "ours_steps_per_second": ours,
        "ours_median": median(ours),
        "peers": peers,
    }


def best(policies: dict[str, float]) -> str:
    """The wait policy with the highest rate."""
    return max(policies, key=policies.__getitem__)


def probe(peer: Peer, settings: Settings) -> dict[str, float]:
    """The peer's steps/s by wait policy."""
    say(f"choosing the OpenMP wait policy that suits {peer.label}")
    policies = probe_wait_policies(peer, settings)
    say(", ".join(f"{name} {rate:,.0f} steps/s" for name, rate in policies.items()))
    return policies


def measure_limits() -> dict[str, Any]:
    """What emulators and the policy network can do, each with the machine to itself."""
    say("measuring the machine's limits")
    seconds = str(LIMIT_SECONDS)
    emulation: dict[str, Any] = run_module("benchmarks.emulation", "--game", GAME, "--seconds", seconds)
    network: dict[str, Any] = run_module("benchmarks.network", "--seconds", seconds)
    return {"emulation_steps_per_second": emulation, "network": network}


def measure_growth() -> dict[str, Any]:
    """What full tables cost `a2c+coex`."""
    say("a2c+coex with empty tables and with full ones, in turn")
    growth: dict[str, Any] = run_module("benchmarks.growth")
    return growth


def measure_watched() -> dict[str, Any]:
    """What it costs to be looked at."""
    say("a2c+coex while somebody looks …")
    watched: dict[str, Any] = run_module("benchmarks.watched")
    return watched


def bounds(limits: dict[str, Any], epochs: int) -> dict[str, float]:
    """Steps/s of the network alone, and of emulation and network taking turns on all cores."""
    network = limits["network"]
    flops = network["act_flops"] + epochs * network["update_flops"]
    network_rate = network["gemm_flops_per_second"] / flops
    emulation_rate = limits["emulation_steps_per_second"]["bare_all_cores"]
    return {
        "flops_per_step": flops,
        "network": network_rate,
        "emulation_and_network": 1 / (1 / emulation_rate + 1 / network_rate),
    }


def render_rows(rows: Sequence[dict[str, Any]]) -> str:
    """One line a row: medians with their spread, ours over each peer's, and the share of the bound."""
    lines = [["row", "ours, steps/s", *(peer["label"] for peer in rows[0]["peers"]), "of the bound"]]
    for row in rows:
        share = f"{row['ours_median'] / row['bounds']['emulation_and_network']:.0%}" if is_bounded(row) else ""
        peers = [render_peer(peer) for peer in row["peers"]]
        lines.append([row["row"], with_spread(row["ours_steps_per_second"]), *peers, share])
    widths = [max(map(len, column)) + 3 for column in zip(*lines, strict=True)]
    return "\n".join("".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def is_bounded(row: dict[str, Any]) -> bool:
    """Whether the network's limit, a product in float32, is one for this row."""
    return bool(row["precision"] == "float32")


def render_peer(peer: dict[str, Any]) -> str:
    """`median (lowest–highest), ratio`."""
    if "ratio" not in peer:
        return f"no {peer['package']} here"
    return f"{with_spread(peer['steps_per_second'])}, {peer['ratio']:.2f}×"


def render_limits(limits: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """The limits, one a line, in steps/s."""
    rates, gemm = limits["emulation_steps_per_second"], limits["network"]["gemm_flops_per_second"]
    bare = rates["bare_all_cores"]
    entries = [
        ("bare emulator, one core", rates["bare_one_core"], ""),
        (f"bare emulator, {machine.cores()} cores at once", bare, ""),
    ]
    for label, key in (("no view", "vector_without_views"), ("the policy's view", "vector_policy_view")):
        entries.append((f"our environments, {label}", rates[key], f"{rates[key] / bare:.0%} of bare"))
    for row in filter(is_bounded, rows):
        bound = row["bounds"]
        work = f"{bound['flops_per_step'] / 1e6:.0f} MFLOP a step at {gemm / 1e9:.0f} GFLOP/s"
        entries.append((f"{row['row']}: policy network", bound["network"], work))
        entries.append((f"{row['row']}: emulation, then network", bound["emulation_and_network"], "the bound above"))
    return "\n".join(f"{label:<36}{rate:>8,.0f}   {note}".rstrip() for label, rate, note in entries)


def with_spread(rates: Sequence[float]) -> str:
    """`median (lowest–highest)`."""
    return f"{median(rates):,.0f} ({min(rates):,.0f}–{max(rates):,.0f})"


def say(line: str) -> None:
    """Progress, apart from the result."""
    print(line, file=sys.stderr, flush=True)


def positive(text: str) -> int:
    """A whole number from 1 up, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command's options."""
    defaults, names = Settings(), [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--rounds", type=positive, default=defaults.rounds, help="runs of each side (%(default)s)")
    parser.add_argument("--steps", type=positive, default=defaults.steps, help="agent steps a run (%(default)s)")
    parser.add_argument("--rows", nargs="+", choices=names, default=names, help="which rows (all)")
    parser.add_argument("--device", default=defaults.device, help="torch device of all sides (%(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the figures go (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one short round, to see it work; writes nothing")
    return parser.parse_args(arguments)


def measure(names: Sequence[str], settings: Settings) -> dict[str, Any]:
    """Everything that goes into the results file."""
    facts = machine.facts()
    if facts["load_before"] > 0.5:
        say(f"this machine is busy (load {facts['load_before']}): expect low figures and a wide spread")
    limits = measure_limits()
    chosen = [row for row in ROWS if row.name in names]
    blocks = [measure_rows(list(rows), settings) for _, rows in groupby(chosen, attrgetter("peers"))]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "game": GAME,
        "machine": facts,
        "settings": asdict(settings) | {"warmup_steps": settings.warmup_steps},
        "rows": [row | {"bounds": bounds(limits, row["epochs"])} for rows in blocks for row in rows],
        "growth": measure_growth() if "a2c+coex" in names else None,
        "watched": measure_watched() if "a2c+coex" in names else None,
        "limits": limits,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the file."""
    options = parse_options(arguments)
    settings = Settings(rounds=options.rounds, steps=options.steps)
    settings = replace(QUICK if options.quick else settings, device=options.device)
    try:
        results = measure(options.rows, settings)
    except BenchmarkError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    print(
        f"\n{GAME}, {settings.steps:,} agent steps a run, median of {settings.rounds} (lowest–highest), ours ÷ theirs\n"
    )
    print(render_rows(results["rows"]))
    if growth := results["growth"]:
        full = f"{growth['clusters']['full']:,} rooms and {growth['states']['full']:,} states"
        print(f"\na2c+coex with {full}: {growth['ratio']:.3f} of its speed with empty tables")
    if watched := results["watched"]:
        shares = " and ".join(f"{watched[tables]['watched']:.2%} with {tables} tables" for tables in ("empty", "full"))
        alone = max(watched[tables]["alone"] for tables in ("empty", "full"))
        print(f"\nbeing watched takes {shares} of a2c+coex's time; {alone:.4%} when nobody looks")
    print(f"\nlimits of this machine, agent steps/s\n\n{render_limits(results['limits'], results['rows'])}")
    if not options.quick:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        say(f"\nwritten to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
