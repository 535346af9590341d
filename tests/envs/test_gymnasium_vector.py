"""Our environments behind Gymnasium's vector interface: they do as Gymnasium's own, and go on exactly from a state."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils import env_checker
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import coex
from coex import GameConfig, UsageError
from coex.envs import POLICY_SHAPE
from coex.envs.atari import AtariGame

SHORT = GameConfig(max_episode_frames=40, sticky=0.25, stagger=20)
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


class Single(gymnasium.Env[np.ndarray, int]):
    """One game by itself, with Gymnasium's reset: what its own vector environment makes of it is the reference."""

    observation_space = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    action_space = spaces.Discrete(18)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        if seed is not None:
            self.game = AtariGame("Seaquest", SHORT, np.random.SeedSequence(seed))
            self.stack = np.zeros(POLICY_SHAPE, np.uint8)
        self.game.reset()
        return self._paint(fresh=True), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        reward, terminated, truncated = self.game.step(int(action))
        return self._paint(fresh=False), reward, terminated, truncated, {}

    def _paint(self, *, fresh: bool) -> np.ndarray:
        self.game.paint({"policy": self.stack}, fresh)
        return np.moveaxis(self.stack, -1, 0).copy()


def make(**kwargs: Any) -> coex.GymnasiumVectorEnv:
    return coex.make_vec("seaquest", **({"num_envs": 3, "num_workers": 0, "config": SHORT} | kwargs))


def play(env: Any, steps: int, seed: int = 0) -> list[tuple[Any, ...]]:
    generator = np.random.default_rng(seed)
    return [env.step(generator.integers(18, size=env.num_envs)) for _ in range(steps)]


def assert_same_steps(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        for part, expected in zip(one[:4], other[:4], strict=True):
            np.testing.assert_array_equal(part, expected)
        assert one[4].keys() == other[4].keys()
        for name, expected in other[4].items():
            if name == "final_obs":
                for last, true in zip(one[4][name], expected, strict=True):
                    assert (last is None) == (true is None)
                    assert true is None or np.array_equal(last, true)
            else:
                assert np.array_equal(one[4][name], expected) or one[4][name] == expected


@pytest.mark.parametrize("mode", MODES)
def test_it_does_as_gymnasiums_own_vector_environment(mode: AutoresetMode) -> None:
    reference = SyncVectorEnv([Single] * 3, autoreset_mode=mode)
    with_ours = make(autoreset_mode=mode)
    ours, _ = with_ours.reset(seed=7)
    theirs, _ = reference.reset(seed=7)
    np.testing.assert_array_equal(ours, theirs)
    steps = play(with_ours, 50)
    assert_same_steps(steps, play(reference, 50))
    assert sum(int(step[3].sum()) for step in steps) > 5
    assert with_ours.observation_space == reference.observation_space
    assert with_ours.action_space == reference.action_space
    assert with_ours.metadata["autoreset_mode"] == reference.metadata["autoreset_mode"]
    with_ours.close()


class First(gymnasium.Env[np.ndarray, int]):
    """The only one of a vector, as a single environment: Gymnasium's checker takes no vectors."""

    def __init__(self) -> None:
        self.vector = make(num_envs=1, config=GameConfig(sticky=0.25))
        self.observation_space, self.action_space = self.vector.single_observation_space, spaces.Discrete(18)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        observations, infos = self.vector.reset(seed=seed, options=options)
        return observations[0], infos

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observations, rewards, terminated, truncated, infos = self.vector.step(np.array([action]))
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), infos


def test_it_passes_gymnasiums_own_checks(recwarn: pytest.WarningsRecorder) -> None:
    """The same seed brings the same, nothing that was returned changes later, spaces hold what is shown."""
    spec = gymnasium.envs.registration.EnvSpec("CoexFirst-v0", First, disable_env_checker=True)
    env_checker.check_env(gymnasium.make(spec).unwrapped, skip_render_check=True)
    with_three = make()
    env_checker.check_reset_options(with_three)  # type: ignore[arg-type]
    env_checker.check_reset_return_type(with_three)  # type: ignore[arg-type]
    env_checker.check_space_limit(with_three.observation_space, "observation")
    assert not [str(warning.message) for warning in recwarn]


@pytest.mark.parametrize("mode", MODES)
def test_a_restored_vector_goes_on_exactly(mode: AutoresetMode) -> None:
    original, restored = make(autoreset_mode=mode), make(autoreset_mode=mode, seed=9)
    original.reset(seed=1)
    restored.reset(seed=2)
    ends = 0
    for count in range(1, 30):
        ended = play(original, 1, seed=count)[0][3]
        ends += int(ended.sum())
        state = original.state_dict()
        restored.reset()  # a clock would end its episodes when the original's end
        assert restored.load_state_dict(state) == [True] * 3
        np.testing.assert_array_equal(restored.observations, original.observations)
        assert_same_steps(play(restored, 2, seed=count), play(original, 2, seed=count))
    assert ends  # states after an end were among them
    original.close()
    restored.close()


def test_a_state_is_saved_without_pickles(tmp_path: Any) -> None:
    from coex.runs.checkpoints.tree import read_tree, take_snapshot

    with_end, other = make(), make(seed=3)
    with_end.reset()
    other.reset()
    play(with_end, 9)
    other.load_state_dict(read_tree(take_snapshot(with_end.state_dict()).files()))
    assert_same_steps(play(other, 20), play(with_end, 20))


