"""What every bonus promises."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch

from coex.bonuses import Bonus
from coex.bonuses.simhash import SimHashBonus
from coex.config.presets import make_config
from coex.method.bonus import CoexBonus
from coex.rollouts.rollout import still
from coex.training.make import make_bonus

CONFIGURATIONS = [
    ("a2c+coex", {}),
    ("a2c+coex", {"state": "xy"}),
    ("a2c+coex", {"state": "cR"}),
    ("a2c+coex", {"state": "xyR", "adm": {"attention": "softmax"}}),
    ("a2c+coex", {"locator": "random"}),
    ("ppo+coex", {"adm": {"minibatch": 4, "epochs": 2}}),  # rollouts larger than a minibatch
    ("a2c+coex-ram", {}),
    ("a2c+simhash", {}),
    ("a2c+rnd", {"predictor": {"warmup": 0}}),
    ("a2c+icm", {}),
    ("ppo+icm", {"minibatch": 4, "epochs": 2}),
    ("a2c+curiosity", {"warmup": 0}),
    ("a2c+noveld", {"predictor": {"warmup": 0}}),
    ("a2c+e3b", {"features": 32}),
    ("ppo+e3b", {"features": 16, "minibatch": 4, "epochs": 2}),
    ("ppo+curiosity", {"warmup": 0, "minibatch": 4, "epochs": 2}),
    ("a2c+coex-e3b", {"e3b": {"features": 16}}),
    ("a2c+coex-noveld", {}),
    ("a2c+phi-eb", {"tiles": 2, "colour_bits": 1}),
    ("a2c+cts", {}),
    ("a2c+ae-simhash", {"channels": 4, "code": 64, "train_every": 20, "pool": 40, "block": 1, "max_blocks": 1}),
    ("a2c+pixelcnn", {}),
    ("a2c+pixelcnn-chunks", {"chunk": 4}),
    ("a2c+curiosity-random", {"warmup": 0, "minibatch": 4}),
]


@pytest.fixture(params=CONFIGURATIONS, ids=[f"{method}{settings or ''}" for method, settings in CONFIGURATIONS])
def make(request: pytest.FixtureRequest) -> Callable[[], Bonus]:
    method, settings = request.param
    config = make_config("montezuma", method, {"bonus": settings})

    def make_one() -> Bonus:
        torch.manual_seed(0)
        bonus = make_bonus(config, 6, np.random.SeedSequence(1), torch.device("cpu"))
        assert bonus is not None
        return bonus

    return make_one


def test_rewards_are_finite_and_in_shape(make, make_rollout):
    bonus = make()
    for seed in range(3):
        rewarded = bonus.reward(make_rollout(seed))
        bonus.update(make_rollout(seed), rewarded)
        reward = rewarded.bonus
        assert reward.shape == (5, 3)
        assert reward.dtype == torch.float32
        assert not reward.requires_grad
        assert (torch.isfinite(reward) & (reward >= 0)).all()
        assert reward.any()
        if type(bonus) in (CoexBonus, SimHashBonus):  # 1/√N
            assert ((reward > 0) & (reward <= 1)).all()


def test_rare_is_worth_more_than_common(make, make_rollout):
    bonus, rollout = make(), make_rollout()
    rollout.final_index = rollout.final_index[:0]  # one episode: some bonuses forget what another one held
    rollout.final_views = {name: view[:0] for name, view in rollout.final_views.items()}
    means = []
    for _ in range(11):
        rewarded = bonus.reward(rollout)
        bonus.update(rollout, rewarded)
        means.append(rewarded.bonus.mean())
    assert means[-1] < means[0]


def test_the_rollout_is_left_alone(make, make_rollout, assert_same_rollout):
    bonus, rollout = make(), make_rollout()
    before = copy.deepcopy(rollout)
    bonus.update(rollout, bonus.reward(rollout))
    assert_same_rollout(rollout, before)


def same_step(one, other, rollout):
    """Both reward the rollout alike, and learn the same from it."""
    ours, theirs = one.reward(rollout), other.reward(rollout)
    assert torch.equal(ours.bonus, theirs.bonus)
    assert one.update(rollout, ours) == other.update(rollout, theirs)


def test_inspecting_changes_nothing(make, make_rollout):
    bonus, untouched = make(), make()
    for seed in range(3):
        rollout = make_rollout(seed)
        same_step(bonus, untouched, rollout)
        carried = copy.deepcopy(bonus.state_dict())
        bonus.forget_episodes()  # whoever looks at pictures one at a time begins with the first of an episode
        step = still({name: view[0, 0].numpy() for name, view in rollout.views.items()}, 3.7)
        found = bonus.inspect(step)
        assert found.visits is None or found.visits >= 0
        bonus.load_state_dict(carried)
    assert bonus.snapshot() == untouched.snapshot()


def test_the_same_seed_gives_the_same_numbers(make, make_rollout):
    one, other = make(), make()
    for seed in range(4):
        same_step(one, other, make_rollout(seed))
    assert one.snapshot() == other.snapshot()


def test_a_restored_bonus_goes_on_identically(make, make_rollout):
    original = make()
    for seed in range(3):
        original.update(make_rollout(seed), original.reward(make_rollout(seed)))
    restored = make()
    restored.update(make_rollout(9), restored.reward(make_rollout(9)))  # another history
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    for seed in range(3, 6):
        same_step(original, restored, make_rollout(seed))
    assert original.snapshot() == restored.snapshot()


def test_it_names_the_views_it_looks_at(make, make_rollout, request):
    method, settings = request.node.callspec.params["make"]
    views = ["policy", *make_config("montezuma", method, {"bonus": settings}).views()]  # the policy's is always there
    rollout = make_rollout()
    rollout.views = {name: rollout.views[name] for name in views}
    rollout.final_views = {name: rollout.final_views[name] for name in views}
    bonus = make()
    bonus.update(rollout, bonus.reward(rollout))
