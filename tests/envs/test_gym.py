"""Gymnasium environments behind the same interface."""

import multiprocessing
import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from coex.envs import minigrid_picture
from coex.envs.atari import AtariGame
from coex.envs.game_config import GameConfig
from coex.envs.gym import GymGame
from coex.envs.processes import serve
from coex.envs.vector import SharedMemory
from coex.envs.views import ShrunkPictures, paint_picture
from coex.envs.worker import Assignment, Worker
from coex.errors import UsageError
from tests.conftest import VIEW_SHAPES

PLAIN = GameConfig(frame_skip=1, max_noops=0)


class Pictures(gymnasium.Env[np.ndarray, int]):
    """Shows its step number as a shade; actions start at 1."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space = spaces.Box(0, 255, (64, 48, 3), np.uint8)
    action_space = spaces.Discrete(2, start=1)

    def __init__(self, render_mode: str | None = None) -> None:
        self.actions_taken: list[int] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        self.steps = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.actions_taken.append(action)
        return self._observe(), float(action), False, self.steps == 9, {}

    def _observe(self) -> np.ndarray:
        return np.full((64, 48, 3), self.steps % 256, np.uint8)


class Blind(Pictures):
    observation_space = spaces.Box(0.0, 1.0, (4,), np.float32)  # type: ignore[assignment]


class Broken(Pictures):
    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        raise RuntimeError("the lever\nis stuck")


gymnasium.register("CoexPictures-v0", Pictures)
gymnasium.register("CoexBroken-v0", Broken)
gymnasium.register("CoexBlind-v0", Blind)


def make(env_id: str, config: GameConfig = PLAIN) -> GymGame:
    game = GymGame(env_id, config, np.random.SeedSequence(0))
    game.reset()
    return game


def test_an_image_observation_is_the_picture() -> None:
    game = make("CoexPictures-v0")
    views = {name: np.zeros(VIEW_SHAPES[name], np.uint8) for name in ("policy", "rgb160", "rgb84", "grey52")}
    game.paint(views, fresh=True)
    for _ in range(3):
        assert game.step(1)[0] == 2.0  # its actions are 1 and 2, ours 0 and 1
        game.paint(views, fresh=False)
    assert views["policy"][5, 5].tolist() == [0, 1, 2, 3]
    assert (views["rgb160"] == 3).all()
    assert (views["rgb84"] == 3).all()
    assert (views["grey52"] == 3).all()


@pytest.mark.parametrize("name", ["DoorKey-6x6", "Dynamic-Obstacles-6x6", "KeyCorridorS3R2", "MultiRoom-N2-S4"])
def test_minigrid_looks_as_if_drawn_anew(name: str) -> None:
    game = GymGame(f"MiniGrid-{name}-v0", PLAIN, np.random.SeedSequence(3))
    env = game._env.unwrapped
    rng = np.random.default_rng(0)
    game.reset()
    for step in range(300):
        # Empty tiles around the rooms are left out; doors, keys and goals lie within their walls.
        walls = np.array([getattr(thing, "type", None) == "wall" for thing in env.grid.grid])
        rows, columns = np.nonzero(walls.reshape(env.height, env.width))
        picture = game.rgb()
        tile = picture.shape[0] // (np.ptp(rows) + 1)
        top, left = rows.min() * tile, columns.min() * tile
        whole = env.grid.render(tile, env.agent_pos, env.agent_dir)
        np.testing.assert_array_equal(picture, whole[top:, left:][: picture.shape[0], : picture.shape[1]])
        assert picture.shape[1] == tile * (np.ptp(columns) + 1)
        _, terminated, truncated = game.step(int(rng.integers(len(game.action_names))))
        if terminated or truncated or step % 60 == 59:
            game.reset()
    game.close()


@pytest.mark.parametrize("most_bytes", [60_000, 64_000_000])
def test_minigrids_views_are_those_of_its_picture(most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ShrunkPictures(most_bytes)
    monkeypatch.setattr(minigrid_picture, "_SHRUNK", memory)
    shapes = {name: VIEW_SHAPES[name] for name in ("policy", "rgb84", "grey52")}
    rng = np.random.default_rng(0)
    for env_id in ("MiniGrid-MultiRoom-N2-S4-v0", "MiniGrid-Dynamic-Obstacles-6x6-v0"):
        game = make(env_id)
        views, expected = ({name: np.zeros(shape, np.uint8) for name, shape in shapes.items()} for _ in range(2))
        game.paint(views, fresh=True)
        paint_picture(expected, game.rgb(), fresh=True)
        for _ in range(200):
            _, terminated, truncated = game.step(int(rng.integers(len(game.action_names))))
            is_over = terminated or truncated
            if is_over:
                game.reset()
            game.paint(views, fresh=is_over)
            paint_picture(expected, game.rgb(), fresh=is_over)
            for name, view in views.items():
                np.testing.assert_array_equal(view, expected[name])
    assert sum(frame.nbytes for frame in memory._frames.values()) == memory._bytes <= most_bytes
    assert len(memory._frames) < 3 * 402  # some states were met again


def test_minigrid_is_rendered_without_the_lit_field_of_view() -> None:
    game = make("MiniGrid-Empty-5x5-v0")
    env = game._env.unwrapped
    env.highlight = False  # type: ignore[attr-defined]
    np.testing.assert_array_equal(game.rgb(), game._env.render())
    assert game.rgb().shape == (160, 160, 3)
    assert game.action_names[:3] == ["LEFT", "RIGHT", "FORWARD"]


def test_other_environments_are_rendered() -> None:
    game = make("FrozenLake-v1")
    assert game.rgb().ndim == 3
    assert game.rgb().shape[2] == 3


def test_time_limits_are_truncations() -> None:
    theirs = make("CoexPictures-v0")
    assert [theirs.step(0)[1:] for _ in range(9)][-1] == (False, True)
    ours = make("CoexPictures-v0", GameConfig(frame_skip=1, max_noops=0, max_episode_frames=5))
    assert [ours.step(0)[1:] for _ in range(5)][-2:] == [(False, False), (False, True)]


def test_sticky_actions_apply_to_its_steps() -> None:
    game = make("CoexPictures-v0", GameConfig(frame_skip=1, max_noops=0, sticky=0.5))
    wanted = [step % 2 for step in range(2_000)]
    for action in wanted:
        game.step(action)
    taken = game._env.unwrapped.actions_taken  # type: ignore[attr-defined]
    # Where the wanted action alternates, a repeated one is wrong every other time.
    assert np.mean([t != w + 1 for t, w in zip(taken, wanted, strict=True)]) == pytest.approx(1 / 3, abs=0.04)


def test_a_module_before_the_colon_is_imported_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = "gymnasium.envs.classic_control:CartPoleEnv"
    source = f"import gymnasium\ngymnasium.register('CoexNamed-v0', entry_point='{entry}')\n"
    (tmp_path / "coex_named.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert len(make("coex_named:CoexNamed-v0").action_names) == 2


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("Pendulum-v1", "only discrete ones"),
        ("CoexBlind-v0", "no RGB picture"),
        ("MiniGrid-DorKey-6x6-v0", "gym:MiniGrid-DoorKey-6x6-v0"),
        ("NoSuchThing-v0", "not a registered"),
        ("no_such_package:Thing-v0", "no_such_package"),
    ],
)
def test_what_cannot_be_used_is_said(env_id: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        make(env_id)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shown", [np.zeros((64, 48, 3)), np.zeros((64, 48), np.uint8), None])
def test_a_picture_that_is_none_is_said(shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the space had promised."""
    monkeypatch.setattr(Pictures, "_observe", lambda _: shown)
    with pytest.raises(UsageError, match=r"for a picture: it must be \(H, W, 3\) uint8"):
        make("CoexPictures-v0")