@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_wrappers_work_on_it(mode: AutoresetMode) -> None:
    env = RecordEpisodeStatistics(make(autoreset_mode=mode))
    observations, _ = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    episodes = [step[4] for step in play(env, 60) if "episode" in step[4]]
    lengths = np.concatenate([info["episode"]["l"][info["_episode"]] for info in episodes])
    assert len(lengths) > 5
    assert 6 <= lengths.max() <= 10  # of four frames each, of which the first may have shown the beginning
    env.close()


def test_seeds_decide_and_none_goes_on() -> None:
    env = make()
    first = env.reset(seed=4)[0]
    second = env.reset()[0]
    assert (first != second).any() or (play(env, 9)[-1][0] != first).any()
    again = env.reset(seed=[4, 5, 6])[0]
    np.testing.assert_array_equal(again, first)
    with make(num_workers=2)._env as workers:  # the same in processes
        workers.reseed([np.random.SeedSequence(n) for n in (4, 5, 6)])
        workers.reset()
        np.testing.assert_array_equal(np.moveaxis(workers.views["policy"], -1, 1), first)


@pytest.mark.parametrize("mode", MODES)
def test_an_explorers_pictures_are_there(mode: AutoresetMode) -> None:
    explorer = coex.Explorer(18, 3, "simhash")
    env = make(views=explorer.views, autoreset_mode=mode)
    env.reset(seed=0)
    explorer.begin(env.views)
    generator, over, num_ends = np.random.default_rng(0), np.zeros(3, bool), 0
    for _ in range(20):
        actions = generator.integers(18, size=3)
        _, rewards, terminated, truncated, _ = env.step(actions)
        ended = terminated | truncated
        num_ends += int(ended.sum())
        last = ended.reshape(-1, 1, 1)
        reached = {name: np.where(last, env.final_views[name], view) for name, view in env.views.items()}
        if mode == AutoresetMode.SAME_STEP:
            explorer.add(actions, reached, ended, rewards=rewards, first_frames=env.views)
        else:
            explorer.add(actions, reached, ended, rewards=rewards, valid=~over)
            over = ended
    assert num_ends > 3
    assert explorer.bonus().shape == (20, 3)
    rollout = explorer._rollout()
    ends = rollout.final_index
    begun = rollout.views["grey52"][ends[:, 0] + 1, ends[:, 1]]
    assert (begun != rollout.final_views["grey52"]).flatten(1).any(1).all()
    explorer.update()
    left_out = 0 if mode == AutoresetMode.SAME_STEP else len(ends)
    assert explorer.steps_done == 60 - left_out
    env.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"autoreset_mode": AutoresetMode.DISABLED}, "autoreset_mode"),
        ({"num_envs": 0}, "num_envs must be at least 1"),
        ({"num_envs": 2.5}, "num_envs takes a whole number"),
        ({"num_workers": -2}, "num_workers must be at least -1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"config": {"frame_skip": 2}}, "takes a GameConfig"),
        ({"views": {"policy": (84, 84)}}, "name yours otherwise"),
        ({"views": {"mine": (3,)}}, "it takes"),
    ],
)
def test_bad_settings_are_said(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(**arguments)


def test_bad_input_is_said() -> None:
    with pytest.raises(UsageError, match="unknown game"):
        coex.make_vec("Nothing")
    env = make(num_envs=np.int64(3))
    for call in (env.state_dict, lambda: env.step(np.zeros(3, np.int64))):
        with pytest.raises(UsageError, match="comes first"):
            call()
    with pytest.raises(UsageError, match="reset_mask"):
        env.reset(options={"reset_mask": np.ones(3, bool)})
    for seed, message in (([1], "one for each"), (-1, "at least 0"), (1.5, "whole number"), ([1, None, "a"], "whole")):
        with pytest.raises(UsageError, match=message):
            env.reset(seed=seed)  # type: ignore[arg-type]
    env.reset(seed=np.int64(3))  # type: ignore[arg-type]
    for actions, message in (
        ([0, 1], "shape"),
        ([0, 1, 18], "from 0 to 17"),
        ([0, 1, -1], "from 0 to 17"),
        ([0, 1, 1.5], "whole numbers"),
        ([0, 1, np.nan], "finite"),
        (None, "shape"),
    ):
        with pytest.raises(UsageError, match=message):
            env.step(np.array(actions))
    env.close()
    for call in (env.reset, env.state_dict, lambda: env.step(np.zeros(3, np.int64))):
        with pytest.raises(UsageError, match="closed"):
            call()


def test_a_state_of_other_environments_is_said() -> None:
    """One of the other mode would hold an environment where it is for ever, one of another game ends the emulator."""
    env = make()
    env.reset()
    state = env.state_dict()
    for other, message in (
        (coex.make_vec("pong", 3, num_workers=0), "game is Seaquest there, and Pong here"),
        (make(num_envs=2), "num_envs is 3 there, and 2 here"),
        (make(autoreset_mode=AutoresetMode.SAME_STEP), "autoreset_mode is NextStep there, and SameStep here"),
        (make(views={"rgb84": (84, 84, 3)}), "views is"),
    ):
        with pytest.raises(UsageError, match=message):
            other.load_state_dict(state)
        other.close()
    for damaged in (None, {}, {name: part for name, part in state.items() if name != "over"}):
        with pytest.raises(UsageError, match="not the state"):
            env.load_state_dict(damaged)  # type: ignore[arg-type]
    env.close()
