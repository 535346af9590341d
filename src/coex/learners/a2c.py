"""Advantage actor-critic, as in the paper's appendix A and OpenAI baselines' defaults."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from coex.errors import UsageError
from coex.learners.batch import Batch, make_batch
from coex.learners.networks import ActorCritic
from coex.learners.returns import n_step_returns
from coex.learners.rmsprop import RMSPropTF, linear_decay
from coex.optim import guarded_step
from coex.rollout import Rollout

Metrics = dict[str, float]


@dataclass(frozen=True)
class A2CConfig:
    """The paper's appendix B; what it leaves open is OpenAI baselines'."""

    num_steps: int = 5
    gamma: float = 0.99
    learning_rate: float = 7e-4  # decays linearly to 0 over the run's `schedule_steps`
    rmsprop_alpha: float = 0.99
    rmsprop_epsilon: float = 1e-5
    entropy_weight: float = 0.01
    value_weight: float = 0.5
    max_grad_norm: float = 0.5

    def __post_init__(self) -> None:
        if self.num_steps < 1:
            raise UsageError(f"num_steps must be at least 1, not {self.num_steps}")
        if not 0.0 <= self.gamma <= 1.0:
            raise UsageError(f"gamma must be from 0 to 1, not {self.gamma}")
        if self.learning_rate <= 0:
            raise UsageError(f"learning_rate must be positive, not {self.learning_rate}")


def a2c_loss(network: ActorCritic, batch: Batch, config: A2CConfig) -> tuple[Tensor, Metrics]:
    """Policy gradient, half the value's half squared error, and the policy's entropy (appendix A)."""
    logits, values = network(batch.observations)
    log_probs = logits.log_softmax(dim=-1)  # (B, A)
    chosen = log_probs.gather(1, batch.actions[:, None]).squeeze(1)  # (B,)
    policy_loss = -(chosen * batch.advantages).mean()
    value_loss = 0.5 * (values - batch.returns).square().mean()
    entropy = -(log_probs.exp() * log_probs).sum(dim=-1).mean()
    loss = policy_loss - config.entropy_weight * entropy + config.value_weight * value_loss
    parts = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
    return loss, {name: part.item() for name, part in parts.items()}


class A2C:
    """One gradient step a rollout, on all of it."""

    def __init__(self, network: ActorCritic, config: A2CConfig, schedule_steps: int) -> None:
        self.network = network
        self.config = config
        self._schedule_steps = schedule_steps
        self._parameters = list(network.parameters())
        self._optimizer = RMSPropTF(
            self._parameters, config.learning_rate, config.rmsprop_alpha, config.rmsprop_epsilon
        )

    def update(self, rollout: Rollout, rewards: Tensor, steps_done: int) -> Metrics:
        """Learns from a rollout whose (T, N) `rewards` are the mixed ones."""
        returns = n_step_returns(
            rewards,
            rollout.terminated,
            rollout.truncated,
            rollout.next_values_at_end(),
            rollout.last_values,
            self.config.gamma,
        )
        device = self._parameters[0].device
        batch = make_batch(rollout, returns, returns - rollout.values, device)
        rate = linear_decay(self.config.learning_rate, steps_done, self._schedule_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        loss, metrics = a2c_loss(self.network, batch, self.config)
        norm = guarded_step(self._optimizer, loss, self._parameters, self.config.max_grad_norm)
        explained = 1.0 - _variance(returns - rollout.values) / max(_variance(returns), 1e-8)
        return metrics | {"grad_norm": norm, "learning_rate": rate, "explained_variance": explained}

    def state_dict(self) -> dict[str, Any]:
        return {"network": self.network.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])


def _variance(values: Tensor) -> float:
    return torch.var(values, correction=0).item()
