"""Rollouts made up for bonuses and learners: coarse random pictures, ends of episodes, rewards and scores."""

from collections.abc import Callable, Iterator

import pytest

from coex.envs import POLICY_SHAPE, RAM_SHAPE  # before torch: `coex` sets how its threads wait before it is loaded
from coex.rollouts.rollout import Rollout
from tests.children import Children

import torch  # isort: skip

VIEW_SHAPES = {
    "policy": POLICY_SHAPE,
    "rgb160": (160, 160, 3),
    "rgb84": (84, 84, 3),
    "grey52": (52, 52),
    "grey42": (42, 42),
    "grey42x4": (42, 42, 4),
    "ram": RAM_SHAPE,
}
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
    actions_taken = torch.randint(actions, (steps, envs), generator=generator)
    log_probs = -torch.rand((steps, envs), generator=generator) * 3
    scores = torch.randint(-1, 3, (steps, envs), generator=generator) * 0.7
    truncated = ended & (torch.rand((steps, envs), generator=generator) < 0.5)
    rewards, values = torch.randn((2, steps, envs), generator=generator)
    return Rollout(
        views=views,
        actions=actions_taken,
        log_probs=log_probs,
        values=values,
        rewards=rewards,
        terminated=ended & ~truncated,
        truncated=truncated,
        scores=scores,
        final_index=index,
        final_views=final_views,
        last_values=torch.randn(envs, generator=generator),
        final_values=torch.randn(len(index), generator=generator),
    )


@pytest.fixture(name="make_rollout")
def make_rollout_fixture() -> MakeRollout:
    return make_rollout


@pytest.fixture(scope="session")
def children() -> Iterator[Children]:
    """Starts commands in processes of their own."""
    children = Children()
    yield children
    children.close()


@pytest.fixture(name="assert_same_rollout")
def assert_same_rollout_fixture() -> Callable[[Rollout, Rollout], None]:
    def check(rollout: Rollout, expected: Rollout) -> None:
        for name, value in vars(expected).items():
            after = getattr(rollout, name)
            if isinstance(value, torch.Tensor):
                assert torch.equal(value, after), name
            elif isinstance(value, dict):
                assert all(torch.equal(value[key], after[key]) for key in value), name

    return check
