"""The elliptical bonus against its closed forms and against explicit inverses."""

import numpy as np
import pytest
import torch

from coex.bonuses.e3b import Ellipses

NO_ENDS = torch.zeros((0, 2), dtype=torch.int64)
RIDGE = 0.1


def pay(features, start=None):
    """(T,) bonuses of one environment's (T, d) features, its first picture being `start`."""
    features = torch.as_tensor(features, dtype=torch.float32)[:, None]
    left = torch.zeros_like(features) if start is None else torch.as_tensor(start).expand_as(features)
    return Ellipses(RIDGE).bonus(left, features, NO_ENDS, features[:0, 0])[:, 0].numpy()


def test_the_nth_visit_of_a_unit_feature_earns_one_over_lambda_plus_n_minus_one() -> None:
    unit = np.array([0.6, 0.8, 0.0], np.float32)
    n = np.arange(1, 31)
    np.testing.assert_allclose(pay(np.tile(unit, (30, 1))), 1 / (RIDGE + n - 1), rtol=1e-4)


def test_long_features_are_counted_to_the_end_of_a_long_episode() -> None:
    """In single precision, the bonus would stay where it is after 20 visits."""
    square = 100.0**2
    n = np.arange(1, 2_001)
    found = pay(np.tile(np.array([60.0, 80.0, 0.0]), (2_000, 1)))
    np.testing.assert_allclose(found, square / (RIDGE + square * (n - 1)), rtol=1e-4)


def test_orthogonal_features_earn_their_square_over_lambda() -> None:
    features = np.diag([1.0, 2.0, 3.0, 0.5])
    np.testing.assert_allclose(pay(features), np.diag(features) ** 2 / RIDGE, rtol=1e-5)


def test_the_episodes_first_picture_counts_and_earns_nothing() -> None:
    start = torch.tensor([1.0, 0.0])
    np.testing.assert_allclose(pay([[1.0, 0.0], [0.0, 1.0]], start), [1 / (RIDGE + 1), 1 / RIDGE], rtol=1e-5)


def test_it_is_the_explicit_inverses_quadratic_form_also_across_episodes_and_rollouts() -> None:
    generator = np.random.default_rng(0)
    ellipses, envs, size = Ellipses(RIDGE), 3, 5
    covariance = None
    for _ in range(3):
        left, reached = generator.normal(size=(2, 7, envs, size))
        first = generator.normal(size=(2, size))
        ends = torch.tensor([[2, 1], [6, 0]])
        if covariance is None:
            covariance = [RIDGE * np.eye(size) + np.outer(left[0, n], left[0, n]) for n in range(envs)]
        expected = np.zeros((7, envs))
        for t in range(7):
            for n in range(envs):
                expected[t, n] = reached[t, n] @ np.linalg.solve(covariance[n], reached[t, n])
                covariance[n] = covariance[n] + np.outer(reached[t, n], reached[t, n])
                for k, (end_t, end_n) in enumerate(ends.tolist()):
                    if (t, n) == (end_t, end_n):
                        covariance[n] = RIDGE * np.eye(size) + np.outer(first[k], first[k])
        found = ellipses.bonus(
            torch.from_numpy(left).float(), torch.from_numpy(reached).float(), ends, torch.from_numpy(first).float()
        )
        np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_a_whole_rollout_in_blocks_is_the_same_as_at_once(new_bonus, make_rollout) -> None:
    blocks, whole = (new_bonus("e3b", features=16, minibatch=size) for size in (3, 1_000))
    for seed in range(3):
        rollout = make_rollout(seed)
        torch.testing.assert_close(blocks.reward(rollout).bonus, whole.reward(rollout).bonus, rtol=1e-3, atol=1e-4)


def test_its_features_learn_to_tell_the_action(new_bonus, make_rollout) -> None:
    bonus, rollout = new_bonus("e3b", features=32, learning_rate=1e-3), make_rollout()
    losses = [bonus.update(rollout, bonus.reward(rollout))["e3b/loss_inverse"] for _ in range(40)]
    assert losses[-1] < 0.7 * losses[0]


def test_the_bonus_is_in_units_of_its_deviation(new_bonus, make_rollout) -> None:
    plain, scaled = (new_bonus("e3b", features=16, normalise=normalise) for normalise in (False, True))
    bonus = plain.reward(make_rollout()).bonus
    assert scaled.reward(make_rollout()).bonus.numpy() == pytest.approx(bonus.numpy() / bonus.numpy().std(), rel=1e-2)
