"""Returns against a literal computation, episode by episode, and against Stable-Baselines3's."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from coex.learners.returns import ReturnScale, endless_returns, lambda_returns


def literal_returns(rewards, values, last_values, terminated, truncated, end_values, gamma, lam):  # type: ignore[no-untyped-def]
    """Σ (γλ)^i δ_{t+i} + V(s_t), the sum ending with the episode or the rollout (Schulman et al. 2016, Eq. 16)."""
    steps, envs = rewards.shape
    returns = np.zeros((steps, envs))
    for n in range(envs):
        for t in range(steps):
            total, discount = values[t, n], 1.0
            for k in range(t, steps):
                following = values[k + 1, n] if k + 1 < steps else last_values[n]
                following = end_values[k, n] if truncated[k, n] else following
                following = 0.0 if terminated[k, n] else following
                total += discount * (rewards[k, n] + gamma * following - values[k, n])
                discount *= gamma * lam
                if terminated[k, n] or truncated[k, n]:
                    break
            returns[t, n] = total
    return returns


def random_rollout(steps: int, envs: int, *, cut: bool) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    rewards, values, end_values = torch.randn((3, steps, envs), generator=generator)
    ends = torch.randint(0, 6, (steps, envs), generator=generator)
    return {
        "rewards": rewards,
        "values": values,
        "last_values": torch.linspace(-2, 2, envs),
        "terminated": ends == 0,
        "truncated": (ends == 1) if cut else torch.zeros_like(ends == 1),
        "end_values": end_values,
    }


@pytest.mark.parametrize("lam", [1.0, 0.95, 0.3, 0.0])
def test_returns_stop_at_terminal_states_and_bootstrap_at_truncation(lam: float) -> None:
    rollout = random_rollout(30, 8, cut=True)
    returns = lambda_returns(**rollout, gamma=0.9, lam=lam)
    expected = literal_returns(**{name: part.double().numpy() for name, part in rollout.items()}, gamma=0.9, lam=lam)
    np.testing.assert_allclose(returns.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("terminated", "truncated", "expected"),
    [(False, False, [5.0, 8.0, 12.0]), (True, False, [2.0, 2.0, 12.0]), (False, True, [4.0, 6.0, 12.0])],
)
def test_by_hand(terminated: bool, truncated: bool, expected: list[float]) -> None:
    """Rewards 1, 2, 4 and γ = ½; the second step may end its episode, worth 8 there; 16 follows at the end."""
    middle = torch.tensor([[False], [True], [False]])
    returns = lambda_returns(
        rewards=torch.tensor([[1.0], [2.0], [4.0]]),
        values=torch.full((3, 1), 99.0),  # of no account with λ = 1
        last_values=torch.tensor([16.0]),
        terminated=middle & terminated,
        truncated=middle & truncated,
        end_values=torch.full((3, 1), 8.0),
        gamma=0.5,
        lam=1.0,
    )
    assert returns.flatten().tolist() == expected


@pytest.mark.parametrize("lam", [1.0, 0.95])
def test_they_are_stable_baselines3s(lam: float) -> None:
    """SB3 knows no truncation here: it adds γ·V of the last state to the reward of a step it takes for terminal."""
    steps, envs, gamma = 12, 5, 0.97
    rollout = random_rollout(steps, envs, cut=True)
    rewards = rollout["rewards"] + gamma * rollout["end_values"] * rollout["truncated"]
    ends = (rollout["terminated"] | rollout["truncated"]).numpy()
    box = spaces.Box(0, 1, (1,))
    buffer = RolloutBuffer(steps, box, spaces.Discrete(2), gamma=gamma, gae_lambda=lam, n_envs=envs)
    starts = np.ones(envs)
    for t in range(steps):
        nothing = np.zeros((envs, 1), np.float32)
        buffer.add(nothing, nothing, rewards[t].numpy(), starts, rollout["values"][t], torch.zeros(envs))
        starts = ends[t]
    buffer.compute_returns_and_advantage(rollout["last_values"], starts)
    returns = lambda_returns(**rollout, gamma=gamma, lam=lam)
    np.testing.assert_allclose(returns.numpy(), buffer.returns, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose((returns - rollout["values"]).numpy(), buffer.advantages, rtol=1e-4, atol=1e-5)


def test_endless_returns_do_not_know_of_episodes() -> None:
    rollout = random_rollout(9, 4, cut=False)
    rollout["terminated"] = torch.zeros_like(rollout["terminated"])
    values = torch.cat([rollout["values"], rollout["last_values"][None]])
    expected = lambda_returns(**rollout, gamma=0.9, lam=0.8)
    assert torch.equal(endless_returns(rollout["rewards"], values, 0.9, 0.8), expected)


class TestReturnScale:
    def test_it_is_the_deviation_of_all_discounted_sums_so_far(self) -> None:
        rewards = torch.randn((40, 3), generator=torch.Generator().manual_seed(0)) + 0.5
        sums, history = np.zeros(3), []
        for reward in rewards.double().numpy():
            sums = 0.9 * sums + reward
            history.append(sums)
        scale = ReturnScale(0.9)
        for first, end in [(0, 7), (7, 8), (8, 40)]:  # however it comes
            scale.update(rewards[first:end])
            assert scale.std == pytest.approx(np.std(history[:end]), rel=1e-9)

    def test_its_state_round_trips(self) -> None:
        rewards = torch.randn((3, 10, 2), generator=torch.Generator().manual_seed(0))
        one, other = ReturnScale(0.99), ReturnScale(0.99)
        one.update(rewards[0])
        other.update(rewards[1])  # another history
        other.load_state_dict(one.state_dict())
        for scale in (one, other):
            scale.update(rewards[2])
        assert one.std == other.std

    def test_its_state_does_not_change_afterwards(self) -> None:
        scale = ReturnScale(0.99)
        scale.update(torch.ones(2, 3))
        state = scale.state_dict()
        before = state["sums"].clone()
        scale.update(torch.ones(2, 3))
        assert torch.equal(state["sums"], before)
