"""The parts that bonuses share, against closed forms and NumPy."""

import numpy as np
import pytest
import torch

from coex.bonuses.parts import Fit, Moments, RewardFilter, blocks, encode_pairs, seeded
from coex.core.optim import NonFiniteError


def test_moments_are_those_of_all_numbers_at_once() -> None:
    numbers = np.random.default_rng(0).normal(3.0, 2.0, (1_000, 4))
    moments = Moments((4,))
    for part in np.split(numbers, [1, 10, 700]):
        moments.update(torch.from_numpy(part))
    # The start (mean 0, variance 1) weighs 1e-4 of one number.
    total = 1_000 + 1e-4
    mean = numbers.sum(0) / total
    variance = ((numbers**2).sum(0) + 1e-4) / total - mean**2
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(moments.variance, variance, rtol=1e-10)
    np.testing.assert_allclose(moments.variance, numbers.var(0), rtol=1e-5)


def test_the_filter_of_a_constant_is_a_geometric_sum() -> None:
    sums = RewardFilter(0.9).sums(torch.full((20, 3), 2.0))
    expected = 2.0 * (1 - 0.9 ** np.arange(1, 21)) / (1 - 0.9)
    np.testing.assert_allclose(sums, np.repeat(expected[:, None], 3, 1), rtol=1e-12)


def test_two_rollouts_are_one_of_double_length() -> None:
    rewards = torch.rand((8, 3), generator=torch.Generator().manual_seed(0))
    halves, whole = RewardFilter(0.99), RewardFilter(0.99)
    halves.scaled(rewards[:4])
    last = halves.scaled(rewards[4:])
    together = whole.scaled(rewards)
    torch.testing.assert_close(last, together[4:])


def test_rewards_are_divided_by_the_deviation_of_the_sums_they_are_part_of() -> None:
    rewards = torch.rand((50, 8), generator=torch.Generator().manual_seed(1))
    sums, history = np.zeros(8), []
    for row in rewards.double().numpy():
        sums = 0.99 * sums + row
        history.append(sums)
    scaled = RewardFilter(0.99).scaled(rewards)
    np.testing.assert_allclose(scaled, rewards / np.std(history), rtol=1e-4)


def test_environments_may_be_in_any_order() -> None:
    rewards = torch.rand((6, 4), generator=torch.Generator().manual_seed(2))
    order = [2, 0, 3, 1]
    torch.testing.assert_close(RewardFilter(0.9).scaled(rewards)[:, order], RewardFilter(0.9).scaled(rewards[:, order]))


@pytest.mark.parametrize("minibatch", [1, 6, 7, 100])
def test_blocks_make_up_the_rollout_with_the_true_last_pictures(minibatch, make_rollout) -> None:
    rollout = make_rollout(4)
    assert len(rollout.final_index)  # else nothing is tested
    pairs = [
        encode_pairs(lambda frames: frames.flatten(1).float(), block) for block in blocks(rollout, "grey52", minibatch)
    ]
    left, reached = (torch.cat(part) for part in zip(*pairs, strict=True))
    assert torch.equal(left, rollout.views["grey52"][:-1].flatten(2).float())
    assert torch.equal(reached, rollout.next_view("grey52").flatten(2).float())
    assert sum(block.actions.numel() for block in blocks(rollout, "grey52", minibatch)) == rollout.num_transitions


def test_a_seed_of_ones_own_leaves_the_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with seeded(np.random.SeedSequence(0)):
        first = torch.rand(2)
    with seeded(np.random.SeedSequence(0)):
        assert torch.equal(torch.rand(2), first)
    assert torch.equal(torch.rand(2), expected)


def test_a_loss_that_is_no_number_is_refused_and_changes_nothing() -> None:
    network = torch.nn.Linear(2, 1)
    fit, before = Fit(network, 0.1), network.weight.detach().clone()
    with pytest.raises(NonFiniteError):
        fit.step(network(torch.full((1, 2), float("inf"))).sum())
    assert torch.equal(network.weight, before)
