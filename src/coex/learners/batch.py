"""What a learner is given: the rollout with the bonus mixed into its rewards."""

from dataclasses import dataclass

import torch
from torch import Tensor

from coex.errors import UsageError
from coex.rollout import Rollout


@dataclass(frozen=True)
class RewardConfig:
    """The learner's reward is β₁·clip(r, −1, 1) + β₂·bonus."""

    extrinsic_weight: float = 1.0  # β₁
    bonus_weight: float = 1.0  # β₂
    clip: float = 1.0  # 0: rewards are not clipped

    def __post_init__(self) -> None:
        for name in ("extrinsic_weight", "bonus_weight", "clip"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must not be negative, not {getattr(self, name)}")


def mix_rewards(rewards: Tensor, bonus: Tensor | None, config: RewardConfig) -> Tensor:
    """(T, N) β₁·clip(r) + β₂·bonus (Algorithm 1)."""
    clipped = rewards.clamp(-config.clip, config.clip) if config.clip else rewards
    mixed = config.extrinsic_weight * clipped
    return mixed if bonus is None else mixed + config.bonus_weight * bonus


@dataclass(frozen=True)
class Batch:
    """T·N transitions, time-major."""

    observations: Tensor  # (T·N, 84, 84, 4) uint8
    actions: Tensor  # (T·N,)
    log_probs: Tensor  # (T·N,) when acting
    values: Tensor  # (T·N,) when acting
    returns: Tensor  # (T·N,)
    advantages: Tensor  # (T·N,)


def make_batch(rollout: Rollout, returns: Tensor, advantages: Tensor, device: torch.device) -> Batch:
    """Flattens a rollout with its (T, N) returns and advantages."""
    steps = len(rollout.actions)
    parts = (
        rollout.views["policy"][:steps],
        rollout.actions,
        rollout.log_probs,
        rollout.values,
        returns,
        advantages,
    )
    return Batch(*(part.flatten(0, 1).to(device) for part in parts))
