"""The loss against NumPy and against Stable-Baselines3's own update."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from coex.config.learners import A2CConfig
from coex.errors import UsageError
from coex.learners.a2c import A2C, a2c_loss
from coex.learners.batch import Batch, Rewards
from coex.learners.loss import log_entropy
from coex.learners.networks import ActorCritic
from coex.learners.returns import RecentScale, rollout_returns
from coex.rollouts.rollout import Rollout


def make_batch(size: int = 12, actions: int = 5) -> Batch:
    generator = torch.Generator().manual_seed(0)
    returns, values = torch.randn((2, size), generator=generator)
    return Batch(
        observations=torch.randint(0, 256, (size, 84, 84, 4), dtype=torch.uint8, generator=generator),
        actions=torch.randint(0, actions, (size,), generator=generator),
        log_probs=torch.zeros(size),
        returns=returns[:, None],
        advantages=returns - values,
    )


def test_the_loss_is_the_papers() -> None:
    torch.manual_seed(0)
    network, batch, config = ActorCritic(5), make_batch(), A2CConfig(entropy_weight=0.02)
    logits, values = (part.detach().double().numpy() for part in network(batch.observations))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chosen = np.log(probabilities[np.arange(12), batch.actions])
    entropy = -(probabilities * np.log(probabilities)).sum(axis=1)
    policy = -chosen * batch.advantages.numpy() - 0.02 * entropy
    value = 0.5 * (values - batch.returns.numpy())[:, 0] ** 2
    loss, parts = a2c_loss(network, batch, config)
    assert loss.item() == pytest.approx((policy + 0.5 * value).mean(), rel=1e-5)
    assert parts["entropy"].item() == pytest.approx(entropy.mean(), rel=1e-5)


def test_its_gradient_is_stable_baselines3s() -> None:
    """SB3 writes the same loss as policy + ent_coef·(−H) + vf_coef·(V − R)²: with vf_coef 0.25 they are one."""
    torch.manual_seed(0)
    network, batch = ActorCritic(5), make_batch()
    loss, _ = a2c_loss(network, batch, A2CConfig())
    ours = torch.autograd.grad(loss, list(network.parameters()))
    logits, values = network(batch.observations)
    distribution = torch.distributions.Categorical(logits=logits)
    policy_loss = -(batch.advantages * distribution.log_prob(batch.actions)).mean()
    value_loss = torch.nn.functional.mse_loss(batch.returns, values)
    theirs = torch.autograd.grad(
        policy_loss - 0.01 * distribution.entropy().mean() + 0.25 * value_loss, list(network.parameters())
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def targets(config: A2CConfig, rollout: Rollout, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """The batch that `update` makes of a rollout."""
    seen: list[Batch] = []

    def spy(network: ActorCritic, batch: Batch, config: A2CConfig) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        seen.append(batch)
        return a2c_loss(network, batch, config)

    monkeypatch.setattr("coex.learners.a2c.a2c_loss", spy)
    rewards = Rewards(rollout.rewards, torch.zeros_like(rollout.rewards), bonus_weight=0.0)
    A2C(ActorCritic(6), config, schedule_steps=1).update(rollout, rewards, 0)
    return seen[0]


def test_advantages_may_be_normalised_and_returns_be_lambda_returns(
    make_rollout: Callable[..., Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = make_rollout(steps=7)
    plain = targets(A2CConfig(gae_lambda=0.9), rollout, monkeypatch)
    expected = rollout_returns(rollout, rollout.rewards, 0.99, 0.9)
    torch.testing.assert_close(plain.returns, expected.reshape(-1, 1))
    advantages = (expected - rollout.values).flatten().double().numpy()
    np.testing.assert_allclose(plain.advantages.numpy(), advantages, rtol=1e-5, atol=1e-6)
    scaled = targets(A2CConfig(gae_lambda=0.9, normalise_advantages=True), rollout, monkeypatch)
    rms = (advantages**2).mean() ** 0.5  # of the first rollout, so far the only one
    np.testing.assert_allclose(scaled.advantages.numpy(), advantages / rms, rtol=1e-4, atol=1e-5)


def test_a_rare_reward_counts_more_than_the_rollouts_without_one() -> None:
    scale, quiet = RecentScale(), torch.full((5, 16), 0.1)
    for _ in range(50):
        assert scale.scaled(quiet).mean().item() == pytest.approx(1.0)
    assert scale.scaled(10 * quiet).mean().item() > 5
    for _ in range(1_000):  # and is forgotten
        scale.scaled(quiet)
    assert scale.scaled(quiet).mean().item() == pytest.approx(1.0, rel=1e-2)


def test_rewards_may_be_in_units_of_their_returns(
    make_rollout: Callable[..., Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then their own unit does not matter."""
    config = A2CConfig(normalise_rewards=True, normalise_advantages=True)
    one, other = make_rollout(), make_rollout()
    other.rewards[...] *= 100.0
    torch.manual_seed(0)
    first = targets(config, one, monkeypatch)
    torch.testing.assert_close(first.returns, targets(config, other, monkeypatch).returns)


def test_the_logarithm_of_the_entropy_pulls_harder_the_less_there_is() -> None:
    """d/dH of ln²(A)/ln(3)·ln(H / ln A) is ln(A)/ln(3)·ln(A)/H: ten times as much at a tenth of the entropy."""
    for actions, unit in ((3, 1.0), (9, 2.0), (27, 3.0)):
        for share in (1.0, 0.5, 0.1):
            entropy = torch.tensor(share * math.log(actions), requires_grad=True)
            log_entropy(entropy, actions).backward()
            assert entropy.grad.item() == pytest.approx(unit / share, rel=1e-5)
    assert math.isfinite(log_entropy(torch.tensor(0.0), 6).item())


def test_advantages_carry_no_gradient_into_the_value() -> None:
    network, batch = ActorCritic(5), make_batch()
    loss, _ = a2c_loss(network, batch, A2CConfig(value_weight=0.0))
    loss.backward()
    assert network.value.weight.grad is None or not network.value.weight.grad.any()


@pytest.mark.parametrize(
    "setting", [{"num_steps": 0}, {"gamma": 1.5}, {"learning_rate": 0.0}, {"entropy_weight": -1.0}]
)
def test_impossible_settings_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(setting))}"):
        A2CConfig(**setting)  # type: ignore[arg-type]
