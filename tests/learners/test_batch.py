"""Rewards as the learner gets them, and transitions as minibatches."""

import torch

from coex.config.learners import RewardConfig
from coex.learners.batch import LargestReward, make_batch, make_rewards


def test_rewards_are_clipped_and_mixed() -> None:
    rewards, bonus = torch.tensor([[400.0, -3.0, 0.5]]), torch.tensor([[1.0, 0.5, 0.1]])
    weighted = make_rewards(rewards, bonus, RewardConfig(extrinsic_weight=2.0, bonus_weight=10.0))
    torch.testing.assert_close(weighted.extrinsic, torch.tensor([[2.0, -2.0, 1.0]]))
    torch.testing.assert_close(weighted.mixed, torch.tensor([[12.0, 3.0, 2.0]]))
    assert make_rewards(rewards, None, RewardConfig(clip=0.0)).mixed.tolist() == rewards.tolist()


def test_in_units_of_the_largest_so_far_the_scale_of_rewards_does_not_matter() -> None:
    config = RewardConfig(extrinsic_weight=2.0, bonus_weight=0.1, clip=0.0, unit="largest")
    nothing, some, more = torch.zeros(1, 2), torch.tensor([[0.5, -0.25]]), torch.tensor([[0.25, -2.0]])
    for scale in (2.0**-10, 1.0, 2.0**10):
        largest, bonus = LargestReward(), torch.ones(1, 2)
        mixed = [make_rewards(scale * rewards, bonus, config, largest).mixed for rewards in (nothing, some, more, some)]
        expected = [[0.1, 0.1], [2.1, -0.9], [0.35, -1.9], [0.6, -0.15]]
        torch.testing.assert_close(torch.cat(mixed), torch.tensor(expected))
        assert largest.size == 2 * scale


def test_clipped_rewards_of_whole_numbers_are_the_same_in_either_unit() -> None:
    rewards = torch.tensor([[400.0, -3.0, 0.0, 1.0]])
    one, largest = (RewardConfig(unit=unit) for unit in ("one", "largest"))
    assert torch.equal(make_rewards(rewards, None, one).mixed, make_rewards(rewards, None, largest).mixed)


def test_a_batch_is_the_rollout_in_time_major_order_without_copies_of_its_pictures(make_rollout) -> None:  # type: ignore[no-untyped-def]
    rollout = make_rollout(steps=4, envs=3)
    returns = torch.arange(24.0).view(4, 3, 2)
    batch = make_batch(rollout, returns, advantages=torch.arange(12.0).view(4, 3))
    assert batch.observations.data_ptr() == rollout.views["policy"].data_ptr()
    some = batch.take(torch.tensor([7, 0]))  # (t, n) = (2, 1) and (0, 0)
    assert torch.equal(some.observations[0], rollout.views["policy"][2, 1])
    assert some.actions.tolist() == [rollout.actions[2, 1], rollout.actions[0, 0]]
    assert some.log_probs.tolist() == [rollout.log_probs[2, 1], rollout.log_probs[0, 0]]
    assert some.returns.tolist() == [[14.0, 15.0], [0.0, 1.0]]
    assert some.advantages.tolist() == [7.0, 0.0]
