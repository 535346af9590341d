"""One run on many processes: speed and messages here, a model of many hosts, and what shortcuts would do to the bonus.

    python -m benchmarks.scale             # in `make bench`: writes results/scale.json, and the tables of docs/scale.md
    python -m benchmarks.scale --quick     # a look; writes nothing
    python -m benchmarks.scale --only relaxations      # one part anew; the others stay as they were

The model is made of times measured in one process of one run, of sizes of messages that it works out itself and that
must be those counted in real runs of 2 and 4 processes, and of stated speeds of networks.
"""

import argparse
import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import log2, prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import machine, relaxations
from benchmarks.measure import read_points, run, steady_rate
from benchmarks.rows import GAME
from benchmarks.speed import positive, say
from coex.config.learners import A2CConfig, PPOConfig
from coex.config.presets import make_config
from coex.method.counts import VisitCounts
from coex.method.rooms import RoomClusters
from coex.training.agent import all_views

RESULTS, PAGE = Path("results/scale.json"), Path("docs/scale.md")
METHODS = ("a2c", "a2c+coex", "ppo", "ppo+coex")
PROCESSES = (1, 2, 4)
SIDES = {"alone": (1, 1), "two": (2, 2), **{str(count): (count, 4) for count in PROCESSES}}  # processes, shards
HOSTS = (1, 8, 32, 128)
PARTS = ("processes", "relaxations")
FLOAT = 4  # bytes
STEP_BYTES = 46  # of what every process tells of a step: actions, rewards, scores, …
END_BYTES = 4  # of an environment's last value
MEAN_BYTES = 84 * 84 * 8  # of the sums of a picture's pixels, for the mean picture


@dataclass(frozen=True)
class Network:
    """A network's stated speed."""

    name: str
    bits_per_second: float
    latency: float  # seconds from one host to another

    def seconds(self, received: float, hops: float = 1.0) -> float:
        """Returns how long so many bytes take to arrive, of which each hop waits for the one before."""
        return received * 8 / self.bits_per_second + hops * self.latency


NETWORKS = (Network("1 Gb/s", 1e9, 100e-6), Network("10 Gb/s", 1e10, 50e-6), Network("100 Gb/s", 1e11, 10e-6))


# What happens here


