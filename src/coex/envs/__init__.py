"""Emulators and Gymnasium environments behind one small interface. Nothing here imports torch."""

from coex.envs.atari import ROMS
from coex.envs.game import is_atari, is_minigrid, make_game, resolve_game
from coex.envs.game_config import GameConfig
from coex.envs.vector import VectorEnv
from coex.envs.views import POLICY_SHAPE, RAM_SHAPE, Shape

__all__ = [
    "POLICY_SHAPE",
    "RAM_SHAPE",
    "ROMS",
    "GameConfig",
    "Shape",
    "VectorEnv",
    "is_atari",
    "is_minigrid",
    "make_game",
    "resolve_game",
]
