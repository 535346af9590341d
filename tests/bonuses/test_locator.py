"""Large rollouts in blocks: nothing is lost or seen twice, and the features are those of one pass."""

import pytest
import torch

from coex.bonuses.locator import ADMLocator, cut
from coex.representation.adm import ADMConfig, AttentiveDynamicsModel, forward_rollout


def make_locator(**settings: float) -> ADMLocator:
    torch.manual_seed(0)
    return ADMLocator(AttentiveDynamicsModel(6, ADMConfig(**settings)), torch.device("cpu"))


@pytest.mark.parametrize(
    ("steps", "envs", "minibatch", "shapes"),
    [
        (5, 16, 128, {(5, 16)}),  # A2C's: one block
        (8, 16, 128, {(8, 16)}),
        (128, 8, 128, {(16, 8)}),  # the laptop's PPO
        (24, 40, 128, {(8, 16), (8, 8)}),  # many environments, as in the paper's PPO
        (5, 3, 4, {(4, 1), (1, 1)}),
        (3, 2, 1, {(1, 1)}),
    ],
)
def test_every_transition_is_in_one_block(steps, envs, minibatch, shapes, make_rollout):
    rollout = make_rollout(steps=1, envs=1)
    rollout.actions = rollout.log_probs = torch.arange(steps * envs).view(steps, envs)
    rollout.views["adm"] = torch.arange((steps + 1) * envs).view(steps + 1, envs)  # stand for frames
    rollout.final_index = torch.tensor([(steps - 1, 0), (0, envs - 1)])
    rollout.final_views["adm"] = torch.tensor([7, 8])
    blocks = list(cut(rollout, minibatch))
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
        locator.model, rollout.views["adm"], rollout.final_index, rollout.final_views["adm"]
    ).attention
    rollout.log_probs = torch.arange(28).view(7, 4)  # tells where a block's transitions belong
    for block in cut(rollout, 6):
        part = locator._forward(block).attention
        torch.testing.assert_close(part.flatten(0, 1), whole.flatten(0, 1)[block.log_probs.flatten()])


def test_a_large_rollout_is_located_as_a_small_one_is(make_rollout):
    small, large = make_locator(), make_locator(minibatch=5)
    for seed in range(4):
        rollout = make_rollout(seed, steps=7, envs=4)
        assert (small.locate(rollout) == large.locate(rollout)).all()


def test_it_takes_a_step_for_each_block_of_each_epoch(make_rollout):
    locator, rollout = make_locator(minibatch=6, epochs=3), make_rollout(steps=4, envs=3)
    locator.locate(rollout)
    locator.fit(rollout)
    steps = locator.state_dict()["optimizer"]["state"][0]["step"]
    assert steps == 3 * len(list(cut(rollout, 6))) == 3 * 3


def test_it_learns_nothing_from_actions_that_were_in_no_doubt(make_rollout):
    locator, rollout = make_locator(minibatch=6), make_rollout(steps=4, envs=3)
    before = [parameter.clone() for parameter in locator.model.parameters()]
    rollout.log_probs = torch.full((4, 3), -0.001)
    locator.locate(rollout)
    assert locator.fit(rollout)["adm/learns"] == 0
    assert all(map(torch.equal, before, locator.model.parameters()))
    rollout.log_probs[:, 1] = -1.0  # one of three blocks
    locator.locate(rollout)
    assert locator.fit(rollout)["adm/learns"] == pytest.approx(1 / 3)
    assert locator.state_dict()["optimizer"]["state"][0]["step"] == 1


def test_the_paper_learns_from_all_actions(make_rollout):
    locator, rollout = make_locator(min_doubt=0.0), make_rollout()
    rollout.log_probs = torch.zeros_like(rollout.log_probs)
    locator.locate(rollout)
    assert locator.fit(rollout)["adm/learns"] == 1
