"""Real games of the policy: which stretches are its own merit, and where a search for better begins."""

import numpy as np
import pytest

from coex.archive.games import RealGame, step_before
from coex.archive.lessons import Segment


def play(rewards: list[float], losses: list[int]) -> RealGame:
    """A game whose frame, cell and look before step t say t; its action is t too."""
    frames = [np.full((84, 84), max(t, 0), np.uint8) for t in range(-3, len(rewards) + 1)]
    seen = [(np.full(3, t), np.full(196, t, np.uint8)) for t in range(len(rewards) + 1)]
    game = RealGame(7, frames, seen)
    for t, reward in enumerate(rewards):
        game.actions.append(t)
        game.rewards.append(reward)
        if t in losses:
            game.lose()
    return game


def steps_of(segment: Segment) -> tuple[list[int], float]:
    steps = list(segment.actions)
    assert segment.cells[:, 0].tolist() == segment.prints[:, 0].tolist() == steps
    assert segment.frames[3:, 0, 0].tolist() == steps
    assert len(segment.frames) == len(steps) + 3
    return steps, segment.score


def test_own_stretches_lead_from_a_beginning_or_a_reward_to_the_next_reward() -> None:
    game = play([0, 0, 5, 0, 0, 0, 2, 0], losses=[4])
    assert [steps_of(segment) for segment in game.stretches(450)] == [([0, 1, 2], 0), ([5, 6], 5)]
    assert [steps_of(segment) for segment in game.stretches(2)] == [([5, 6], 5)]


def test_a_reward_paid_for_with_a_life_is_not_imitated() -> None:
    """Step 2 scores and dies, as does the last: what the next life does is its own."""
    game = play([0, 0, 5, 0, 1, 3], losses=[2, 5])
    assert [steps_of(segment) for segment in game.stretches(450)] == [([3, 4], 5)]
    assert game.failures == [(0, 2), (3, 5)]
    assert game.life_from == 6


@pytest.mark.parametrize("back", [0, 1, 3, 8, 110])
def test_a_search_begins_within_the_life_that_failed(back: int) -> None:
    for life_from in range(9):
        for at in range(life_from, life_from + 12):
            step = step_before((life_from, at), back)
            assert life_from <= step <= at
            assert step % 4 == 0 or step == life_from  # where games are saved
            assert at - step >= min(back, at - life_from)
