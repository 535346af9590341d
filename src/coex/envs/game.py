"""What the rest of the program knows of one environment, and how people write a game's name."""

import difflib
import re
from typing import Any, Protocol

import numpy as np

from coex.envs.atari import ROMS, TWO_PLAYER_ROMS, AtariGame
from coex.envs.game_config import GameConfig
from coex.envs.views import Frame, Views
from coex.errors import UsageError

GYM_PREFIX = "gym:"
_MOST_NAMES = 5  # in an answer to a name that is none


class Game(Protocol):
    """One environment. `paint` writes the views asked for; `load_state_dict` says whether it restored exactly."""

    action_names: list[str]

    @property
    def lives(self) -> int: ...  # 0 where none are counted
    def reset(self) -> None: ...
    def begin(self, start: int) -> None: ...  # the episode of that number: see `draw_start`
    def step(self, action: int) -> tuple[float, bool, bool]: ...
    def paint(self, out: Views, fresh: bool) -> None: ...
    def rgb(self) -> Frame: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> bool: ...
    def close(self) -> None: ...


def is_atari(game: str) -> bool:
    return game in ROMS


def is_minigrid(game: str) -> bool:
    return game.removeprefix(GYM_PREFIX).startswith(("MiniGrid-", "BabyAI-"))


def make_game(game: str, config: GameConfig, seed: np.random.SeedSequence) -> Game:
    """One environment by its full name (see `resolve_game`)."""
    if is_atari(game):
        return AtariGame(game, config, seed)
    from coex.envs.gym import GymGame  # only those who use it wait for Gymnasium's imports

    return GymGame(game.removeprefix(GYM_PREFIX), config, seed)


def draw_start(game: str, config: GameConfig, generator: np.random.Generator) -> int:
    """Returns the number of a real start, as `reset` draws it: an Atari game's frames without action, or a seed."""
    return config.draw_noops(generator) if is_atari(game) else config.draw_level(generator)


def resolve_game(name: str) -> str:
    """The full name of a game as people write it: `montezuma`, `ms-pacman`, `ALE/Pong-v5`, `gym:CartPole-v1`."""
    if name.startswith(GYM_PREFIX):
        if name == GYM_PREFIX:
            raise UsageError("gym: needs an environment's id, such as gym:MiniGrid-DoorKey-6x6-v0")
        return name
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    plain = re.sub(r"(noframeskip)?v\d$|^ale", "", plain)
    full = {game.lower(): game for game in ROMS}
    starting = [game for game in full if plain and game.startswith(plain)]
    if plain in full or len(starting) == 1:
        return full[plain if plain in full else starting[0]]
    if plain in {rom.replace("_", "") for rom in TWO_PLAYER_ROMS}:
        raise UsageError(f"{name} is a game for two players: the emulator cannot play it alone")
    close = starting or difflib.get_close_matches(plain, full, n=3, cutoff=0.5)
    names = "; closest: " + ", ".join(full[game] for game in close[:_MOST_NAMES]) if close else ""
    raise UsageError(f"unknown game {name!r}{names} ('coex games' lists all; gym:ID takes any Gymnasium id)")
