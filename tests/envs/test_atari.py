"""One Atari game: skipping, no-ops, stickiness, ends of episodes, and exact states in a fresh process."""

import itertools
import json
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from ale_py import Action, ALEInterface, roms

from coex.envs import ROMS
from coex.envs.atari import TWO_PLAYER_ROMS, AtariGame
from coex.envs.game_config import GameConfig
from coex.errors import UsageError
from coex.results.published import GAMES
from tests.conftest import VIEW_SHAPES

QUIET = GameConfig(max_noops=0)
ROOT = Path(__file__).parent.parent.parent


def make(game: str = "Freeway", config: GameConfig = QUIET, seed: int = 0) -> AtariGame:
    made = AtariGame(game, config, np.random.SeedSequence(seed))
    made.reset()
    return made


def play(game: AtariGame, steps: int, seed: int) -> list[tuple[float, bool, int]]:
    """Reward, end and a fingerprint of the picture after each of `steps` random steps."""
    generator = np.random.default_rng(seed)
    views = {name: np.zeros(VIEW_SHAPES[name], np.uint8) for name in ("rgb160", "ram")}
    trace = []
    for action in generator.integers(len(game.action_names), size=steps):
        reward, terminated, truncated = game.step(int(action))
        if terminated or truncated:
            game.reset()
        game.paint(views, fresh=terminated or truncated)
        trace.append((reward, terminated, zlib.crc32(views["rgb160"].tobytes() + views["ram"].tobytes())))
    return trace


def test_the_action_set_is_minimal() -> None:
    assert make("Freeway").action_names == ["NOOP", "UP", "DOWN"]
    assert len(make("MontezumaRevenge").action_names) == 18


def test_a_step_is_four_frames_and_shows_the_brighter_of_the_last_two() -> None:
    skipping, single = make(), make(config=GameConfig(frame_skip=1, max_noops=0))
    reward = sum(single.step(1)[0] for _ in range(3))
    third = single.rgb()
    reward += single.step(1)[0]
    assert skipping.step(1) == (reward, False, False)
    np.testing.assert_array_equal(skipping.rgb(), np.maximum(third, single.rgb()))


def episode_lengths(game: AtariGame, episodes: int) -> list[int]:
    lengths = []
    for _ in range(episodes):
        game.reset()
        lengths.append(next(step for step in range(1, 100) if game.step(0)[2]))
    return lengths


def test_staggered_environments_end_their_first_episodes_apart_and_no_other() -> None:
    config = GameConfig(max_noops=0, max_episode_frames=40, stagger=20)
    lengths = [episode_lengths(make(config=config, seed=seed), 3) for seed in range(40)]
    assert {first for first, *_ in lengths} == {1, 2, 3, 4, 5}
    assert all(rest == [10, 10] for _, *rest in lengths)


def test_a_staggered_first_episode_is_restored_as_it_was() -> None:
    config = GameConfig(max_noops=0, max_episode_frames=80, stagger=72)
    games = [make(config=config, seed=seed) for seed in range(2)]
    left = [next(step for step in range(1, 100) if game.step(0)[2]) for game in games]
    assert left[0] != left[1]
    fresh = [make(config=config, seed=seed) for seed in range(2)]
    fresh[1].load_state_dict(fresh[0].state_dict())
    assert next(step for step in range(1, 100) if fresh[1].step(0)[2]) == left[0]


def test_noops_are_from_1_to_30_frames() -> None:
    game = make(config=GameConfig())
    frames = []
    for _ in range(300):
        game.reset()
        frames.append(game._episode_frames)
    assert (min(frames), max(frames)) == (1, 30)


def test_noops_press_no_button() -> None:
    game, quiet = make("Backgammon", GameConfig()), make("Backgammon")
    assert game.action_names[0] == "FIRE"  # in most games NOOP
    for _ in range(game._episode_frames):
        quiet._ale.act(Action.NOOP)
    np.testing.assert_array_equal(game._ale.getRAM(), quiet._ale.getRAM())


def test_an_episode_is_the_whole_game_not_a_life() -> None:
    game, lives = make("MontezumaRevenge"), set()
    for _ in range(3_000):
        _, terminated, truncated = game.step(int(game.generator.integers(18)))
        lives.add(game._ale.lives())
        if terminated:
            break
    assert terminated
    assert not truncated
    assert len(lives) >= 5


def test_a_game_that_ends_within_a_step_shows_its_end_and_no_more() -> None:
    """Four frames a step and one frame a step see the same game end, with the same score and the same picture."""
    skipping, single = (make("MontezumaRevenge", GameConfig(frame_skip=skip, max_noops=0)) for skip in (4, 1))
    actions = np.random.default_rng(1).integers(18, size=3_000).tolist()
    scores, ends = [0.0, 0.0], [False, False]
    for action in actions:
        reward, ends[0], _ = skipping.step(action)
        scores[0] += reward
        frames = 0
        while frames < 4 and not ends[1]:
            reward, ends[1], _ = single.step(action)
            scores[1] += reward
            frames += 1
        if ends[0] or ends[1]:
            break
    assert ends == [True, True]
    assert scores[0] == scores[1]
    np.testing.assert_array_equal(skipping._painter.screens[1], single._painter.screens[1])


