"""MiniGrid's whole grid as a picture, at the cost of the tiles that changed."""

from typing import Any

import numpy as np

from coex.envs.views import VIEW_SHAPES, Frame


class MiniGridPicture:
    """The grid without the lit field of view, as `env.render()` draws it with `highlight=False`.

    A step changes two or three tiles; drawing all of them anew takes most of a step's time.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._tiles: list[Any] = []  # what each tile shows, row by row
        self._picture: Frame = np.zeros((0, 0, 3), np.uint8)
        # Nobody looks at MiniGrid's own observation, which takes as long as a step of the game.
        env.gen_obs = lambda: None

    def __call__(self, _: Any) -> Frame:
        """(H, W, 3), the same array every time."""
        env, grid = self._env, self._env.grid
        tile = max(8, -(-VIEW_SHAPES["adm"][0] // min(grid.width, grid.height)))  # as large as the largest view
        shape = (grid.height * tile, grid.width * tile, 3)
        if self._picture.shape != shape:
            self._picture, self._tiles = np.zeros(shape, np.uint8), [()] * len(grid.grid)
        # What an object encodes is all that its tile depends on.
        tiles = [None if thing is None else thing.encode() for thing in grid.grid]
        agent = int(env.agent_pos[1]) * grid.width + int(env.agent_pos[0])
        tiles[agent] = (tiles[agent], env.agent_dir)
        for place, (now, before) in enumerate(zip(tiles, self._tiles, strict=True)):
            if now != before:
                y, x = divmod(place, grid.width)
                direction = env.agent_dir if place == agent else None
                drawn = grid.render_tile(grid.grid[place], direction, tile_size=tile)
                self._picture[y * tile : (y + 1) * tile, x * tile : (x + 1) * tile] = drawn
        self._tiles = tiles
        return self._picture
