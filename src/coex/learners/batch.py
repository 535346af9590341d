"""What a learner is given: the rollout, and its rewards with the bonus beside them."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from coex.config.learners import RewardConfig
from coex.rollouts.rollout import Rollout


@dataclass(frozen=True)
class Rewards:
    """The game's reward and the bonus, apart for who learns them apart."""

    extrinsic: Tensor  # (T, N) β₁·clip(r)
    bonus: Tensor  # (T, N) unweighted; 0 where a method has none
    bonus_weight: float  # β₂

    @property
    def mixed(self) -> Tensor:
        """(T, N) β₁·clip(r) + β₂·bonus (Algorithm 1)."""
        return self.extrinsic + self.bonus_weight * self.bonus


@dataclass
class LargestReward:
    """The size of the largest reward so far: a unit in which one weight of the bonus suits any scale of rewards."""

    size: float = 0.0

    def update(self, rewards: Tensor) -> float:
        """Takes in rewards and returns the unit, which is 1 until there is any."""
        self.size = max(self.size, float(rewards.abs().max()))
        return self.size or 1.0


def make_rewards(
    rewards: Tensor, bonus: Tensor | None, config: RewardConfig, largest: LargestReward | None = None
) -> Rewards:
    """A rollout's (T, N) rewards, clipped and weighted, with its (T, N) bonus; `largest` takes in what is a unit."""
    clipped = rewards.clamp(-config.clip, config.clip) if config.clip else rewards
    if config.unit == "largest":
        clipped = clipped / (largest or LargestReward()).update(clipped)
    bonus = torch.zeros_like(rewards) if bonus is None else bonus
    return Rewards(config.extrinsic_weight * clipped, bonus, config.bonus_weight)


@dataclass(frozen=True)
class Batch:
    """B transitions."""

    observations: Tensor  # (B, 84, 84, 4) uint8
    actions: Tensor  # (B,)
    log_probs: Tensor  # (B,) when acting
    returns: Tensor  # (B, V) for each of the network's values
    advantages: Tensor  # (B,)

    def take(self, index: Tensor) -> "Batch":
        """The transitions of `index` (M,)."""
        return Batch(*(getattr(self, part.name).index_select(0, index) for part in fields(self)))  # faster than [index]

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(getattr(self, part.name).to(device) for part in fields(self)))


def make_batch(rollout: Rollout, returns: Tensor, advantages: Tensor, envs: slice = slice(None)) -> Batch:
    """The steps of some environments, with (T, N, V) returns and (T, N) advantages of all, as transitions, time-major.

    Of all environments no picture is copied.
    """
    observations = rollout.views["policy"][: len(rollout.actions)]
    parts = (observations, rollout.actions, rollout.log_probs, returns, advantages)
    return Batch(*(part[:, envs].flatten(0, 1) for part in parts))
