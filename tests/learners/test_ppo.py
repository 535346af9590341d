"""The loss against NumPy, against Stable-Baselines3's own update and against A2C; two values by hand."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from coex.config.learners import A2CConfig, PPOConfig, RewardConfig
from coex.errors import UsageError
from coex.learners.a2c import A2C
from coex.learners.batch import Batch, Rewards, make_rewards
from coex.learners.networks import ActorCritic
from coex.learners.ppo import PPO, ppo_loss
from coex.rollouts.rollout import Rollout

# What makes PPO's update A2C's: the ratio is 1 at the first step, and nothing is normalised.
LIKE_A2C = PPOConfig(
    num_epochs=1,
    num_minibatches=1,
    gae_lambda=1.0,
    value_weight=0.5,
    normalise_rewards=False,
    normalise_advantages=False,
)


def make_network(actions: int = 6, num_values: int = 1) -> ActorCritic:
    torch.manual_seed(0)
    return ActorCritic(actions, num_values)


def make_batch(network: ActorCritic, size: int = 32) -> Batch:
    """With policies that have moved on by up to a third since acting, in both directions."""
    generator = torch.Generator().manual_seed(0)
    observations = torch.randint(0, 256, (size, 84, 84, 4), dtype=torch.uint8, generator=generator)
    actions = torch.randint(0, 6, (size,), generator=generator)
    now = network(observations)[0].detach().log_softmax(-1).gather(1, actions[:, None]).squeeze(1)
    moved = torch.rand(size, generator=generator) * 0.6 - 0.3
    returns, advantages = torch.randn((2, size), generator=generator)
    return Batch(observations, actions, now - moved, returns[:, None], advantages)


def observe(network: ActorCritic, rollout: Rollout) -> Rollout:
    """The rollout as if the network had acted in it."""
    with torch.no_grad():
        logits, values = network(rollout.views["policy"].flatten(0, 1))
        log_probs = logits.log_softmax(-1).view(*rollout.views["policy"].shape[:2], -1)[:-1]
        values = values[:, 0].view(rollout.views["policy"].shape[:2])
    return dataclasses.replace(
        rollout,
        log_probs=log_probs.gather(2, rollout.actions[..., None]).squeeze(2),
        values=values[:-1],
        last_values=values[-1],
    )


def test_the_loss_is_the_clipped_surrogate() -> None:
    network, config = make_network(), PPOConfig(entropy_weight=0.02, value_weight=0.7)
    batch = make_batch(network)
    logits, values = (part.detach().double().numpy() for part in network(batch.observations))
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    entropy = -(np.exp(log_probs) * log_probs).sum(axis=1).mean()
    ratio = np.exp(log_probs[np.arange(32), batch.actions] - batch.log_probs.numpy())
    advantages = batch.advantages.numpy()
    surrogate = [
        min(a * r, a * max(min(r, 1.1), 0.9)) for a, r in zip(advantages.tolist(), ratio.tolist(), strict=True)
    ]
    value = 0.5 * ((values - batch.returns.numpy()) ** 2).mean()
    loss, parts = ppo_loss(network, batch, config)
    assert loss.item() == pytest.approx(-np.mean(surrogate) - 0.02 * entropy + 0.7 * value, rel=1e-4)
    clipped = (ratio < 0.9) | (ratio > 1.1)
    assert 0.3 < clipped.mean() < 0.9
    assert parts["clip_fraction"].item() == pytest.approx(clipped.mean())
    assert parts["approx_kl"].item() == pytest.approx((ratio - 1 - np.log(ratio)).mean(), rel=1e-3)


def test_its_gradient_is_stable_baselines3s() -> None:
    """SB3 writes the same loss as policy + ent_coef·(−H) + vf_coef·(V − R)²: its vf_coef 0.5 is our 1."""
    network = make_network()
    batch = make_batch(network)
    loss, _ = ppo_loss(network, batch, PPOConfig())
    ours = torch.autograd.grad(loss, list(network.parameters()))
    logits, values = network(batch.observations)
    distribution = torch.distributions.Categorical(logits=logits)
    ratio = torch.exp(distribution.log_prob(batch.actions) - batch.log_probs)
    policy_loss = -torch.min(batch.advantages * ratio, batch.advantages * torch.clamp(ratio, 0.9, 1.1)).mean()
    value_loss = torch.nn.functional.mse_loss(batch.returns, values)
    theirs = torch.autograd.grad(
        policy_loss - 0.01 * distribution.entropy().mean() + 0.5 * value_loss, list(network.parameters())
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def test_at_ratio_1_its_gradient_is_a2cs(make_rollout) -> None:  # type: ignore[no-untyped-def]
    gradients = []
    for make in (lambda network: A2C(network, A2CConfig(), 100), lambda network: PPO(network, LIKE_A2C, 100, seed=0)):
        learner = make(make_network())
        rollout = observe(learner.network, make_rollout(steps=6, envs=4))
        learner.update(rollout, make_rewards(rollout.rewards, None, RewardConfig()), steps_done=0)
        gradients.append([parameter.grad for parameter in learner.network.parameters()])
    assert all(gradient.abs().max() > 1e-4 for gradient in gradients[0])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def test_rewards_come_in_units_of_their_returns_deviation(make_rollout) -> None:  # type: ignore[no-untyped-def]
    """A hundred times the reward, bonus and all: the same update."""
    gradients = []
    for size in (1.0, 100.0):
        learner = PPO(make_network(), dataclasses.replace(LIKE_A2C, normalise_rewards=True), 100, seed=0)
        rollout = observe(learner.network, make_rollout(steps=6, envs=4))
        rewards = Rewards(rollout.rewards * size, torch.full((6, 4), size), bonus_weight=0.5)
        metrics = learner.update(rollout, rewards, steps_done=0)
        assert 0.1 * size < metrics["return_std"] < 10 * size
        gradients.append(learner.network.value.weight.grad)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_a_policy_that_has_moved_far_ends_the_rollouts_passes(make_rollout) -> None:  # type: ignore[no-untyped-def]
    """At the first minibatch the policy is the one that acted; the second finds it moved, by however little."""
    for max_kl, steps in ((0.0, 8), (1e-12, 2), (1e6, 8)):
        config = dataclasses.replace(LIKE_A2C, num_epochs=2, num_minibatches=4, max_kl=max_kl, learning_rate=1e-3)
        learner = PPO(make_network(), config, 100, seed=0)
        rollout = observe(learner.network, make_rollout(steps=6, envs=4))
        metrics = learner.update(rollout, make_rewards(rollout.rewards, None, RewardConfig()), steps_done=0)
        assert metrics["gradient_steps"] == steps


def test_figures_are_of_whole_minibatches(make_rollout, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """Passes of five transitions at a time give the means, and the bound on them, that one pass of all 24 gives."""
    figures = []
    for size in (512, 5):
        monkeypatch.setattr("coex.learners.ppo._PART_SIZE", size)
        learner = PPO(make_network(), dataclasses.replace(LIKE_A2C, num_epochs=1, num_minibatches=1), 100, seed=0)
        rollout = observe(learner.network, make_rollout(steps=6, envs=4))
        rollout.log_probs[:3] += 0.5  # moves some, not all
        figures.append(learner.update(rollout, make_rewards(rollout.rewards, None, RewardConfig()), steps_done=0))
    assert figures[0]["approx_kl"] > 0.01
    for point in figures:  # how far states differ is told of the states of one pass
        for name in ("network/spread", "network/policy_spread", "network/dead_units"):
            del point[name]
    assert figures[1] == pytest.approx(figures[0], rel=1e-4)


def test_every_minibatch_is_seen_once_an_epoch(make_rollout, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    seen: list[list[float]] = []

    def watched(network: ActorCritic, batch: Batch, config: PPOConfig):  # type: ignore[no-untyped-def]
        seen.append(batch.returns.flatten().tolist())
        return ppo_loss(network, batch, config)

    monkeypatch.setattr("coex.learners.ppo.ppo_loss", watched)
    config = dataclasses.replace(LIKE_A2C, num_epochs=2, num_minibatches=4)
    rollout = make_rollout(steps=5, envs=3)
    PPO(make_network(), config, 100, seed=0).update(
        rollout, make_rewards(rollout.rewards, None, RewardConfig()), steps_done=0
    )
    assert [len(part) for part in seen] == [4, 4, 4, 3] * 2  # 15 transitions, as evenly as can be
    first, second = (sorted(itertools.chain(*seen[k : k + 4])) for k in (0, 4))
    assert first == second
    assert seen[0] != seen[4]


def test_a_large_minibatch_in_parts_is_the_same_step(make_rollout, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    gradients = []
    for size in (512, 10):  # 24 transitions in one part, or in 10, 10 and 4
        monkeypatch.setattr("coex.learners.ppo._PART_SIZE", size)
        learner = PPO(make_network(), LIKE_A2C, 100, seed=0)
        rollout = make_rollout(steps=6, envs=4)
        learner.update(rollout, make_rewards(rollout.rewards, None, RewardConfig()), steps_done=0)
        gradients.append([parameter.grad for parameter in learner.network.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_the_bonus_own_value_by_hand(make_rollout) -> None:  # type: ignore[no-untyped-def]
    """Two steps, the first of which ends an episode; γ = ½ for both, λ = 1; the bonus is worth 4 in every state."""
    network = make_network(num_values=2)
    with torch.no_grad():
        network.value.weight.zero_()
        network.value.bias.copy_(torch.tensor([0.0, 4.0]))
    config = dataclasses.replace(LIKE_A2C, two_value_heads=True, gamma=0.5, bonus_gamma=0.5)
    rollout = dataclasses.replace(
        make_rollout(steps=2, envs=1),
        values=torch.tensor([[1.0], [2.0]]),
        last_values=torch.tensor([6.0]),
        terminated=torch.tensor([[True], [False]]),
        truncated=torch.zeros((2, 1), dtype=torch.bool),
    )
    rewards = Rewards(torch.tensor([[3.0], [5.0]]), torch.tensor([[1.0], [2.0]]), bonus_weight=10.0)
    returns, values, advantages = PPO(network, config, 100, seed=0)._targets(rollout, rewards)
    # The game's: 3, cut off; 5 + 6/2. The bonus': 2 + 4/2 = 4 for the second, 1 + 4/2 for the first: nothing ends.
    assert returns.squeeze(1).tolist() == [[3.0, 3.0], [8.0, 4.0]]
    assert values.squeeze(1).tolist() == [[1.0, 4.0], [2.0, 4.0]]
    assert advantages.flatten().tolist() == [(3 - 1) + 10 * (3 - 4), (8 - 2) + 10 * (4 - 4)]


@pytest.mark.parametrize(
    "setting", [{"num_epochs": 0}, {"num_minibatches": 0}, {"gae_lambda": 1.5}, {"clip_range": 0.0}, {"max_kl": -1.0}]
)
def test_impossible_settings_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(setting))}"):
        PPOConfig(**setting)  # type: ignore[arg-type]
