"""Returns against a literal computation, episode by episode, and against Stable-Baselines3's."""

import numpy as np
import torch

from coex.learners.returns import n_step_returns


def literal_returns(rewards, terminated, truncated, end_values, last_values, gamma):  # type: ignore[no-untyped-def]
    """Σ γ^i r_{t+i} to the end of the episode or of the rollout, plus what stands for the rest."""
    steps, envs = rewards.shape
    returns = np.zeros((steps, envs))
    for n in range(envs):
        for t in range(steps):
            total, discount = 0.0, 1.0
            for k in range(t, steps):
                total += discount * rewards[k, n]
                discount *= gamma
                if terminated[k, n]:
                    break
                if truncated[k, n]:
                    total += discount * end_values[k, n]
                    break
            else:
                total += discount * last_values[n]
            returns[t, n] = total
    return returns


def random_rollout(steps: int, envs: int, *, cut: bool) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    rewards, end_values = torch.randn((2, steps, envs), generator=generator)
    ends = torch.randint(0, 6, (steps, envs), generator=generator)
    return rewards, ends == 0, (ends == 1) if cut else torch.zeros_like(ends == 1), end_values


def test_returns_stop_at_terminal_states_and_bootstrap_at_truncation() -> None:
    rewards, terminated, truncated, end_values = random_rollout(30, 8, cut=True)
    last_values = torch.linspace(-2, 2, 8)
    returns = n_step_returns(rewards, terminated, truncated, end_values, last_values, 0.9)
    parts = (part.numpy() for part in (rewards, terminated, truncated, end_values, last_values))
    np.testing.assert_allclose(returns.numpy(), literal_returns(*parts, 0.9), rtol=1e-4, atol=1e-5)


def test_by_hand() -> None:
    rewards = torch.tensor([[1.0], [2.0], [4.0]])
    no, yes = torch.zeros(3, 1, dtype=torch.bool), torch.tensor([[False], [True], [False]])
    end_values, last = torch.full((3, 1), 8.0), torch.tensor([16.0])
    assert n_step_returns(rewards, no, no, end_values, last, 0.5).flatten().tolist() == [5.0, 8.0, 12.0]
    assert n_step_returns(rewards, yes, no, end_values, last, 0.5).flatten().tolist() == [2.0, 2.0, 12.0]
    assert n_step_returns(rewards, no, yes, end_values, last, 0.5).flatten().tolist() == [4.0, 6.0, 12.0]


def test_without_truncation_they_are_stable_baselines3s() -> None:
    from gymnasium import spaces
    from stable_baselines3.common.buffers import RolloutBuffer

    steps, envs = 12, 5
    rewards, terminated, truncated, end_values = random_rollout(steps, envs, cut=False)
    last_values = torch.linspace(-1, 1, envs)
    box = spaces.Box(0, 1, (1,))
    buffer = RolloutBuffer(steps, box, spaces.Discrete(2), gamma=0.97, gae_lambda=1.0, n_envs=envs)
    starts = np.ones(envs)
    for t in range(steps):
        nothing = np.zeros((envs, 1), np.float32)
        buffer.add(nothing, nothing, rewards[t].numpy(), starts, torch.zeros(envs), torch.zeros(envs))
        starts = terminated[t].numpy()
    buffer.compute_returns_and_advantage(last_values, starts)
    returns = n_step_returns(rewards, terminated, truncated, end_values, last_values, 0.97)
    np.testing.assert_allclose(returns.numpy(), buffer.returns, rtol=1e-4, atol=1e-5)
