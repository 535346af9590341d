"""Emulators and Gymnasium environments behind one small interface. Nothing here imports torch."""

from coex.config.envs import GameConfig
from coex.envs.atari import ROMS
from coex.envs.game import is_atari, make_game, resolve_game
from coex.envs.vector import VectorEnv
from coex.envs.views import VIEW_SHAPES

__all__ = ["ROMS", "VIEW_SHAPES", "GameConfig", "VectorEnv", "is_atari", "make_game", "resolve_game"]
