"""The loss against NumPy and against Stable-Baselines3's own update."""

import numpy as np
import pytest
import torch

from coex.errors import UsageError
from coex.learners.a2c import A2CConfig, a2c_loss
from coex.learners.batch import Batch
from coex.learners.networks import ActorCritic


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
