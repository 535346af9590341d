"""Advantage actor-critic, as in the paper's appendix A and OpenAI baselines' defaults."""

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from coex.config.learners import A2CConfig
from coex.core.ranks import Shards
from coex.learners import Metrics
from coex.learners.batch import Batch, Rewards, make_batch
from coex.learners.descent import Descent, Losses
from coex.learners.loss import Parts, combine, evaluate, explained_variance, log_entropy, mean_parts
from coex.learners.networks import ActorCritic
from coex.learners.returns import RecentScale, ReturnScale, rollout_returns
from coex.learners.rmsprop import RMSPropTF
from coex.rollouts.rollout import Rollout


def a2c_loss(network: ActorCritic, batch: Batch, config: A2CConfig) -> tuple[Tensor, Parts]:
    """Policy gradient, half the value's half squared error, and the policy's entropy (appendix A)."""
    now = evaluate(network, batch)
    policy_loss = -(now.log_probs * batch.advantages).mean()
    bonus = log_entropy(now.entropy, network.policy.out_features) if config.log_entropy else now.entropy
    return combine(policy_loss, now, bonus, entropy_weight=config.entropy_weight, value_weight=config.value_weight)


class A2C:
    """One gradient step a rollout, on all of it."""

    def __init__(self, network: ActorCritic, config: A2CConfig, schedule_steps: int, shards: Shards = Shards()) -> None:
        self.network = network
        self.config = config
        schedule = schedule_steps if config.decay_learning_rate else None
        self._shards = shards
        self._descent = Descent(network, _optimizer(network, config), config.max_grad_norm, schedule, shards)
        self._scale = ReturnScale(config.gamma)
        self._advantage_scale = RecentScale()

    def update(self, rollout: Rollout, rewards: Rewards, steps_done: int, *, hold_policy: bool = False) -> Metrics:
        """Learns from the rollout with the mixed rewards."""
        mixed = self._scale.scaled(rewards.mixed) if self.config.normalise_rewards else rewards.mixed
        returns = rollout_returns(rollout, mixed, self.config.gamma, self.config.gae_lambda)  # (T, N)
        advantages = returns - rollout.values
        if self.config.normalise_advantages:
            advantages = self._advantage_scale.scaled(advantages)
        if hold_policy:
            advantages = torch.zeros_like(advantages)
        rate = self._descent.set_rate(steps_done)
        shards = self._shards.own(advantages.shape[1])
        batches = (make_batch(rollout, returns[..., None], advantages, envs) for envs in shards)
        norm, parts = self._descent.step(self._losses(batch) for batch in batches)
        figures = self._descent.figures([norm])
        explained = explained_variance(returns, rollout.values)
        return mean_parts([parts]) | figures | {"learning_rate": rate, "explained_variance": explained}

    def _losses(self, batch: Batch) -> Losses:
        """The loss of a shard's transitions; with `log_entropy`, the entropy is the shard's own."""
        loss, parts = a2c_loss(self.network, batch.to(self.network.device), self.config)
        share = 1 / self._shards.count
        yield share * loss, {name: share * part for name, part in parts.items()}

    def state_dict(self) -> dict[str, Any]:
        scales = {"scale": self._scale.state_dict(), "advantage_scale": self._advantage_scale.state_dict()}
        return self._descent.state_dict() | scales

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._descent.load_state_dict(state)
        self._scale.load_state_dict(state["scale"])
        self._advantage_scale.load_state_dict(state["advantage_scale"])


def _optimizer(network: ActorCritic, config: A2CConfig) -> Optimizer:
    parameters = network.parameters()
    if config.optimizer == "adam":
        return torch.optim.Adam(parameters, config.learning_rate, eps=config.adam_epsilon, fused=True)
    return RMSPropTF(parameters, config.learning_rate, config.rmsprop_alpha, config.rmsprop_epsilon)
