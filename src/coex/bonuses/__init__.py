"""What makes a rare state worth a visit: one file a bonus, one protocol."""

from typing import Any, Protocol

from torch import Tensor

from coex.rollouts.rollout import Rollout

Metrics = dict[str, float]


class Bonus(Protocol):
    """A reward for what the agents reached, worked out after the rollout in one batch."""

    @property
    def ready(self) -> bool: ...  # False: what it rewards cannot be trusted yet, and the policy is held uniform

    def reward(self, rollout: Rollout) -> Tensor: ...  # (T, N), unscaled; advances counts
    def update(self, rollout: Rollout) -> Metrics: ...  # fits its own networks on the rollout just rewarded
    def snapshot(self) -> dict[str, Any]: ...  # what only a log point needs: sizes, rooms, the clusters' ARI
    def forget_episodes(self) -> None: ...  # the environments have begun new ones
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...