def test_an_environment_that_fails_is_one_line_with_its_place() -> None:
    ours, theirs = multiprocessing.Pipe()
    memory = SharedMemory.allocate(1, {"policy": (84, 84, 4)})
    assignment = Assignment("gym:CoexBroken-v0", PLAIN, 0, [np.random.SeedSequence(0)])
    for request in ("reset", "step"):
        ours.send((request, None))
    serve({theirs: slice(0, 1)}, lambda: Worker(assignment, memory.arrays()))
    assert [ours.recv()[0] for _ in range(2)] == ["ready", "done"]
    kind, error = ours.recv()
    assert kind == "failed"
    assert re.search(r"RuntimeError: the lever is stuck .*test_gym.py, line \d+", str(error))
    assert "\n" not in str(error)


def test_frame_skip_and_noops_are_refused() -> None:
    with pytest.raises(UsageError, match="for Atari"):
        make("CoexPictures-v0", GameConfig())


def first_pictures(levels: int, first_level: int = 0, episodes: int = 12) -> set[bytes]:
    config = GameConfig(frame_skip=1, max_noops=0, levels=levels, first_level=first_level)
    game = make("MiniGrid-DoorKey-6x6-v0", config)
    pictures = set()
    for _ in range(episodes):
        game.reset()
        pictures.add(game.rgb().tobytes())
    return pictures


