"""An agent at hand, as training makes it, for those who want to watch it."""

import contextlib
from collections.abc import Iterator

import numpy as np

from coex.config.run import RunConfig
from coex.envs import VectorEnv
from coex.training.loop import Agent, pick_device
from coex.training.make import bonus_views


def environment_seed(seed: int) -> np.random.SeedSequence:
    """The one that a run with that seed gives its environments."""
    return np.random.SeedSequence(seed).spawn(5)[0]


@contextlib.contextmanager
def open_agent(config: RunConfig) -> Iterator[tuple[VectorEnv, Agent]]:
    """The environments and the agent of a new run, before its first step; both end with the context."""
    _, *seeds = np.random.SeedSequence(config.seed).spawn(5)
    with VectorEnv(
        config.game,
        config.env,
        num_envs=config.num_envs,
        num_workers=config.num_workers,
        views=["policy", *bonus_views(config)],
        seed=environment_seed(config.seed),
    ) as env:
        yield env, Agent(config, env, seeds, pick_device(config.device))
