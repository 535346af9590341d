"""NovelD: rising novelty, once an episode."""

import numpy as np
import pytest
import torch

from coex.bonuses.simhash import VIEW as HASHED_VIEW


@pytest.fixture
def noveld(new_bonus):
    return new_bonus("noveld", predictor={"warmup": 0})


def first_by_hand(rollouts):
    """Which pictures are new to their episodes, by comparing them whole."""
    seen, found = None, []
    for rollout in rollouts:
        views = rollout.views[HASHED_VIEW].numpy()
        finals = {tuple(place): index for index, place in enumerate(rollout.final_index.tolist())}
        steps, envs = rollout.actions.shape
        seen = seen or [[views[0, n].tobytes()] for n in range(envs)]
        first = np.zeros((steps, envs), bool)
        for n in range(envs):
            for t in range(steps):
                ended = finals.get((t, n))
                reached = views[t + 1, n] if ended is None else rollout.final_views[HASHED_VIEW][ended].numpy()
                first[t, n] = reached.tobytes() not in seen[n]
                seen[n].append(reached.tobytes())
                if ended is not None:
                    seen[n] = [views[t + 1, n].tobytes()]
        found.append(first)
    return found


def test_a_picture_earns_once_an_episode(noveld, make_rollout) -> None:
    rollouts = [make_rollout(seed, pictures=6) for seed in range(4)]
    expected = first_by_hand(rollouts)
    found = [noveld.first_visits(rollout) for rollout in rollouts]
    np.testing.assert_array_equal(found, expected)
    assert np.any(expected[1:])
    assert not np.all(expected)
    noveld.forget_episodes()
    np.testing.assert_array_equal(noveld.first_visits(rollouts[0]), expected[0])


def test_it_pays_the_rise_of_novelty_above_half_of_the_former(noveld, make_rollout) -> None:
    rollout = make_rollout(4)
    distillation = noveld.distillation

    def novelty(frames):
        inputs = distillation._normalised(frames[..., -1].flatten(0, -3))
        difference = (distillation.predictor(inputs) - distillation.target(inputs)).detach().numpy()
        return np.linalg.norm(difference, axis=-1).reshape(rollout.actions.shape)

    rise = novelty(rollout.next_view("policy")) - 0.5 * novelty(rollout.views["policy"][:-1])
    expected = np.maximum(rise, 0) * first_by_hand([rollout])[0]
    found = noveld.reward(rollout).bonus
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert found.any()


def test_standing_still_earns_nothing(noveld, make_rollout) -> None:
    rollout = make_rollout(pictures=1)
    assert not noveld.reward(rollout).bonus.any()
    assert torch.isfinite(noveld.reward(rollout).bonus).all()