def test_levels_are_the_environments_first_seeds() -> None:
    env = gymnasium.make("MiniGrid-DoorKey-6x6-v0")
    layouts = []
    for seed in range(2):
        env.reset(seed=seed)
        layouts.append(env.unwrapped.grid.encode().tobytes())  # type: ignore[attr-defined]
    game = make("MiniGrid-DoorKey-6x6-v0", GameConfig(frame_skip=1, max_noops=0, levels=2))
    for _ in range(6):
        game.reset()
        assert game._env.unwrapped.grid.encode().tobytes() in layouts  # type: ignore[attr-defined]
    assert len(first_pictures(levels=1)) == 1
    assert len(first_pictures(levels=2)) == 2
    assert len(first_pictures(levels=0)) > 2
    assert first_pictures(levels=1) | first_pictures(levels=1, first_level=1) == first_pictures(levels=2)


def test_levels_are_not_for_atari() -> None:
    with pytest.raises(UsageError, match=r"env\.levels"):
        AtariGame("Freeway", GameConfig(levels=1), np.random.SeedSequence(0))


def episode_lengths(game: GymGame, episodes: int) -> list[int]:
    lengths = []
    for _ in range(episodes):
        game.reset()
        lengths.append(next(step for step in range(1, 100) if game.step(0)[2]))
    return lengths


def test_staggered_environments_do_not_end_their_episodes_at_once() -> None:
    config = GameConfig(frame_skip=1, max_noops=0, stagger=6)
    lengths = [
        episode_lengths(GymGame("CoexPictures-v0", config, seed), 3) for seed in np.random.SeedSequence(0).spawn(60)
    ]
    assert {first for first, *_ in lengths} == {1, 2, 3, 4, 5, 6}
    assert all(rest == [9, 9] for _, *rest in lengths)
    assert episode_lengths(
        GymGame("CoexPictures-v0", config.with_whole_episodes(), seed=np.random.SeedSequence(0)), 1
    ) == [9]


def test_restored_environments_are_staggered_again() -> None:
    config = GameConfig(frame_skip=1, max_noops=0, stagger=6)
    games = [GymGame("CoexPictures-v0", config, seed) for seed in np.random.SeedSequence(0).spawn(20)]
    for game in games:
        episode_lengths(game, 2)
        game.load_state_dict(game.state_dict())
    assert len({episode_lengths(game, 1)[0] for game in games}) > 3


def test_a_world_that_takes_no_render_mode_shows_its_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(gymnasium.Env[np.ndarray, int]):
        observation_space = spaces.Box(0, 255, (40, 40, 3), np.uint8)
        action_space = spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
            super().reset(seed=seed)
            return np.full((40, 40, 3), 7, np.uint8), {}

        def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
            return np.full((40, 40, 3), 9, np.uint8), 0.0, False, False, {}

    spec = gymnasium.envs.registration.EnvSpec("Plain-v0", Plain)
    monkeypatch.setitem(gymnasium.registry, "Plain-v0", spec)
    game = GymGame("Plain-v0", PLAIN, np.random.SeedSequence(0))
    game.reset()
    picture = np.zeros((40, 40, 3), np.uint8)
    game.paint({"rgb40": picture}, fresh=True)
    assert (picture == 7).all()
    game.step(1)
    game.paint({"rgb40": picture}, fresh=False)
    assert (picture == 9).all()
