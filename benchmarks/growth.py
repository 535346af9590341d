"""Does `a2c+coex` slow down as it discovers more? Steps/s with full tables beside empty ones.

One training loop, two bonuses that take turns by rollout: one begins with nothing, one with 1,000 rooms and 1,000,000
counted states. Whatever else the machine does, it does to both.
"""

import argparse
import json
import time
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.rows import GAME
from coex.bonuses import BonusContext
from coex.config.bonuses import CoexConfig
from coex.config.learners import A2CConfig
from coex.config.presets import make_config
from coex.envs import VectorEnv
from coex.learners.a2c import A2C
from coex.learners.batch import make_rewards
from coex.learners.networks import ActorCritic, SamplingPolicy
from coex.method.bonus import CoexBonus
from coex.rollouts.collector import Collector
from coex.training.agent import all_views

CLUSTERS, STATES = 1_000, 1_000_000
CPU = torch.device("cpu")


def full_tables(state: dict[str, Any], threshold: float, rng: np.random.Generator) -> dict[str, Any]:
    """A bonus's state with the tables filled: rooms out of each other's reach, and as many states as fit in them."""
    size = state["clusters"]["weights"].shape[1]
    directions = rng.standard_normal((CLUSTERS, size))
    centres = directions / np.linalg.norm(directions, axis=1, keepdims=True) * rng.uniform(3, 6, (CLUSTERS, 1))
    clusters = state["clusters"] | {"sums": centres * threshold * 100, "sizes": np.full(CLUSTERS, 100)}
    number = np.arange(STATES)
    keys = np.stack([number % 9, number // 9 % 9, number // 81 % CLUSTERS, number // (81 * CLUSTERS)], axis=-1)
    return state | {"clusters": clusters, "counts": {"keys": keys, "counts": rng.integers(1, 100, STATES)}}


def measure(rollouts: int) -> dict[str, Any]:
    """Median seconds of a whole step of training (collect, reward, learn), by bonus."""
    config = make_config(GAME, "a2c+coex")
    assert isinstance(config.bonus, CoexConfig)
    assert isinstance(config.learner, A2CConfig)
    seed = np.random.SeedSequence(0)
    views = all_views(config)
    with VectorEnv(config.game, config.env, num_envs=config.num_envs, views=views, seed=seed) as env:
        network = ActorCritic(env.num_actions)
        learner = A2C(network, config.learner, config.schedule_steps)
        context = BonusContext(config.game, env.num_actions, seed, CPU)
        bonuses = {name: CoexBonus(config.bonus, context) for name in ("empty", "full")}
        threshold = config.bonus.clusters.threshold
        full = full_tables(bonuses["full"].state_dict(), threshold, np.random.default_rng(0))
        bonuses["full"].load_state_dict(full)
        collector = Collector(env, config.learner.num_steps, torch.Generator().manual_seed(0), CPU)
        collector.reset()
        seconds: dict[str, list[float]] = {name: [] for name in bonuses}
        for turn in range(2 * rollouts):
            name = ("empty", "full")[turn % 2]
            started = time.perf_counter()
            rollout = collector.collect(SamplingPolicy(network))
            rewarded = bonuses[name].reward(rollout)
            rewards = make_rewards(rollout.rewards, rewarded.bonus, config.reward)
            learner.update(rollout, rewards, collector.steps_done)
            bonuses[name].update(rollout, rewarded)
            seconds[name].append(time.perf_counter() - started)
        sizes = {name: bonus.snapshot() for name, bonus in bonuses.items()}
    rates = {name: rollout.num_transitions / median(times[len(times) // 5 :]) for name, times in seconds.items()}
    return {
        "clusters": {name: size["rooms/clusters"] for name, size in sizes.items()},
        "states": {name: size["counts/states"] for name, size in sizes.items()},
        "steps_per_second": rates,
        "ratio": rates["full"] / rates["empty"],
    }


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=150, help="with each bonus (%(default)s)")
    print(json.dumps(measure(parser.parse_args().rollouts)))


if __name__ == "__main__":
    main()
