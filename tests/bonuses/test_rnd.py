"""Random network distillation against what the paper and its code say."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from coex.config.presets import make_config

NO_WARMUP = {"warmup": 0}


@pytest.fixture
def rnd(new_bonus):
    return new_bonus("rnd", predictor=NO_WARMUP)


def test_its_networks_are_the_papers(rnd) -> None:
    target, predictor = rnd.distillation.target, rnd.distillation.predictor

    def sizes(network: nn.Module) -> list[tuple[int, ...]]:
        return [tuple(layer.weight.shape) for layer in network if hasattr(layer, "weight")]

    convs = [(32, 1, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3)]
    assert sizes(target) == [*convs, (512, 3136)]
    assert sizes(predictor) == [*convs, (512, 3136), (512, 512), (512, 512)]
    weight = predictor[-1].weight.detach()
    torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(512), atol=1e-4, rtol=0)  # orthogonal, gain √2
    assert not target[0].bias.any()


def test_the_papers_preset_is_the_papers() -> None:
    config = make_config("montezuma", "ppo+rnd", preset="paper")
    assert (config.reward.extrinsic_weight, config.reward.bonus_weight) == (2.0, 1.0)
    assert (config.bonus.predictor.epochs, config.bonus.predictor.warmup) == (4, 128 * 50 * 128)


def test_a_predictor_that_is_the_target_earns_nothing(rnd, make_rollout) -> None:
    rnd.distillation.predictor = rnd.distillation.target
    assert not rnd.reward(make_rollout()).bonus.any()


def test_the_error_is_a_mean_over_features_of_the_next_newest_frame(rnd, make_rollout) -> None:
    rollout, distillation = make_rollout(4), rnd.distillation
    assert len(rollout.final_index)
    t, n = rollout.final_index[0].tolist()
    frame = rollout.final_views["policy"][0][..., -1]  # the last of the episode, not the first of the next
    inputs = frame.float().clamp(-5, 5)[None, None]  # moments of nothing: mean 0, deviation 1
    difference = (distillation.predictor(inputs) - distillation.target(inputs)).detach().numpy()
    found = distillation.next_errors(rollout)
    np.testing.assert_allclose(found[t, n], np.mean(difference**2), rtol=1e-4)


def test_pixels_are_normalised_one_by_one_and_clipped(rnd, make_rollout) -> None:
    rollout, distillation = make_rollout(), rnd.distillation
    rnd.update(rollout, rnd.reward(rollout))
    frames = rollout.next_view("policy")[..., -1].flatten(0, 1)
    numbers = frames.double().numpy()
    expected = ((numbers - numbers.mean(0)) / np.maximum(numbers.std(0), 1e-9)).clip(-5, 5)
    moving = numbers.std(0) > 1
    inputs = distillation._normalised(frames)[:, 0].numpy()
    np.testing.assert_allclose(inputs[:, moving], expected[:, moving], atol=0.01)
    assert distillation._normalised(255 - frames).abs().max() == 5


def test_rewards_use_the_old_moments_and_learning_the_new(rnd, make_rollout, monkeypatch) -> None:
    rollout, distillation, used = make_rollout(), rnd.distillation, []
    before, normalised = copy.deepcopy(distillation._pixels.mean), distillation._normalised
    monkeypatch.setattr(
        distillation, "_normalised", lambda frames: used.append(distillation._pixels.mean) or normalised(frames)
    )
    rnd.update(rollout, rnd.reward(rollout))
    paid, *learned = used
    assert torch.equal(paid, before)
    assert learned
    assert not torch.equal(learned[0], before)
    assert all(torch.equal(mean, distillation._pixels.mean) for mean in learned)


def test_learning_changes_the_predictor_alone_and_brings_the_error_down(rnd, make_rollout) -> None:
    rollout = make_rollout()
    target = copy.deepcopy(rnd.distillation.target.state_dict())
    losses = [rnd.update(rollout, rnd.reward(rollout))["predictor/loss"] for _ in range(30)]
    assert losses[-1] < losses[1] / 2
    assert all(torch.equal(target[name], weight) for name, weight in rnd.distillation.target.state_dict().items())


def test_what_is_new_earns_more_than_what_is_known(rnd, make_rollout) -> None:
    known, new = make_rollout(pictures=2), make_rollout(pictures=2)
    new.views["policy"] = 255 - new.views["policy"]
    for _ in range(30):
        rnd.update(known, rnd.reward(known))
    assert rnd.distillation.next_errors(new).mean() > 2 * rnd.distillation.next_errors(known).mean()


def test_a_pass_without_a_picture_learns_nothing(new_bonus, make_rollout) -> None:
    rnd = new_bonus("rnd", predictor={**NO_WARMUP, "keep": 1e-9})
    before = copy.deepcopy(rnd.distillation.predictor.state_dict())
    assert rnd.update(make_rollout(), rnd.reward(make_rollout())) == {}
    assert all(torch.equal(before[name], value) for name, value in rnd.distillation.predictor.state_dict().items())


def test_more_environments_than_32_share_32s_pictures(rnd, make_rollout, monkeypatch) -> None:
    shares = []
    monkeypatch.setattr(rnd.distillation, "_pass", lambda frames, share: shares.append(share) or [])
    for envs in (3, 32, 64):
        rollout = make_rollout(steps=1, envs=envs)
        rnd.distillation.update(rollout)
    assert shares == [1.0, 1.0, 0.5]


def test_a_minibatch_is_of_whole_environments(new_bonus, make_rollout, monkeypatch) -> None:
    rnd = new_bonus("rnd", predictor={**NO_WARMUP, "minibatch": 5, "epochs": 1})
    rollout, distillation, seen = make_rollout(), rnd.distillation, []
    rewarded, normalised = rnd.reward(rollout), distillation._normalised
    monkeypatch.setattr(distillation, "_normalised", lambda frames: seen.append(frames) or normalised(frames))
    rnd.update(rollout, rewarded)
    assert torch.equal(torch.stack(seen, 1), rollout.next_view("policy")[..., -1])


def test_warming_up_holds_the_policy_and_learns_the_moments_alone(new_bonus, make_rollout) -> None:
    rnd = new_bonus("rnd", predictor={"warmup": 16})
    before = copy.deepcopy(rnd.distillation.predictor.state_dict())
    rollout = make_rollout()  # of 15 steps
    for _ in range(2):
        assert not rnd.ready
        rewarded = rnd.reward(rollout)
        assert not rewarded.bonus.any()
        assert rnd.update(rollout, rewarded) == {}
    assert rnd.ready
    assert all(torch.equal(before[name], value) for name, value in rnd.distillation.predictor.state_dict().items())
    assert rnd.reward(rollout).bonus.all()
    assert rnd.update(rollout, rnd.reward(rollout))
