"""Proximal policy optimisation, with the rewards and advantages normalised as in Burda et al. (2018)."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from coex.config.learners import PPOConfig
from coex.core.ranks import Shards
from coex.learners import Metrics
from coex.learners.batch import Batch, Rewards, make_batch
from coex.learners.descent import Descent, Losses
from coex.learners.loss import Parts, combine, evaluate, explained_variance, mean_parts, normalised
from coex.learners.networks import ActorCritic
from coex.learners.returns import ReturnScale, endless_returns, rollout_returns
from coex.rollouts.rollout import Rollout

# Transitions in a pass: on a CPU, the passes over 4,096 took a third longer than eight over 512, and a gigabyte more.
_PART_SIZE = 512


def ppo_loss(network: ActorCritic, batch: Batch, config: PPOConfig) -> tuple[Tensor, Parts]:
    """The clipped surrogate objective (Schulman et al. 2017), with A2C's terms for the value and the entropy."""
    now = evaluate(network, batch)
    log_ratio = now.log_probs - batch.log_probs  # (B,)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip_range, 1 + config.clip_range)
    policy_loss = -torch.minimum(ratio * batch.advantages, clipped * batch.advantages).mean()
    loss, parts = combine(
        policy_loss, now, now.entropy, entropy_weight=config.entropy_weight, value_weight=config.value_weight
    )
    with torch.no_grad():
        parts["clip_fraction"] = ((ratio - 1).abs() > config.clip_range).float().mean()
        parts["approx_kl"] = (ratio - 1 - log_ratio).mean()  # never negative, unlike the mean of −log ratio
    return loss, parts


class PPO:
    """Several passes over a rollout in shuffled minibatches."""

    def __init__(
        self, network: ActorCritic, config: PPOConfig, schedule_steps: int, seed: int, shards: Shards = Shards()
    ) -> None:
        self.network = network
        self.config = config
        optimizer = torch.optim.Adam(network.parameters(), config.learning_rate, eps=config.adam_epsilon, fused=True)
        schedule = schedule_steps if config.decay_learning_rate else None
        self._shards = shards
        self._descent = Descent(network, optimizer, config.max_grad_norm, schedule, shards)
        self._generator = torch.Generator().manual_seed(seed)  # shuffles
        self._scale = ReturnScale(config.bonus_gamma if config.two_value_heads else config.gamma)

    def update(self, rollout: Rollout, rewards: Rewards, steps_done: int, *, hold_policy: bool = False) -> Metrics:
        """Learns from the rollout with the mixed rewards, or with two value heads from each on its own."""
        returns, values, advantages = self._targets(rollout, rewards)  # (T, N, V) twice, (T, N)
        if self.config.normalise_advantages:
            advantages = normalised(advantages)
        if hold_policy:
            advantages = torch.zeros_like(advantages)
        batches = [make_batch(rollout, returns, advantages, envs) for envs in self._shards.own(advantages.shape[1])]
        rate = self._descent.set_rate(steps_done)
        steps: list[Parts] = []
        norms: list[float] = []
        for orders in self._minibatches(rollout.num_transitions // self._shards.count):
            norm, parts = self._descent.step(map(self._losses, batches, orders))
            norms.append(norm)
            steps.append(parts)
            if 0 < self.config.max_kl < steps[-1]["approx_kl"]:
                break
        metrics = mean_parts(steps) | self._descent.figures(norms) | {"gradient_steps": float(len(norms))}
        metrics |= {"learning_rate": rate, "return_std": self._scale.std}
        names = ("explained_variance", "bonus_explained_variance")[: returns.shape[-1]]
        return metrics | {name: explained_variance(returns[..., v], values[..., v]) for v, name in enumerate(names)}

    def state_dict(self) -> dict[str, Any]:
        return self._descent.state_dict() | {
            "scale": self._scale.state_dict(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._descent.load_state_dict(state)
        self._scale.load_state_dict(state["scale"])
        self._generator.set_state(state["generator"])

    def _minibatches(self, num_transitions: int) -> Iterator[Sequence[Tensor]]:
        """The transitions of each of this process's shards that each step learns from, in a new order every pass.

        A shard has so many transitions in all, and the same share of every minibatch as the other shards.
        """
        for _ in range(self.config.num_epochs):
            orders = [torch.randperm(num_transitions, generator=self._generator) for _ in range(self._shards.count)]
            own = [orders[index].tensor_split(self.config.num_minibatches) for index in self._shards.indices()]
            yield from zip(*own, strict=True)

    def _losses(self, batch: Batch, index: Tensor) -> Losses:
        """A shard's part of a minibatch's loss, in terms of few enough transitions to keep near the processor."""
        for part in index.split(_PART_SIZE):
            share = len(part) / (len(index) * self._shards.count)
            loss, parts = ppo_loss(self.network, batch.take(part).to(self.network.device), self.config)
            yield share * loss, {name: share * value for name, value in parts.items()}

    def _targets(self, rollout: Rollout, rewards: Rewards) -> tuple[Tensor, Tensor, Tensor]:
        """Returns and values (T, N, V), and advantages (T, N)."""
        gamma, lam = self.config.gamma, self.config.gae_lambda
        if not self.config.two_value_heads:
            returns = rollout_returns(rollout, self._scaled(rewards.mixed), gamma, lam)  # (T, N)
            return returns[..., None], rollout.values[..., None], returns - rollout.values
        # As in random network distillation: the game's reward as it is, the bonus in units of its own returns.
        returns = rollout_returns(rollout, rewards.extrinsic, gamma, lam)
        bonus_values = self._bonus_values(rollout)  # (T + 1, N)
        bonus_returns = endless_returns(self._scaled(rewards.bonus), bonus_values, self.config.bonus_gamma, lam)
        advantages = returns - rollout.values + rewards.bonus_weight * (bonus_returns - bonus_values[:-1])
        values = torch.stack([rollout.values, bonus_values[:-1]], dim=-1)
        return torch.stack([returns, bonus_returns], dim=-1), values, advantages

    def _scaled(self, rewards: Tensor) -> Tensor:
        """(T, N) in units of the standard deviation of their discounted sum."""
        return self._scale.scaled(rewards) if self.config.normalise_rewards else rewards

    @torch.no_grad()
    def _bonus_values(self, rollout: Rollout) -> Tensor:
        """(T + 1, N): what acting did not note down, because only the learner asks for it."""
        observations = rollout.views["policy"]
        values = torch.zeros(observations.shape[:2])
        for envs in self._shards.own(values.shape[1]):
            parts = observations[:, envs].flatten(0, 1).split(_PART_SIZE)
            found = torch.cat([self.network(part.to(self.network.device))[1][:, 1].cpu() for part in parts])
            values[:, envs] = found.view(len(values), -1)
        self._shards.ranks.fill([values])
        return values
