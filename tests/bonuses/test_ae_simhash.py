"""The autoencoder's code, its losses and what is counted."""

import copy
import math

import pytest
import torch

from coex.bonuses.ae_simhash import Autoencoder, code_penalty, majorities, reconstruction_loss

SMALL = {"channels": 4, "code": 64, "pool": 100, "train_every": 1_000}


def test_its_shapes_are_the_papers() -> None:
    model = Autoencoder(96, 512)
    convs = [tuple(layer.weight.shape) for layer in model.encoder if isinstance(layer, torch.nn.Conv2d)]
    assert convs == [(96, 1, 6, 6), (96, 96, 6, 6), (96, 96, 6, 6)]
    code = model.eval().encode(torch.zeros((2, 52, 52), dtype=torch.uint8))
    assert code.shape == (2, 512)
    assert Autoencoder(4, 64).decode(torch.zeros(2, 64)).shape == (2, 64, 52, 52)


def test_a_binary_code_has_no_penalty_and_halves_a_quarter() -> None:
    assert code_penalty(torch.tensor([[0.0, 1.0, 1.0]])) == 0
    assert code_penalty(torch.full((2, 8), 0.5)) == 0.25


def test_uniform_levels_cost_log_64_and_sure_ones_what_smoothing_leaves() -> None:
    levels = torch.randint(0, 64, (2, 52, 52), generator=torch.Generator().manual_seed(0))
    assert reconstruction_loss(torch.zeros(2, 64, 52, 52), levels).item() == pytest.approx(math.log(64))
    sure = torch.nn.functional.one_hot(levels, 64).permute(0, 3, 1, 2) * 20.0
    smoothed = torch.full((64,), 0.003)
    smoothed[0] += 1
    log_probs = torch.tensor([20.0] + [0.0] * 63).log_softmax(0)
    expected = -(smoothed / smoothed.sum() * log_probs).sum().item()
    assert reconstruction_loss(sure, levels).item() == pytest.approx(expected, rel=1e-4)


def test_a_bit_is_the_majority_of_its_group_and_a_tie_is_0() -> None:
    code = torch.tensor([[0.9] * 5 + [0.1] * 3 + [0.9] * 4 + [0.1] * 4 + [0.2] * 7 + [0.8]])
    assert majorities(code, 3).tolist() == [[True, False, False]]


def test_a_rollout_is_counted_whole_before_it_is_paid(new_bonus, make_rollout) -> None:
    bonus, rollout = new_bonus("ae-simhash", **SMALL), make_rollout(pictures=1)
    for n in (1, 2, 3):
        assert bonus.reward(rollout).bonus.unique().tolist() == pytest.approx([(n * 15) ** -0.5])


def test_a_key_does_not_depend_on_its_batch_or_on_noise(new_bonus, make_rollout) -> None:
    bonus = new_bonus("ae-simhash", **SMALL)
    pictures = make_rollout().next_view("grey52").flatten(0, 1)
    together = bonus.hash(pictures)
    assert (together == bonus.hash(pictures)).all()
    assert all((bonus.hash(picture[None]) == key).all() for picture, key in zip(pictures, together, strict=True))


def test_it_trains_when_its_time_has_come_and_learns(new_bonus, make_rollout) -> None:
    bonus = new_bonus("ae-simhash", **{**SMALL, "train_every": 30, "block": 10, "max_blocks": 1})
    before = copy.deepcopy(bonus.model.state_dict())
    trained = [bonus.update(make_rollout(seed), bonus.reward(make_rollout(seed))) for seed in range(6)]  # of 15 steps
    assert [bool(metrics) for metrics in trained] == [False, True] * 3
    assert not torch.equal(before["bias"], bonus.model.bias)
    assert trained[-1]["autoencoder/loss"] < trained[1]["autoencoder/loss"]


def test_the_pool_keeps_the_newest(new_bonus, make_rollout) -> None:
    bonus = new_bonus("ae-simhash", **{**SMALL, "pool": 20})
    rollouts = [make_rollout(seed) for seed in range(3)]
    for rollout in rollouts:
        bonus.update(rollout, bonus.reward(rollout))
    newest = torch.cat([rollout.next_view("grey52").flatten(0, 1) for rollout in rollouts])[-20:]
    order = (torch.arange(25, 45)) % 20
    assert torch.equal(bonus._pool[order], newest)


def test_training_ends_without_gains(new_bonus, make_rollout, monkeypatch) -> None:
    bonus = new_bonus("ae-simhash", **{**SMALL, "train_every": 15, "block": 1, "patience": 3, "max_blocks": 0})
    losses = iter([3.0, 2.0, 2.0, 1.0, 1.0, 0.99995])
    monkeypatch.setattr(bonus, "_step", lambda: (next(losses), 0.0))
    assert bonus.update(make_rollout(), bonus.reward(make_rollout()))["autoencoder/blocks"] == 6
