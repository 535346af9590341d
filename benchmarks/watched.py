"""What does it cost a run that somebody looks? The share of its time that it spends on being seen.

`a2c+coex` trains with empty tables, then with 1,000 rooms and 1,000,000 counted states; nobody looks, then somebody
does. Both shares are of the same loop's time, so that a busy machine changes neither much.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.growth import full_tables
from benchmarks.rows import GAME
from coex.config.presets import make_config
from coex.method.bonus import CoexBonus
from coex.runs.files import WATCHED
from coex.training.agent import Agent, make_env, split_seed
from coex.training.live import LiveView


def share(agent: Agent, live: LiveView, seconds: float, lease: Path | None) -> float:
    """Trains for so long and returns the share of the time that showing itself took."""
    spent, began = 0.0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        agent.iterate()
        if lease is not None:
            lease.touch()
        before = time.perf_counter()
        live.observe(agent)
        spent += time.perf_counter() - before
    return spent / (time.perf_counter() - began)


def measure(seconds: float) -> dict[str, Any]:
    """The four shares."""
    config = make_config(GAME, "a2c+coex")
    env_seed, *seeds = split_seed(0)
    results = {}
    with make_env(config, env_seed) as env, tempfile.TemporaryDirectory() as directory:
        agent = Agent(config, env, seeds, torch.device("cpu"))
        agent.begin()
        assert isinstance(agent.bonus, CoexBonus)
        for tables in ("empty", "full"):
            if tables == "full":
                threshold = agent.bonus.config.clusters.threshold
                filled = full_tables(agent.bonus.state_dict(), threshold, np.random.default_rng(0))
                agent.bonus.load_state_dict(filled)
            live = LiveView(Path(directory), config)
            alone = share(agent, live, seconds / 4, None)
            results[tables] = {"alone": alone, "watched": share(agent, live, seconds, Path(directory) / WATCHED)}
            (Path(directory) / WATCHED).unlink()
    return results


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=40, help="of each watched run (%(default)s)")
    print(json.dumps(measure(parser.parse_args().seconds)))


if __name__ == "__main__":
    main()
