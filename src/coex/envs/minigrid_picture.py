"""MiniGrid's grid as a picture, at the cost of the tiles that changed."""

from typing import Any

import numpy as np

from coex.envs.views import Frame, ShrunkPictures, Views

_SIDE = 160  # pixels
# What an object encodes, None where there is none; with the agent's direction where the agent is.
_Tile = tuple[Any, ...] | None


# Of all environments in a process: they show the same few states again and again.
_SHRUNK = ShrunkPictures(most_bytes=64_000_000)


class MiniGridPicture:
    """The grid without the lit field of view, as `env.render()` draws it with `highlight=False`.

    MultiRoom's rooms take up a small part of a large grid: what lies around them, always empty, is left out. A step
    changes two or three tiles; drawing all of them anew takes most of a step's time.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._grid: Any = None  # that the rest was chosen for; every episode has its own
        self._left, self._top, self._width, self._height = 0, 0, 0, 0  # of the part that is drawn
        self._tiles: list[_Tile] = []  # what each tile of that part shows, row by row
        self._tile_size = 0
        self._picture: Frame = np.zeros((0, 0, 3), np.uint8)

    def __call__(self, _: Any) -> Frame:
        """(H, W, 3), the same array until the part that is drawn has another shape."""
        if self._env.grid is not self._grid:
            self._frame(self._env.grid)
        tiles = self._look()
        if tiles != self._tiles:
            self._draw([place for place, tile in enumerate(tiles) if tile != self._tiles[place]], tiles)
            self._tiles = tiles
        return self._picture

    def paint(self, out: Views, *, fresh: bool) -> None:
        """Fills the views of `out` from the picture as it was last asked for."""
        _SHRUNK.paint(out, self._picture, key=(self._width, *self._tiles), fresh=fresh)

    def _look(self) -> list["_Tile"]:
        """What the tiles show now. What an object encodes, and where the agent looks, is all that a tile depends on."""
        grid, tiles = self._grid, []
        for start in range(self._top * grid.width + self._left, grid.width * grid.height, grid.width)[: self._height]:
            tiles += [thing and thing.encode() for thing in grid.grid[start : start + self._width]]
        x, y = int(self._env.agent_pos[0]) - self._left, int(self._env.agent_pos[1]) - self._top
        if 0 <= x < self._width and 0 <= y < self._height:
            place = y * self._width + x
            tiles[place] = (tiles[place], int(self._env.agent_dir))
        return tiles

    def _draw(self, places: list[int], tiles: list["_Tile"]) -> None:
        grid, size = self._grid, self._tile_size
        for place in places:
            row, column = divmod(place, self._width)
            thing = grid.grid[(self._top + row) * grid.width + self._left + column]
            has_agent = len(tiles[place] or ()) == 2
            drawn = grid.render_tile(thing, self._env.agent_dir if has_agent else None, tile_size=size)
            self._picture[row * size : (row + 1) * size, column * size : (column + 1) * size] = drawn

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