def shared_run(method: str, steps: int, processes: int, shards: int, seed: int) -> dict[str, Any]:
    """Steps/s of one run that so many processes share on this machine, and what they told each other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="coex-scale-") as scratch:
        out, report = Path(scratch) / "run", Path(scratch) / "report.json"
        settings = [f"shards={shards}", f"log_every_steps={max(steps // 10, 1)}", "checkpoint.every_minutes=0"]
        command = [sys.executable]
        if processes > 1:
            command += ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", "--master-addr=127.0.0.1"]
            command += [f"--master-port={port}"]
        command += ["-m", "benchmarks.shared_run", str(report), "train", GAME, "--method", method]
        command += ["--steps", str(steps), "--seed", str(seed), "--quiet", "--out", str(out)]
        run([*command, *(word for one in settings for word in ("--set", one))])
        rate = steady_rate(read_points(out / "metrics.jsonl"), steps // 5)
        return {"steps_per_second": rate, **json.loads(report.read_text())}


def measure_processes(methods: Sequence[str], steps: int, rounds: int) -> list[dict[str, Any]]:
    """A row a method: a usual run, one of two shards in two processes, and of four in one, two and four, in turns."""
    rows = []
    for method in methods:
        sides: dict[str, list[dict[str, Any]]] = {}
        for seed in range(rounds):
            for name, (processes, shards) in SIDES.items():
                found = shared_run(method, steps, processes, shards, seed)
                sides.setdefault(name, []).append(found)
                say(f"{method}, {name}: {found['steps_per_second']:,.0f} steps/s")
        predicted = {name: message_bytes(method, processes) for name, (processes, _) in SIDES.items()}
        row: dict[str, Any] = {"method": method, "rounds": rounds, "steps": steps, "sides": {}}
        for name, runs in sides.items():
            rates = [one["steps_per_second"] for one in runs]
            usual = [one["steps_per_second"] for one in sides["alone"]]
            row["sides"][name] = {
                "steps_per_second": rates,
                "ratio": median(ours / theirs for ours, theirs in zip(rates, usual, strict=True)),
                "bytes": sum(runs[-1]["bytes"].values()),
                "predicted_bytes": predicted.get(name),
                "seconds": runs[-1]["seconds"],
                "transitions": runs[-1]["transitions"],
            }
        rows.append(row)
    return rows


def measure_order() -> dict[str, float]:
    """How many visits a second can be counted in order, and pictures clustered: a ceiling for any number of hosts."""
    rng = np.random.default_rng(0)
    keys = rng.zipf(1.3, (200_000, 1)).clip(max=100_000) % np.array([[9, 7, 31, 5]])
    began = time.perf_counter()
    VisitCounts(4).visit(keys.astype(np.int64))
    counting = len(keys) / (time.perf_counter() - began)
    rooms = RoomClusters()
    centres = rng.normal(0, 4 / rooms.scale, (24, 64))
    seen = (centres[rng.integers(24, size=20_000)] + rng.normal(0, 0.02 / rooms.scale, (20_000, 64))).astype(np.int64)
    rooms.assign(seen[:2_000])
    began = time.perf_counter()
    rooms.assign(seen[2_000:])
    return {"visits_per_second": counting, "clustered_per_second": 18_000 / (time.perf_counter() - began),
            "clusters": float(len(rooms))}  # fmt: skip


# What many hosts would do


def message_bytes(method: str, processes: int, envs: int | None = None) -> float:
    """Returns the bytes that arrive at the first process in a rollout, but for the last pictures of episodes."""
    return sum(received for received, _ in messages(method, processes, envs).values())


def messages(method: str, processes: int, envs: int | None = None) -> dict[str, tuple[float, float]]:
    """Returns what arrives at the first process in a rollout: bytes, and hops that wait for each other."""
    if processes == 1:
        return {}
    config = make_config(GAME, method, {"num_envs": envs} if envs else {})
    learner, N, others, has_bonus = config.learner, config.num_envs, processes - 1, config.bonus is not None
    assert isinstance(learner, A2CConfig | PPOConfig)
    T = learner.num_steps
    pictures = (T + 1) * N / processes * sum(prod(shape) for shape in all_views(config).values())
    steps = learner.num_epochs * learner.num_minibatches if isinstance(learner, PPOConfig) else 1
    weights = steps * GRADIENT_NUMBERS[method] * FLOAT
    return {
        "figures": (others * (T * N * STEP_BYTES + N * END_BYTES) / processes, others),
        "pictures": (others * pictures if has_bonus else 0.0, others if has_bonus else 0),
        "mean picture": (2 * others / processes * MEAN_BYTES, 2 * others),
        "gradients": (2 * others / processes * weights, 2 * steps * others),
    }


def _gradient_numbers(method: str) -> int:
    from coex.training.make import make_network

    network = make_network(make_config(GAME, method, {}), 18)
    return sum(parameter.numel() for parameter in network.parameters())


GRADIENT_NUMBERS = {method: _gradient_numbers(method) for method in METHODS}


def simulate(row: dict[str, Any], hosts: int, network: Network) -> dict[str, Any]:
    """Steps/s of a run on so many hosts like this machine, each with a usual run's environments.

    A host collects and learns from its own as fast as a usual run does; the first one computes the bonus of all.
    """
    here, method = row["sides"]["alone"], row["method"]
    seconds, own = here["seconds"], here["transitions"]
    config = make_config(GAME, method, {})
    spent = {
        "collecting": seconds["collect"],
        "learning": seconds["learn"],
        "bonus": hosts * seconds.get("bonus", 0.0),
        "rest": seconds["whole"] - seconds["collect"] - seconds["learn"] - seconds.get("bonus", 0.0),
    }
    for name, (received, hops) in messages(method, hosts, hosts * config.num_envs).items():
        spent[name] = network.seconds(received, hops if name != "pictures" else log2(hosts))
    whole = sum(spent.values())
    return {
        "method": method, "hosts": hosts, "network": network.name, "steps_per_second": hosts * own / whole,
        "speedup": hosts * seconds["whole"] / whole, "most": max(spent, key=lambda name: spent[name]),
        "share": max(spent.values()) / whole, "seconds": spent,
    }  # fmt: skip


def simulate_all(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every method, number of hosts and network."""
    return [simulate(row, hosts, network) for row in rows for network in NETWORKS for hosts in HOSTS if hosts > 1]


# The tables


def bytes_text(number: float) -> str:
    """A size in kB or MB."""
    return f"{number / 1e6:,.1f} MB" if number >= 1e6 else f"{number / 1e3:,.0f} kB"


def table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """In Markdown."""
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in rows)