def test_long_episodes_are_truncated_not_terminated() -> None:
    game = make(config=GameConfig(max_noops=0, max_episode_frames=42))
    ends = [game.step(0)[1:] for _ in range(10)]
    assert ends[-1] == (False, True)  # 40 frames: another four would be too many
    assert not any(truncated for _, truncated in ends[:-1])


def test_sticky_actions_repeat_the_last_one_as_often_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make(config=GameConfig(sticky=0.25, max_noops=0))
    taken: list[int] = []
    act = game._act
    monkeypatch.setattr(game, "_act", lambda action: (act(action), taken.append(game._last_action))[0])
    for step in range(2_000):
        game.step(1 + step % 2)
    wanted = [1 + step % 2 for step in range(2_000) for _ in range(4)]
    # The first frame of a step repeats the other action with chance 1/4; the second with 1/16, and so on.
    late = [np.mean([taken[i] != wanted[i] for i in range(k, 8_000, 4)]) for k in range(4)]
    np.testing.assert_allclose(late, [1 / 4, 1 / 16, 1 / 64, 1 / 256], atol=0.03)


@pytest.mark.parametrize("setting", [{"sticky": 1.0}, {"frame_skip": 0}, {"max_noops": -1}, {"max_episode_frames": 3}])
def test_impossible_settings_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        GameConfig(**setting)  # type: ignore[arg-type]


RESTORE = """
import json, sys
from tests.envs.test_atari import GAMES, load_state, make, play
from coex.envs.game_config import GameConfig
for game in GAMES:
    for sticky in (0.0, 0.25):
        restored = make(game, GameConfig(sticky=sticky), seed=99)
        play(restored, 10, seed=3)  # another history
        restored.load_state_dict(load_state(f"{sys.argv[1]}/{game}-{sticky}.npz"))
        print(json.dumps(play(restored, 300, seed=2)))
"""


def save_state(state: dict[str, object], path: Path) -> None:
    rest = {key: value for key, value in state.items() if not isinstance(value, np.ndarray)}
    np.savez(path, emulator=state["emulator"], screens=state["screens"], rest=json.dumps(rest))


def load_state(path: str) -> dict[str, object]:
    with np.load(path, allow_pickle=False) as saved:
        return {"emulator": saved["emulator"], "screens": saved["screens"], **json.loads(str(saved["rest"]))}


def test_restored_games_go_on_identically_in_a_fresh_process(tmp_path: Path) -> None:
    """One process for all games, with sticky actions and without."""
    expected = {}
    for case in itertools.product(GAMES, (0.0, 0.25)):
        game, sticky = case
        original = make(game, GameConfig(sticky=sticky), seed=7)
        play(original, 150, seed=1)
        save_state(original.state_dict(), tmp_path / f"{game}-{sticky}.npz")
        expected[case] = play(original, 300, seed=2)  # 1,200 frames, in most games across an episode's end
        assert len({picture for _, _, picture in expected[case]}) > 100, case
    child = subprocess.run(
        [sys.executable, "-c", RESTORE, str(tmp_path)], check=True, capture_output=True, text=True, cwd=ROOT
    )
    for (case, steps), line in zip(expected.items(), child.stdout.splitlines(), strict=True):
        assert json.loads(line) == [list(step) for step in steps], case


@pytest.mark.parametrize("history", [0, 10])
@pytest.mark.parametrize("game", GAMES)
def test_an_episode_saved_before_its_first_frame_goes_on_identically(game: str, history: int) -> None:
    config = GameConfig(max_noops=0)
    original, other = make(game, config, seed=7), make(game, config, seed=99)
    play(original, history, seed=1)
    original.reset()
    play(other, 10, seed=3)
    other.load_state_dict(original.state_dict())
    assert play(other, 100, seed=2) == play(original, 100, seed=2)


@pytest.mark.parametrize("game", ROMS)
def test_every_game_loads_plays_and_goes_on_identically(game: str) -> None:
    config = GameConfig(sticky=0.25)
    original, other = make(game, config, seed=7), make(game, config, seed=99)
    play(original, 8, seed=1)
    other.load_state_dict(original.state_dict())
    expected = play(original, 12, seed=2)
    assert play(other, 12, seed=2) == expected
    assert len({picture for _, _, picture in expected}) > 1


def test_the_other_cartridges_are_those_that_the_emulator_refuses() -> None:
    paths = {rom: roms.get_rom_path(rom) for rom in roms.get_all_rom_ids()}
    refused = [rom for rom, path in paths.items() if path and not ALEInterface.isSupportedROM(path)]
    assert sorted(refused) == sorted(TWO_PLAYER_ROMS)
