"""What every learner promises."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from coex.config.learners import RewardConfig
from coex.config.presets import make_config
from coex.core.optim import NonFiniteError
from coex.learners import Learner
from coex.learners.batch import Rewards, make_rewards
from coex.rollouts.rollout import Rollout
from coex.training.make import make_learner

CONFIGURATIONS: list[tuple[str, dict[str, object]]] = [
    ("a2c", {}),
    ("a2c", {"optimizer": "rmsprop", "normalise_rewards": False, "normalise_advantages": False, "gae_lambda": 1.0}),
    ("a2c", {"centre_observations": False}),
    ("a2c", {"precision": "bfloat16", "log_entropy": False}),
    ("ppo", {"num_epochs": 2}),
    ("ppo", {"num_epochs": 1, "normalise_rewards": False, "normalise_advantages": False, "decay_learning_rate": True}),
    ("ppo+coex", {"num_epochs": 1, "two_value_heads": True}),
]
MakeLearner = Callable[[], Learner]


@pytest.fixture(params=CONFIGURATIONS, ids=[f"{method}{settings or ''}" for method, settings in CONFIGURATIONS])
def make(request: pytest.FixtureRequest) -> MakeLearner:
    method, settings = request.param
    config = make_config("montezuma", method, {"learner": settings})

    def make_one() -> Learner:
        torch.manual_seed(0)
        return make_learner(config, 6, np.random.SeedSequence(1), torch.device("cpu"))

    return make_one


def rewards_of(rollout: Rollout) -> Rewards:
    return make_rewards(rollout.rewards, rollout.scores.abs(), RewardConfig(2.0, 0.5))


def test_its_figures_are_finite_and_the_network_moves(make, make_rollout):
    learner = make()
    before = copy.deepcopy(learner.network.state_dict())
    metrics = learner.update(make_rollout(), rewards_of(make_rollout()), 0)
    assert all(math.isfinite(value) for value in metrics.values())
    assert {"policy_loss", "value_loss", "entropy", "grad_norm", "learning_rate", "explained_variance"} <= set(metrics)
    assert all((before[name] != value).any() for name, value in learner.network.named_parameters())


def test_it_says_how_the_network_is(make, make_rollout):
    learner, rollout = make(), make_rollout()
    metrics = learner.update(rollout, rewards_of(rollout), 0)
    assert metrics["network/spread"] > 0
    assert metrics["network/policy_spread"] > 0
    assert 0 <= metrics["network/dead_units"] < 1
    assert 0 <= metrics["cut_gradients"] <= 1


def test_a_policy_that_is_held_keeps_to_what_it_did(make, make_rollout):
    """Its value learns; of its policy, only the entropy's gradient is left, which makes it more uniform."""
    learner, other = make(), make()
    for seed in range(4):
        rollout = make_rollout(seed)
        with torch.no_grad():
            learner.network.policy.bias.copy_(torch.arange(6.0))
        before = learner.network.value.weight.clone()
        metrics = learner.update(rollout, rewards_of(rollout), 0, hold_policy=True)
        assert metrics["policy_loss"] == pytest.approx(0.0, abs=1e-9)
        assert (learner.network.value.weight != before).any()
        assert learner.network.policy.bias.detach().std() <= torch.arange(6.0).std()
    rollout = make_rollout()
    assert other.update(rollout, rewards_of(rollout), 0)["policy_loss"] != 0


def test_the_rollout_is_left_alone(make, make_rollout, assert_same_rollout):
    learner, rollout = make(), make_rollout()
    before = copy.deepcopy(rollout)
    learner.update(rollout, rewards_of(rollout), 0)
    assert_same_rollout(rollout, before)


def test_the_same_seed_gives_the_same_numbers(make, make_rollout):
    one, other = make(), make()
    for seed in range(3):
        rollout = make_rollout(seed)
        assert one.update(rollout, rewards_of(rollout), 0) == other.update(rollout, rewards_of(rollout), 0)


def test_a_restored_learner_goes_on_identically(make, make_rollout):
    original, restored = make(), make()
    for seed in range(2):
        original.update(make_rollout(seed), rewards_of(make_rollout(seed)), 0)
    restored.update(make_rollout(9), rewards_of(make_rollout(9)), 500)  # another history
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    for seed in range(2, 5):
        rollout = make_rollout(seed)
        assert original.update(rollout, rewards_of(rollout), 100) == restored.update(rollout, rewards_of(rollout), 100)
    for name, value in original.network.state_dict().items():
        assert torch.equal(value, restored.network.state_dict()[name])


def test_its_state_is_made_of_plain_things(make, make_rollout):
    def check(value: Any) -> None:
        if isinstance(value, dict):
            assert all(isinstance(key, str | int) for key in value)
            for inner in value.values():
                check(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                check(inner)
        else:
            assert value is None or isinstance(value, torch.Tensor | np.ndarray | bool | int | float | str)

    learner = make()
    check(learner.state_dict())
    learner.update(make_rollout(), rewards_of(make_rollout()), 0)
    check(learner.state_dict())


def test_rewards_that_are_no_numbers_leave_the_network_alone(make, make_rollout):
    learner, rollout = make(), make_rollout()
    before = copy.deepcopy(learner.network.state_dict())
    rollout.rewards[...] = float("nan")
    with pytest.raises(NonFiniteError):
        learner.update(rollout, rewards_of(rollout), 0)
    assert all(torch.equal(before[name], value) for name, value in learner.network.state_dict().items())