def processes_table(results: dict[str, Any]) -> str:
    """What two cores do with a run's processes."""
    lines = []
    for row in results["processes"]:
        sides = row["sides"]
        rate = median(sides["alone"]["steps_per_second"])
        ratios = [f"{sides[name]['ratio']:.2f}" for name in list(SIDES)[1:]]
        sizes = [bytes_text(sides[str(count)]["bytes"]) for count in PROCESSES[1:]]
        lines.append([f"`{row['method']}`", f"{rate:,.0f}", *ratios, *sizes])
    kinds = [f"{count} process{'es' * (count > 1)}, {shards} shards" for count, shards in list(SIDES.values())[1:]]
    headings = ["method", "usual run, steps/s", *kinds]
    return table([*headings, *(f"received a rollout, {count}" for count in PROCESSES[1:])], lines)


def hosts_table(results: dict[str, Any]) -> str:
    """The model's speed-ups, with what takes the most of the time."""
    by_place: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for found in results["hosts"]:
        by_place.setdefault((found["method"], found["network"]), []).append(found)
    lines = [
        [f"`{method}`", network, *(f"{one['speedup']:.1f} ({one['most']} {one['share']:.0%})" for one in found)]
        for (method, network), found in by_place.items()
    ]
    return table(["method", "network", *(f"{hosts} hosts" for hosts in HOSTS[1:])], lines)


def order_table(results: dict[str, Any]) -> str:
    """What cannot be divided."""
    order = results["order"]
    bonus = [
        [f"the bonus of `{row['method']}`, all of it", f"{side['transitions'] / side['seconds']['bonus']:,.0f}"]
        for row in results["processes"] if (side := row["sides"]["alone"])["seconds"].get("bonus")
    ]  # fmt: skip
    clustered = f"Algorithm 2 alone, {order['clusters']:.0f} clusters"
    return table(["in one order", "steps/s at most"], [
        ["counts alone", f"{order['visits_per_second']:,.0f}"],
        [clustered, f"{order['clustered_per_second']:,.0f}"], *bonus,
    ])  # fmt: skip


def relaxations_table(results: dict[str, Any]) -> str:
    """The bonus by shortcut, as a multiple of the exact one."""
    rows = results["relaxations"]
    games = list(dict.fromkeys(row["game"] for row in rows))
    lines = []
    for what in dict.fromkeys(row["what"] for row in rows):
        found = [next(row for row in rows if (row["game"], row["what"]) == (game, what)) for game in games]
        cells = [f"{row['sum']:.2f}, {row['last_quarter']:.2f}" for row in found]
        rooms = [f"{row['ari_truth']:.2f}" if "ari_truth" in row else "" for row in found]
        lines.append([what, *cells, *rooms])
    return table(["", *(f"{game}: bonus, last quarter" for game in games), *(f"{game}: ARI" for game in games)], lines)


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "processes": processes_table, "hosts": hosts_table, "order": order_table, "relaxations": relaxations_table,
}  # fmt: skip
SOURCES = {"hosts": "processes", "order": "processes"}


def with_tables(page: str, results: dict[str, Any]) -> str:
    """Returns the page with its tables, which stand between comments, made anew from the figures that there are."""
    for name, make in TABLES.items():
        if results.get(SOURCES.get(name, name)):
            begin, end = f"<!-- {name} -->\n", "\n<!-- end -->"
            before, _, rest = page.partition(begin)
            page = before + begin + make(results) + end + rest.partition(end)[2]
    return page


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write the file and the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=positive, default=3, help="runs of each side (%(default)s)")
    parser.add_argument("--steps", type=positive, default=12_000, help="agent steps a run (%(default)s)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="which (all)")
    parser.add_argument("--only", choices=PARTS, help="one part anew")
    parser.add_argument("--quick", action="store_true", help="one short round, to see it work; writes nothing")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    today = {"date": datetime.now(UTC).date().isoformat(), "machine": machine.facts()}
    if options.only != "relaxations":
        rounds, steps = (1, 2_500) if options.quick else (options.rounds, options.steps)
        rows = measure_processes(options.methods, steps, rounds)
        results |= {"processes": rows, "measured": today, "order": measure_order(), "hosts": simulate_all(rows),
                    "networks": [asdict(network) for network in NETWORKS]}  # fmt: skip
    if options.only != "processes":
        envs, steps = (32, 40) if options.quick else (128, 512)
        results |= {"relaxations": relaxations.measure(envs, steps), "relaxed": today}
    for name, make in TABLES.items():
        if results.get(SOURCES.get(name, name)):
            print(f"\n{name}\n\n{make(results)}")
    if not options.quick:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
        say(f"\nwritten to {RESULTS} and {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
