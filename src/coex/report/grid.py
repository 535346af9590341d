"""Draws what the cells of a grid see on a picture of any size."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from coex.config.grid import Grid

Floats = NDArray[np.float64]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def cell_box(cell: tuple[int, int], grid: Grid, width: int, height: int) -> Box:
    """What a cell (x, y) sees of a picture of that size."""
    half = grid.field / 2
    x, y = (grid.centres[index] for index in cell)
    return (x - half) * width, (y - half) * height, (x + half) * width, (y + half) * height


def spread(attention: Floats, grid: Grid, height: int, width: int) -> Floats:
    """(9, 9) attention of the model → (height, width): full at a cell's centre, nothing beyond the next cell's."""
    rows, columns = _tents(grid, height), _tents(grid, width)  # (height, 9), (width, 9)
    return np.asarray(rows @ attention @ columns.T)


@cache
def _tents(grid: Grid, size: int) -> Floats:
    places = (np.arange(size) + 0.5) / size  # the pixels' centres
    distances = np.abs(places[:, None] - grid.centres)  # (size, 9)
    return np.maximum(1 - distances / grid.tile, 0.0)
