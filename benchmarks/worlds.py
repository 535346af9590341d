"""`coex check` on worlds that nobody here wrote: what it says of each.

    pip install highway-env crafter minigrid
    python -m benchmarks.worlds                             # all that are installed, about a minute each
    python -m benchmarks.worlds MiniGrid-DoorKey-8x8-v0     # some

Writes `results/plugin/worlds.json` after every world, and prints a line of a Markdown table for it.
"""

import argparse
import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from benchmarks.machine import facts
from coex.analysis.check import World, advise, check

OUT = Path("results") / "plugin" / "worlds.json"
WORLDS = {  # by the module that registers them
    "": ("CartPole-v1", "MountainCar-v0", "Taxi-v4", "FrozenLake-v1"),
    "minigrid": ("MiniGrid-DoorKey-8x8-v0", "MiniGrid-MultiRoom-N4-S5-v1"),
    "highway_env": ("highway-fast-v0", "intersection-v0"),
    "benchmarks.worlds": ("Crafter-v0",),
}


class Crafter(gymnasium.Env[Any, Any]):
    """Crafter, which has the interface that was before Gymnasium's."""

    observation_space = gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(17)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        crafter = importlib.import_module("crafter")

        super().reset(seed=seed)
        self._world = crafter.Env(seed=int(self.np_random.integers(2**31)))
        return self._world.reset(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, done, _ = self._world.step(int(action))
        return observation, float(reward), done, False, {}


if "Crafter-v0" not in gymnasium.registry and importlib.util.find_spec("crafter"):
    gymnasium.register("Crafter-v0", entry_point="benchmarks.worlds:Crafter")


def installed() -> dict[str, str]:
    """Returns the worlds whose packages are here, by their ids, with the names that `coex check` takes."""
    found: dict[str, str] = {}
    for module, names in WORLDS.items():
        package = "crafter" if module == "benchmarks.worlds" else module
        if not package or importlib.util.find_spec(package):
            found |= {name: f"gym:{module}:{name}" if module else f"gym:{name}" for name in names}
    return found


def row_of(world: World) -> dict[str, Any]:
    """Returns the findings as numbers, with what is advised."""
    return {
        "steps": world.steps,
        "actions": len(world.actions),
        "guessed": round(world.accuracy, 3),
        "times_chance": round(world.skill, 2),
        "found": world.is_found,
        "cells": world.cells,
        "rooms": world.rooms,
        "threshold": round(world.threshold, 3),
        "rewarded": round(world.rewards / world.steps, 4),
        "advice": advise(world),
    }


def table_line(name: str, row: dict[str, Any]) -> str:
    """Returns what was found as a line of a table."""
    found = f"{'yes' if row['found'] else 'no'} ({row['times_chance']:.1f} times chance)"
    place = str(row["cells"]) if row["found"] else "-"
    return f"| `{name}` | {found} | {place} | {row['rooms']:,} | {row['threshold']:.2f} | {row['rewarded']:.1%} |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="*", help="their ids (default: all that are installed)")
    parser.add_argument("--steps", type=int, default=8_000)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    names = installed()
    chosen = options.worlds or list(names)
    if unknown := [name for name in chosen if name not in names]:
        parser.error(f"not known, or not installed: {', '.join(unknown)}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(options.out.read_text())["worlds"] if options.out.exists() else {}
    for name in chosen:
        rows[name] = row_of(check(names[name], options.steps, seed=0))
        print(table_line(name, rows[name]), flush=True)
        options.out.write_text(json.dumps({"machine": facts(), "worlds": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
