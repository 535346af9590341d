"""An agent at hand, as training makes it, for those who want to watch it."""

import contextlib
from collections.abc import Iterator

import numpy as np

from coex.config.run import RunConfig
from coex.envs import VectorEnv
from coex.training.agent import Agent, make_env, split_seed
from coex.training.loop import pick_device


def environment_seed(seed: int) -> np.random.SeedSequence:
    """Returns the seed that a run gives its environments."""
    return split_seed(seed)[0]


@contextlib.contextmanager
def open_agent(config: RunConfig) -> Iterator[tuple[VectorEnv, Agent]]:
    """Yields the environments and the agent of a new run, before its first step; both end with the context."""
    env_seed, *seeds = split_seed(config.seed)
    with make_env(config, env_seed) as env:
        yield env, Agent(config, env, seeds, pick_device(config.device))
