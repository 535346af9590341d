"""Large rollouts in blocks: nothing is lost or seen twice, and the features are those of one pass."""

import math

import pytest
import torch

from coex.config.bonuses import ADMConfig
from coex.method.adm import AttentiveDynamicsModel, forward_rollout
from coex.method.locator import ADMLocator, split_into_blocks


def make_locator(**settings: float) -> ADMLocator:
    torch.manual_seed(0)
    return ADMLocator(AttentiveDynamicsModel(6, ADMConfig(**settings)), torch.device("cpu"))


@pytest.mark.parametrize(
    ("steps", "envs", "minibatch", "shapes"),
    [
        (5, 16, 128, {(5, 16)}),  # A2C's: one block
        (8, 16, 128, {(8, 16)}),
        (128, 8, 128, {(16, 8)}),  # the default PPO's
        (24, 40, 128, {(8, 16), (8, 8)}),  # many environments, as in the paper's PPO
        (5, 3, 4, {(4, 1), (1, 1)}),
        (3, 2, 1, {(1, 1)}),
    ],
)
def test_every_transition_is_in_one_block(steps, envs, minibatch, shapes, make_rollout):
    rollout = make_rollout(steps=1, envs=1)
    rollout.actions = rollout.log_probs = torch.arange(steps * envs).view(steps, envs)
    rollout.views["rgb160"] = torch.arange((steps + 1) * envs).view(steps + 1, envs)  # stand for frames
    rollout.final_index = torch.tensor([(steps - 1, 0), (0, envs - 1)])
    rollout.final_views["rgb160"] = torch.tensor([7, 8])
    blocks = list(split_into_blocks(rollout, "rgb160", minibatch))
    assert {tuple(block.actions.shape) for block in blocks} == shapes
    assert sorted(torch.cat([block.actions.flatten() for block in blocks]).tolist()) == list(range(steps * envs))
    for block in blocks:
        assert torch.equal(block.frames[:-1], block.actions)
        assert torch.equal(block.frames[1:], block.actions + envs)
    finals = [(block.actions[t, n].item(), f) for block in blocks
              for (t, n), f in zip(block.final_index.tolist(), block.final_frames.tolist(), strict=True)]  # fmt: skip
    assert sorted(finals) == sorted([((steps - 1) * envs, 7), (envs - 1, 8)])


def test_blocks_have_the_features_of_one_pass(make_rollout):
    locator, rollout = make_locator(), make_rollout(steps=7, envs=4)
    assert len(rollout.final_index) > 2
    whole = forward_rollout(
        locator.model, rollout.views["rgb160"], rollout.final_index, rollout.final_views["rgb160"]
    ).attention
    rollout.log_probs = torch.arange(28).view(7, 4)  # tells where a block's transitions belong
    for block in split_into_blocks(rollout, "rgb160", 6):
        part = locator._forward(block).attention
        torch.testing.assert_close(part.flatten(0, 1), whole.flatten(0, 1)[block.log_probs.flatten()])


def test_a_large_rollout_is_located_as_a_small_one_is(make_rollout):
    small, large = make_locator(), make_locator(minibatch=5)
    for seed in range(4):
        rollout = make_rollout(seed, steps=7, envs=4)
        assert (small.locate(rollout).cells == large.locate(rollout).cells).all()


def test_it_takes_a_step_for_each_block_of_each_epoch(make_rollout):
    locator, rollout = make_locator(minibatch=6, epochs=3), make_rollout(steps=4, envs=3)
    locator.fit(rollout, locator.locate(rollout).features)
    steps = locator.state_dict()["optimizer"]["state"][0]["step"]
    assert steps == 3 * len(list(split_into_blocks(rollout, "rgb160", 6))) == 3 * 3


def test_it_learns_nothing_from_actions_that_were_in_no_doubt(make_rollout):
    locator, rollout = make_locator(minibatch=6), make_rollout(steps=4, envs=3)
    before = [parameter.clone() for parameter in locator.model.parameters()]
    rollout.log_probs = torch.full((4, 3), -0.001)
    assert locator.fit(rollout, locator.locate(rollout).features)["adm/learns"] == 0
    assert all(map(torch.equal, before, locator.model.parameters()))
    rollout.log_probs[:, 1] = -1.0  # one of three blocks
    assert locator.fit(rollout, locator.locate(rollout).features)["adm/learns"] == pytest.approx(1 / 3)
    assert locator.state_dict()["optimizer"]["state"][0]["step"] == 1


def test_the_paper_learns_from_all_actions(make_rollout):
    locator, rollout = make_locator(min_policy_entropy=0.0), make_rollout()
    rollout.log_probs = torch.zeros_like(rollout.log_probs)
    assert locator.fit(rollout, locator.locate(rollout).features)["adm/learns"] == 1


def steps_until_found(accuracy: float, rollout_steps: int, **settings: float) -> int:
    locator = make_locator(**settings)
    steps = 0
    while not locator.has_found:
        locator._judge(accuracy, rollout_steps)
        steps += rollout_steps
    return steps


def test_the_player_is_found_once_actions_are_guessed_better_than_by_chance():
    """Of 6 actions chance guesses 1/6: 1/3 is twice that, and its running mean passes 1.5 after 5,000·ln 2 steps."""
    for rollout_steps in (80, 1_024):
        expected = 5_000 * math.log(2)
        assert steps_until_found(1 / 3, rollout_steps) == pytest.approx(expected, abs=1.1 * rollout_steps)
    assert steps_until_found(1 / 3, 80, found_at=1.9) > steps_until_found(1 / 3, 80)


def test_the_policy_does_not_wait_for_ever():
    assert steps_until_found(1 / 6, 80) == pytest.approx(75_000, abs=80)
    assert steps_until_found(1 / 6, 80, found_by=400) == 400
    assert make_locator(found_by=0).has_found


def test_a_player_that_was_found_stays_found(make_rollout):
    locator = make_locator(found_by=10)
    locator._judge(0.0, 10)
    locator._judge(0.0, 10)
    other = make_locator(found_by=10)
    other.load_state_dict(locator.state_dict())
    assert locator.has_found
    assert other.has_found
