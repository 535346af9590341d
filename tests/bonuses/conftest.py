"""Rollouts made up for the bonuses: coarse random pictures, ends of episodes and scores."""

from collections.abc import Callable

import pytest
import torch

from coex.envs import VIEW_SHAPES
from coex.rollout import Rollout

MakeRollout = Callable[..., Rollout]


def make_rollout(seed: int = 0, steps: int = 5, envs: int = 3, actions: int = 6, pictures: int = 4) -> Rollout:
    """`pictures` different pictures only, so that states are visited again; the last view of one rollout is not
    the first of the next, which no bonus may mind."""
    generator = torch.Generator().manual_seed(seed)
    gallery = torch.Generator().manual_seed(99)  # the same pictures for every seed
    views, final_views = {}, {}
    chosen = torch.randint(pictures, (steps + 1, envs), generator=generator)
    ended = torch.rand((steps, envs), generator=generator) < 0.2
    index = ended.nonzero()
    for name, shape in VIEW_SHAPES.items():
        wall = torch.randint(0, 256, (pictures, *shape), dtype=torch.uint8, generator=gallery)
        views[name] = wall[chosen]
        final_views[name] = wall[torch.arange(len(index)) % pictures]
    return Rollout(
        views=views,
        actions=torch.randint(actions, (steps, envs), generator=generator),
        log_probs=-torch.rand((steps, envs), generator=generator) * 3,
        values=torch.zeros(steps, envs),
        rewards=torch.zeros(steps, envs),
        terminated=ended,
        truncated=torch.zeros_like(ended),
        scores=torch.randint(-1, 3, (steps, envs), generator=generator) * 0.7,
        final_index=index,
        final_views=final_views,
        last_values=torch.zeros(envs),
        final_values=torch.zeros(len(index)),
    )


@pytest.fixture(name="make_rollout")
def make_rollout_fixture() -> MakeRollout:
    return make_rollout
