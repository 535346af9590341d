"""Small real runs to report on."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from coex.config.presets import make_config
from coex.training.loop import train

MINIGRID = "gym:MiniGrid-Empty-5x5-v0"
SMALL = {"num_envs": 2, "num_workers": 0, "log_every_steps": 40, "checkpoint": {"every_steps": 100}}


def make_run(out: Path, game: str = "montezuma", method: str = "a2c+coex", **settings: object) -> Path:
    train(make_config(game, method, {"total_steps": 240, **SMALL, **settings}), out)
    return out


@pytest.fixture(scope="session")
def coex_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "coex", env={"max_episode_frames": 200, "max_noops": 0})


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "plain", MINIGRID, "a2c")


@pytest.fixture
def copy_run(tmp_path: Path) -> Callable[[Path, str], Path]:
    """A copy of a run, to be damaged."""

    def copy(run: Path, name: str = "copy") -> Path:
        shutil.copytree(run, tmp_path / name)
        return tmp_path / name

    return copy
