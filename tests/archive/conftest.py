"""A small world that can be replayed: a corridor with the goal at its end, and the true place as its cell."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

LENGTH, TILE = 10, 8


class LongHall(gymnasium.Env[np.ndarray, int]):
    """Left, stay, right; the last tile ends the episode with a reward."""

    action_space = spaces.Discrete(3)
    observation_space = spaces.Box(0, 255, (LENGTH * TILE, LENGTH * TILE, 3), np.uint8)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = 0
        return self._picture(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._place = max(self._place + int(action) - 1, 0)
        arrived = self._place == LENGTH - 1
        return self._picture(), float(arrived), arrived, False, {}

    def _picture(self) -> np.ndarray:
        picture = np.full((LENGTH * TILE, LENGTH * TILE, 3), 40, np.uint8)
        picture[4 * TILE : 5 * TILE, self._place * TILE : (self._place + 1) * TILE] = (230, 200, 40)
        return picture


@pytest.fixture(scope="session", autouse=True)
def hall() -> str:
    """The name under which the world can be trained on in this process."""
    if "LongHall-v0" not in gymnasium.registry:
        gymnasium.register("LongHall-v0", entry_point=LongHall, max_episode_steps=60)
    return "gym:LongHall-v0"
