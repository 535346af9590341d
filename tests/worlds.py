"""Small worlds for tests of learning: a corridor of rooms, seen one room at a time, with the goal at its far end."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

PLACES, TILE = 6, 8  # of a room, and pixels of a place's side
SIDE = PLACES * TILE


class Rooms(gymnasium.Env[np.ndarray, int]):
    """Left or right; every room has walls of its own, and the walker begins at the left end of the first."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)

    def __init__(self, rooms: int, reward: float = 1.0, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._reward = reward
        self._walls = np.random.default_rng(0).integers(0, 256, (rooms, PLACES, PLACES, 3)).astype(np.uint8)
        self._place = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = 0
        return self._look(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        goal = len(self._walls) * PLACES - 1
        self._place = int(np.clip(self._place + (1 if action else -1), 0, goal))
        arrived = self._place == goal
        return self._look(), self._reward * arrived, arrived, False, {}

    def _look(self) -> np.ndarray:
        room, column = divmod(self._place, PLACES)
        picture = self._walls[room].repeat(TILE, 0).repeat(TILE, 1)
        floor = picture[SIDE // 2 : SIDE // 2 + TILE]
        floor[:] = 0
        floor[:, column * TILE : (column + 1) * TILE] = 255
        return picture


gymnasium.register("CoexRoom-v0", entry_point=Rooms, max_episode_steps=16, kwargs={"rooms": 1})
for name, reward in (("Little", 2.0**-7), ("Much", 2.0**7)):
    gymnasium.register(f"Coex{name}-v0", entry_point=Rooms, max_episode_steps=16, kwargs={"rooms": 1, "reward": reward})
gymnasium.register("CoexRooms-v0", entry_point=Rooms, max_episode_steps=60, kwargs={"rooms": 6})
