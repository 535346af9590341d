"""A2C and PPO: one network, one way to collect and to step the optimiser; they differ in their loss and schedule."""

from typing import Any, Protocol

from coex.learners.batch import Rewards
from coex.learners.networks import ActorCritic
from coex.rollouts.rollout import Rollout

Metrics = dict[str, float]


class Learner(Protocol):
    """Improves a network by what a rollout showed."""

    network: ActorCritic

    # With `hold_policy`, the values learn and the policy stays as random as it is.
    def update(self, rollout: Rollout, rewards: Rewards, steps_done: int, *, hold_policy: bool = False) -> Metrics: ...
    def state_dict(self) -> dict[str, Any]: ...  # with the network's
    def load_state_dict(self, state: dict[str, Any]) -> None: ...
