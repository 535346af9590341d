"""MiniGrid's grid as a picture, at the cost of the tiles that changed."""

from typing import Any

import numpy as np

from coex.envs.views import Frame

_SIDE = 160  # pixels


class MiniGridPicture:
    """The grid without the lit field of view, as `env.render()` draws it with `highlight=False`.

    MultiRoom's rooms take up a small part of a large grid: what lies around them, always empty, is left out. A step
    changes two or three tiles; drawing all of them anew takes most of a step's time.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._grid: Any = None  # that the rest was chosen for; every episode has its own
        self._left, self._top, self._width, self._height = 0, 0, 0, 0  # of the part that is drawn
        self._tiles: list[Any] = []  # what each tile of that part shows, row by row
        self._tile_size = 0
        self._picture: Frame = np.zeros((0, 0, 3), np.uint8)

    def __call__(self, _: Any) -> Frame:
        """(H, W, 3), the same array until the part that is drawn has another shape."""
        env, grid = self._env, self._env.grid
        if grid is not self._grid:
            self._frame(grid)
        size, agent = self._tile_size, (int(env.agent_pos[0]), int(env.agent_pos[1]))
        for place, before in enumerate(self._tiles):
            row, column = divmod(place, self._width)
            x, y = self._left + column, self._top + row
            thing = grid.grid[y * grid.width + x]
            direction = env.agent_dir if (x, y) == agent else None
            # What an object encodes is all that its tile depends on.
            now = (None if thing is None else thing.encode(), direction)
            if now != before:
                drawn = grid.render_tile(thing, direction, tile_size=size)
                self._picture[row * size : (row + 1) * size, column * size : (column + 1) * size] = drawn
                self._tiles[place] = now
        return self._picture

    def _frame(self, grid: Any) -> None:
        """Chooses the part of a new grid that is drawn; as long as it has the same shape, so has the picture."""
        self._grid = grid
        built = np.array([thing is not None for thing in grid.grid]).reshape(grid.height, grid.width)
        if not built.any():
            built[:] = True  # an empty grid is drawn whole
        rows, columns = np.flatnonzero(built.any(axis=1)), np.flatnonzero(built.any(axis=0))
        self._left, self._top = int(columns[0]), int(rows[0])
        shape = (int(rows[-1]) + 1 - self._top, int(columns[-1]) + 1 - self._left)
        if shape != (self._height, self._width):
            self._height, self._width = shape
            size = max(8, -(-_SIDE // min(shape)))  # as large as the largest of our own views
            self._tile_size = size
            self._picture = np.zeros((self._height * size, self._width * size, 3), np.uint8)
            self._tiles = [()] * (self._height * self._width)
