"""ICM and large-scale curiosity against their closed forms."""

import copy
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from coex.bonuses.icm import VIEW
from coex.bonuses.parts import blocks


def whole(rollout, view):
    (block,) = blocks(rollout, view, 1_000)
    return block


def test_icms_networks_are_the_papers(new_bonus) -> None:
    model = new_bonus("icm").model
    shapes = [tuple(parameter.shape) for name, parameter in model.named_parameters() if name.endswith("weight")]
    assert shapes == [(32, 4, 3, 3), *3 * [(32, 32, 3, 3)], (256, 576), (6, 256), (256, 294), (288, 256)]
    assert model.encode(torch.zeros((1, 42, 42, 4), dtype=torch.uint8)).shape == (1, 288)


def test_curiositys_networks_are_the_papers(new_bonus) -> None:
    bonus = new_bonus("curiosity")

    def shapes(network):
        return [tuple(weight.shape) for name, weight in network.named_parameters() if name.endswith("weight")]

    assert shapes(bonus.features.encoder) == [(32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3), (512, 3136)]
    assert shapes(bonus.features.head) == [(512, 1024), (6, 512)]
    assert isinstance(bonus.features.head[1], torch.nn.ReLU)  # all the others are leaky
    assert shapes(bonus.dynamics) == [(512, 512 + 6)] * 10  # one, two in each of four blocks, and one


def test_icm_pays_half_the_squared_distance_from_the_true_last_picture(new_bonus, make_rollout) -> None:
    icm, rollout = new_bonus("icm"), make_rollout(4)
    assert len(rollout.final_index)
    found = icm.reward(rollout).bonus
    for index, (t, n) in enumerate(rollout.final_index.tolist()):
        left = icm.model.encode(rollout.views[VIEW][t, n][None])
        reached = icm.model.encode(rollout.final_views[VIEW][index][None])
        told = F.one_hot(rollout.actions[t, n], 6)[None]
        foretold = icm.model.dynamics(torch.cat([left, told], -1))
        expected = 0.5 * np.sum((foretold - reached).detach().numpy() ** 2)
        np.testing.assert_allclose(found[t, n], expected, rtol=1e-4)


def test_uniform_guesses_cost_log_a_and_a_perfect_forecast_nothing(new_bonus, make_rollout) -> None:
    icm, rollout = new_bonus("icm", forward_share=0), make_rollout(pictures=1)
    torch.nn.init.zeros_(icm.model.inverse[-1].weight)
    prediction = icm.model(whole(rollout, VIEW))
    assert prediction.loss.item() == pytest.approx(math.log(6))
    with torch.no_grad():  # all pictures are the same: the forecast is a constant
        icm.model.dynamics[-1].weight.zero_()
        icm.model.dynamics[-1].bias.copy_(icm.model.encode(rollout.views[VIEW][0, 0][None])[0])
    assert icm.reward(rollout).bonus.max() < 1e-8


def test_the_forward_loss_teaches_the_features_of_both_pictures(new_bonus, make_rollout) -> None:
    icm, rollout = new_bonus("icm", forward_share=1), make_rollout(1, steps=1, envs=1)
    assert not len(rollout.final_index)
    seen = []
    encode = icm.model.encode

    def keep(frames):
        features = encode(frames)
        features.retain_grad()
        seen.append(features)
        return features

    icm.model.encode = keep
    icm.model(whole(rollout, VIEW)).loss.backward()
    (features,) = seen
    assert (features.grad.abs().sum(-1) > 0).all()


def test_icm_learns_to_foretell(new_bonus, make_rollout) -> None:
    icm, rollout = new_bonus("icm", learning_rate=1e-3), make_rollout(pictures=2)
    losses = [icm.update(rollout, icm.reward(rollout))["icm/loss"] for _ in range(60)]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize(
    ("name", "settings"),
    [("icm", {}), ("curiosity", {"warmup": 0, "epochs": 2}), ("curiosity-random", {"warmup": 0}), ("e3b", {})],
)
def test_one_pass_and_two_give_the_same(name, settings, new_bonus, make_rollout) -> None:
    """A rollout of one minibatch is rewarded by the pass that it is learned from."""
    one, other = new_bonus(name, **settings), new_bonus(name, **settings)
    for seed in range(3):
        rewarded = one.reward(make_rollout(seed))
        assert rewarded.memo is not None
        one.update(make_rollout(seed), rewarded)
        assert torch.equal(other.reward(make_rollout(seed)).bonus, rewarded.bonus)
        other.update(make_rollout(seed), rewarded._replace(memo=None))
    modules = [vars(bonus).get(part) for part in ("model", "features", "dynamics") for bonus in (one, other)]
    for mine, theirs in zip(modules[::2], modules[1::2], strict=True):
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True) if mine else ():
            assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["curiosity", "curiosity-random"])
def test_curiosity_pays_the_mean_squared_error(name, new_bonus, make_rollout) -> None:
    bonus, rollout = new_bonus(name, warmup=0), make_rollout(4)
    errors, _ = bonus.errors(rollout)
    t, n = rollout.final_index[0].tolist()
    left = bonus.encode(rollout.views["policy"][t, n][None])
    reached = bonus.encode(rollout.final_views["policy"][0][None])
    foretold = bonus.dynamics(left, rollout.actions[t, n][None])
    np.testing.assert_allclose(errors[t, n], np.mean((foretold - reached).detach().numpy() ** 2), rtol=1e-4)
    bonus.dynamics = lambda features, actions: features  # pictures that stay the same are then foretold
    assert bonus.errors(make_rollout(pictures=1))[0].max() < 1e-8


@pytest.mark.parametrize(("name", "learns"), [("curiosity", True), ("curiosity-random", False)])
def test_random_features_are_never_learned(name, learns, new_bonus, make_rollout) -> None:
    bonus, rollout = new_bonus(name, warmup=0), make_rollout()
    before = copy.deepcopy(bonus.features.state_dict())
    dynamics = copy.deepcopy(bonus.dynamics.state_dict())
    bonus.update(rollout, bonus.reward(rollout))
    changed = [not torch.equal(before[key], value) for key, value in bonus.features.state_dict().items()]
    assert all(changed) if learns else not any(changed)
    assert not torch.equal(dynamics["last.weight"], bonus.dynamics.last.weight)


def test_the_dynamics_teach_the_features_nothing(new_bonus, make_rollout) -> None:
    bonus, rollout = new_bonus("curiosity", warmup=0), make_rollout()
    bonus.features.loss = lambda *_: torch.zeros(())
    before = copy.deepcopy(bonus.features.state_dict())
    bonus.update(rollout, bonus.reward(rollout))
    assert all(torch.equal(before[key], value) for key, value in bonus.features.state_dict().items())


def test_pixels_are_fixed_after_the_warm_up(new_bonus, make_rollout) -> None:
    bonus, rollout = new_bonus("curiosity", warmup=30), make_rollout()
    numbers = rollout.next_view("policy").flatten(0, 1).double().numpy()
    for _ in range(2):
        assert not bonus.ready
        assert not bonus.reward(rollout).bonus.any()
        assert bonus.update(rollout, bonus.reward(rollout)) == {}
    assert bonus.ready
    for seed in range(2):
        bonus.update(make_rollout(seed), bonus.reward(make_rollout(seed)))
    expected = (numbers - numbers.mean(0)) / numbers.std(0).mean()
    frames = rollout.next_view("policy").flatten(0, 1)
    found = bonus._pixels.normalised(frames).permute(0, 2, 3, 1)
    np.testing.assert_allclose(found, expected, atol=2e-3)
