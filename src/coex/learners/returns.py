"""Returns. At a terminal state nothing follows.

A truncated episode is cut off, and the value of its true last state stands for what would have followed.
"""

from typing import Any

import torch
from torch import Tensor

from coex.rollouts.rollout import Rollout

# OpenAI baselines' bound: where rewards are rare, the first ones would be hundreds of standard deviations.
_MAX_SCALED_REWARD = 10.0
_RECENT_SHARE = 0.01  # of the newest rollout in the scale of recent advantages


def lambda_returns(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    end_values: Tensor,
    gamma: float,
    lam: float,
) -> Tensor:
    """(T, N) R_t = r_t + γ·((1 − λ)·V(s_{t+1}) + λ·R_{t+1}), bootstrapped with `last_values` (N,) after step T.

    `end_values` (T, N) holds V of the true last state where an episode was truncated. R − V is the generalised
    advantage estimate (Schulman et al. 2016); with λ = 1, R is the n-step return of the paper's appendix A.
    """
    returns = torch.empty_like(rewards)
    next_values = following = last_values  # (N,) V(s_{t+1}), R_{t+1}
    for t in reversed(range(len(rewards))):
        following = torch.lerp(next_values, following, lam)
        following = torch.where(truncated[t], end_values[t], following)
        following = torch.where(terminated[t], torch.zeros_like(following), following)
        following = rewards[t] + gamma * following
        returns[t], next_values = following, values[t]
    return returns


def rollout_returns(rollout: Rollout, rewards: Tensor, gamma: float, lam: float) -> Tensor:
    """`lambda_returns` (T, N) of a rollout's episodes, by the values noted while acting."""
    return lambda_returns(
        rewards,
        rollout.values,
        rollout.last_values,
        rollout.terminated,
        rollout.truncated,
        rollout.next_values_at_end(),
        gamma,
        lam,
    )


def endless_returns(rewards: Tensor, values: Tensor, gamma: float, lam: float) -> Tensor:
    """`lambda_returns` (T, N) as if episodes never ended; `values` are (T + 1, N)."""
    never = torch.zeros_like(rewards, dtype=torch.bool)
    nothing = torch.zeros_like(rewards)
    return lambda_returns(rewards, values[:-1], values[-1], never, never, nothing, gamma, lam)


class ReturnScale:
    """Running standard deviation of the rewards' discounted sum, over all environments (Burda et al. 2018).

    The sum runs on through the ends of episodes, as it does there.
    """

    def __init__(self, gamma: float) -> None:
        self._gamma = gamma
        self._sums: Tensor | None = None  # (N,) Σ γ^k r_{t−k}, float64
        self._count, self._mean, self._variance = 0, 0.0, 0.0  # of all the sums so far

    @property
    def std(self) -> float:
        return self._variance**0.5

    def scaled(self, rewards: Tensor) -> Tensor:
        """Takes in (T, N) rewards and returns them in units of the standard deviation."""
        self.update(rewards)
        return (rewards / max(self.std, 1e-8)).clamp(-_MAX_SCALED_REWARD, _MAX_SCALED_REWARD)

    def update(self, rewards: Tensor) -> None:
        """Takes in (T, N) rewards."""
        sums = torch.zeros(rewards.shape[1], dtype=torch.float64) if self._sums is None else self._sums
        history = torch.empty(rewards.shape, dtype=torch.float64)
        for t, reward in enumerate(rewards):
            sums = self._gamma * sums + reward
            history[t] = sums
        self._sums = sums
        # Two sets of numbers as one: their variances, and the distance of their means (Chan et al. 1983).
        share = history.numel() / (self._count + history.numel())
        distance = history.mean().item() - self._mean
        variance = torch.var(history, correction=0).item()
        self._variance = (1 - share) * self._variance + share * variance + share * (1 - share) * distance**2
        self._mean += share * distance
        self._count += history.numel()

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self._sums, "count": self._count, "mean": self._mean, "variance": self._variance}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._sums = state["sums"]
        self._count, self._mean, self._variance = state["count"], state["mean"], state["variance"]


class RecentScale:
    """Root mean square of the advantages of recent rollouts.

    A rollout of 80 steps is too small to be normalised by itself: one without a reward would count as much as the rare
    one with it. A scale over the whole run would let the entropy outweigh a bonus that fades.
    """

    def __init__(self) -> None:
        self._square, self._share = 0.0, 0.0  # running mean of the squares, and how much of it is of real ones

    def scaled(self, advantages: Tensor) -> Tensor:
        """Takes in (T, N) advantages and returns them in units of their recent root mean square."""
        self._square += _RECENT_SHARE * (advantages.double().square().mean().item() - self._square)
        self._share += _RECENT_SHARE * (1.0 - self._share)
        return advantages / max((self._square / self._share) ** 0.5, 1e-8)

    def state_dict(self) -> dict[str, Any]:
        return {"square": self._square, "share": self._share}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._square, self._share = state["square"], state["share"]
