"""Many environments: the same whatever the workers, exact states, and clean deaths."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from coex.envs import VectorEnv
from coex.envs.game_config import GameConfig
from coex.errors import CoexError, UsageError
from coex.results.published import GAMES
from tests.conftest import VIEW_SHAPES


def make(game: str = "Freeway", *, num_envs: int = 3, num_workers: int = 2, views: tuple[str, ...] = ("policy",),
         config: GameConfig | None = None, seed: int = 0) -> VectorEnv:  # fmt: skip
    config = config or GameConfig()
    return VectorEnv(
        game,
        config,
        num_envs=num_envs,
        num_workers=num_workers,
        views={name: VIEW_SHAPES[name] for name in views},
        seed=np.random.SeedSequence(seed),
    )


def play(env: VectorEnv, steps: int, seed: int = 0) -> list[tuple[np.ndarray, ...]]:
    generator = np.random.default_rng(seed)
    trace = []
    for _ in range(steps):
        answers = env.step(generator.integers(env.num_actions, size=env.num_envs))
        trace.append(tuple(part.copy() for part in (*answers, *env.views.values())))
    return trace


def assert_same(first: list[tuple[np.ndarray, ...]], second: list[tuple[np.ndarray, ...]]) -> None:
    for ours, theirs in zip(first, second, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_number_of_workers_does_not_matter() -> None:
    with (
        make(num_workers=1, views=("policy", "ram")) as one,
        make(num_workers=3, views=("policy", "ram")) as three,
        make(num_workers=0, views=("policy", "ram")) as here,
    ):
        for env in (one, three, here):
            env.reset()
        played = play(one, 60)
        assert_same(played, play(three, 60))
        assert_same(played, play(here, 60))


@pytest.mark.parametrize("num_workers", [0, 2, 5])
def test_groups_do_not_depend_on_the_workers(num_workers: int) -> None:
    with make(num_envs=17, num_workers=num_workers) as env:
        assert env.groups == [slice(0, 8), slice(8, 17)]
        env.reset()
        for group in (1, 0):
            env.send(group, np.zeros(env.groups[group].stop - env.groups[group].start, np.int64))
        for group in (0, 1):
            assert [len(part) for part in env.receive(group)] == [8 + group] * 3


def test_workers_do_not_import_the_users_program(tmp_path: Path) -> None:
    """Neither its imports nor what it does at the top is repeated, and no `if __name__` is needed."""
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "import coex\n"
        "print('begun')\n"
        "env = coex.VectorEnv('Freeway', coex.GameConfig(), num_envs=2, num_workers=2, views={'grey': (84, 84)},\n"
        "                     seed=np.random.SeedSequence(0))\n"
        "env.reset()\n"
        "print(env.step(np.zeros(2, np.int64))[0].tolist())\n"
        "env.close()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["begun", "[0.0,", "0.0]"]


def test_environments_differ_from_each_other_and_seeds_from_each_other() -> None:
    config = GameConfig(sticky=0.25)
    settings = {"num_workers": 0, "views": ("ram",), "config": config}
    with make(**settings) as env, make(**settings, seed=1) as other:
        env.reset()
        other.reset()
        rams = np.concatenate([env.views["ram"], other.views["ram"]])
        assert len({ram.tobytes() for ram in rams}) > 3


def test_only_the_views_asked_for_exist() -> None:
    with make(num_workers=0, views=("grey52", "rgb84")) as env:
        assert list(env.views) == ["grey52", "rgb84"]
        assert env.views["rgb84"].shape == (3, 84, 84, 3)


def test_an_episodes_true_last_picture_is_kept() -> None:
    config = GameConfig(max_noops=0, max_episode_frames=40)
    with make("Seaquest", views=("policy", "ram"), config=config) as env:
        env.reset()
        first = env.views["policy"].copy()
        play(env, 9)
        before = env.views["policy"].copy()
        _, terminated, truncated = env.step(np.zeros(3, np.int64))
        assert truncated.all()
        assert not terminated.any()
        np.testing.assert_array_equal(env.views["policy"], first)  # already the next episode
        np.testing.assert_array_equal(env.final_views["policy"][..., :3], before[..., 1:])


@pytest.mark.parametrize(("game", "sticky"), [("Qbert", 0.0), *((game, 0.25) for game in GAMES)])
def test_a_restored_vector_goes_on_identically_in_fresh_processes(game: str, sticky: float) -> None:
    config = GameConfig(sticky=sticky, max_episode_frames=2_000)
    views = ("policy", "rgb160", "ram")
    with make(game, num_workers=0, views=views, config=config) as original:
        original.reset()
        play(original, 60)
        state = original.state_dict()
        expected = play(original, 160, seed=1)  # 640 frames
    with make(game, num_workers=1, views=views, config=config, seed=5) as restored:
        restored.reset()
        assert restored.load_state_dict(state) == [True] * 3
        np.testing.assert_array_equal(restored.views["policy"], state["views"]["policy"])
        assert_same(play(restored, 160, seed=1), expected)


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_gymnasium_environments_are_played_again_to_where_they_were(sticky: float) -> None:
    config = GameConfig(frame_skip=1, max_noops=0, sticky=sticky, stagger=30)
    with make("gym:MiniGrid-Empty-5x5-v0", num_workers=1, config=config) as original:
        original.reset()
        play(original, 40)
        state = original.state_dict()
        expected = play(original, 120, seed=1)
    with make("gym:MiniGrid-Empty-5x5-v0", num_workers=0, config=config, seed=5) as restored:
        restored.reset()
        play(restored, 7)
        assert restored.load_state_dict(state) == [True] * 3
        assert_same(play(restored, 120, seed=1), expected)


def test_a_state_of_another_size_is_refused() -> None:
    with make(num_envs=2, num_workers=0) as two, make(num_envs=3, num_workers=0) as three:
        two.reset()
        with pytest.raises(UsageError, match="holds 2 environments, not 3"):
            three.load_state_dict(two.state_dict())


@pytest.mark.parametrize("shape", [(0, 8), (84,), (84, 84, 2), (84, 84, 5), (2, 84, 84, 3)])
def test_bad_views_are_refused(shape: tuple[int, ...]) -> None:
    seed = np.random.SeedSequence(0)
    with pytest.raises(UsageError, match="'odd'"):
        VectorEnv("Freeway", GameConfig(), num_envs=1, views={"odd": shape}, seed=seed)


def test_only_atari_has_ram() -> None:
    with pytest.raises(UsageError, match="has no RAM"):
        make("gym:CartPole-v1", views=("ram",))


@pytest.mark.parametrize("shape", [(17, 23), (210, 160, 3), (30, 120, 3), (300, 200), (40, 40, 4), (250, 250, 4)])
def test_views_may_have_any_size(shape: tuple[int, ...]) -> None:
    """The compiled code serves those that are smaller than the screen, OpenCV the others."""
    seed = np.random.SeedSequence(0)
    with VectorEnv("Seaquest", GameConfig(), num_envs=2, num_workers=0, views={"mine": shape}, seed=seed) as env:
        env.reset()
        play(env, 6)
        assert env.views["mine"].shape == (2, *shape)
        assert env.views["mine"].std() > 5
        if shape[2:] == (4,):
            assert (env.views["mine"][..., 0] != env.views["mine"][..., 3]).any()


def test_a_bad_environment_is_said_as_such_by_the_worker() -> None:
    with pytest.raises(UsageError, match="only discrete ones"):
        make("gym:Pendulum-v1", config=GameConfig(frame_skip=1, max_noops=0))
    assert not multiprocessing.active_children()


def test_a_worker_that_dies_is_said_and_leaves_no_orphans() -> None:
    env = make()
    env.reset()
    os.kill(env._workers[0][0].process.pid, signal.SIGKILL)
    env._workers[0][0].process.join()
    with pytest.raises(CoexError, match="ended by signal 9"):
        env.step(np.zeros(3, np.int64))
    env.close()
    env.close()
    assert not multiprocessing.active_children()


def _abandon(connection: multiprocessing.connection.Connection) -> None:
    env = make()
    env.reset()
    connection.send([channels[0].process.pid for channels in env._workers])
    time.sleep(60)


def test_workers_end_with_the_main_process() -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    parent = context.Process(target=_abandon, args=(theirs,))
    parent.start()
    pids = ours.recv()
    parent.kill()
    parent.join()
    while any(_alive(pid) for pid in pids):  # for ever, if they do not: the test's time limit says so
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
