"""A pool of games: given actions from given starts, whoever plays them and however they are gone back to."""

import zlib
from typing import Any

import numpy as np
import pytest

from coex.envs.atari import ROMS
from coex.envs.game_config import GameConfig
from coex.envs.pool import GamePool, Plan, Played, Start

VIEWS = {"grey84": (84, 84), "ram": (128,)}
GAME = GameConfig()


def make(num_workers: int = 0, game: str = "MontezumaRevenge", config: GameConfig = GAME, **shapes: Any) -> GamePool:
    views = shapes or VIEWS
    return GamePool(
        game, config, num_slots=3, num_steps=60, num_workers=num_workers, views=views, restores=game in ROMS
    )


def draw(length: int, seed: int, num_actions: int = 18) -> bytes:
    return np.random.default_rng(seed).integers(num_actions, size=length).astype(np.uint8).tobytes()


def look(pool: GamePool, slot: int, played: Played) -> list[int]:
    return [zlib.crc32(pool.views["ram"][slot, t + 1].tobytes()) for t in range(len(played))]


def test_it_plays_the_same_with_workers_and_without() -> None:
    plans = [Plan(slot, draw(60, slot), Start(slot + 1)) for slot in range(3)]
    results = []
    for num_workers in (0, 2):
        with make(num_workers) as pool:
            played = pool.play(plans)
            results.append(
                [(look(pool, p.slot, q), q.rewards.tolist(), q.steps) for p, q in zip(plans, played, strict=True)]
            )
            assert len(pool.action_names) == 18
            each = [(look(pool, p.slot, q), q.steps) for p, q in zip(plans, pool.play_each(plans), strict=True)]
            assert each == [(seen, steps) for seen, _, steps in results[-1]]
            assert all(pool.fetch([(slot, 2) for slot in range(3)]))
    assert results[0] == results[1]


def test_a_saved_game_and_its_actions_lead_to_the_same_place() -> None:
    """Restored or replayed, in another slot, after other games were played there: what follows is the same."""
    with make() as pool:
        first, then = draw(30, 1), draw(30, 2)
        [whole] = pool.play([Plan(0, first + then, Start(7))])
        expected = look(pool, 0, whole)[30:]
        [saved] = pool.fetch([(0, 30)])
        pool.play([Plan(slot, draw(50, 3 + slot), Start(2)) for slot in range(3)])
        [restored] = pool.play([Plan(1, then, Start(7, first, saved))])
        assert look(pool, 1, restored) == expected
        [replayed] = pool.play([Plan(2, then, Start(7, first))])
        assert look(pool, 2, replayed) == expected
        np.testing.assert_array_equal(restored.rewards, whole.rewards[30:])
        assert (restored.steps, replayed.steps) == (len(restored), len(replayed) + 30)


def test_a_slot_goes_on_where_it_stands() -> None:
    with make() as pool:
        actions = draw(30, 1) + draw(30, 2)
        [whole] = pool.play([Plan(0, actions, Start(3))])
        expected = look(pool, 0, whole)
        pool.play([Plan(1, actions[:45], Start(3))])
        [rest] = pool.play([Plan(1, actions[45:])])
        assert look(pool, 1, rest) == expected[45:] != []
        [saved] = pool.fetch([(1, 60)])
        assert saved


def test_play_ends_with_the_life() -> None:
    with make() as pool:
        [played] = pool.play([Plan(0, b"\x03" * 60, Start(1))])  # off the ledge
        assert played.is_lost
        assert not played.is_over
        assert len(played) < 60
        assert played.kept == played.playable == len(played) - 1
        [saved] = pool.fetch([(0, len(played))])  # the next life can be gone back to
        [again] = pool.play([Plan(0, bytes(5))])
        expected = look(pool, 0, again)
        [restored] = pool.play([Plan(1, bytes(5), Start(1, b"\x03" * len(played), saved))])
        assert look(pool, 1, restored) == expected


def test_an_end_with_a_reward_is_no_loss() -> None:
    with make(game="gym:MiniGrid-Empty-5x5-v0", config=GameConfig(frame_skip=1, max_noops=0), grey84=(84, 84)) as pool:
        to_goal = bytes([2, 2, 1, 2, 2])
        [played, cut] = pool.play([Plan(0, to_goal + bytes(5), Start(0)), Plan(1, bytes(60), Start(0))])
        assert (len(played), played.is_lost, played.is_over) == (5, False, True)
        assert (played.kept, played.playable) == (5, 4)
        assert played.rewards[-1] > 0.9
        assert (cut.is_lost, cut.is_over) == (False, False)
        [end] = pool.play([Plan(1, bytes(60))])  # 100 steps are the limit
        assert (len(end), end.is_lost, end.is_over) == (40, True, True)


@pytest.mark.parametrize("games", [list(ROMS)[part::4] for part in range(4)])
def test_every_game_begins_and_goes_on_the_same_whatever_was_played_before(games: list[str]) -> None:
    """A reset alone leaves traces in 28 games, and a restore without one would send Q*bert another way."""
    for name in games:
        with GamePool(name, GAME, num_slots=2, num_steps=30, num_workers=0, views={"ram": (128,)}) as pool:
            actions, others = draw(24, 1, len(pool.action_names)), draw(30, 2, len(pool.action_names))
            [whole] = pool.play([Plan(0, actions, Start(21))])
            expected = look(pool, 0, whole)
            half = len(whole) // 2
            [saved] = pool.fetch([(0, half)])
            for slot in (0, 1):
                pool.play([Plan(slot, others, Start(7))])
                pool.play([Plan(slot, actions, Start(21))])
                assert look(pool, slot, whole) == expected, name
                pool.play([Plan(slot, others, Start(9 + slot))])
                pool.play([Plan(slot, actions[half:], Start(21, actions[:half], saved))])
                assert look(pool, slot, whole)[: len(whole) - half] == expected[half:], name


def test_the_beginning_of_a_life_is_saved_whatever_else_is() -> None:
    with make() as pool:
        [played] = pool.play([Plan(0, b"\x03" * 60, Start(1), save_every=7)])
        assert played.is_lost
        assert len(played) % 7
        [saved] = pool.fetch([(0, len(played))])
        assert saved


def test_a_pool_that_goes_back_by_replay_keeps_no_saved_games() -> None:
    with GamePool(
        "MontezumaRevenge", GAME, num_slots=1, num_steps=9, num_workers=0, views=VIEWS, restores=False
    ) as pool:
        pool.play([Plan(0, draw(5, 1), Start(1))])
        assert pool.fetch([(0, 3), (0, 5)]) == [b"", b""]
