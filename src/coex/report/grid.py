"""Where on the picture the cells of the 9×9 grid lie, as fractions of its width or height."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from coex.method.adm import GRID

Floats = NDArray[np.float64]

_SIDE = 160  # pixels of the model's picture
_STRIDE, _FIELD = 16, 32  # of the model's encoder: cell i sees the pixels from 16·i to 16·i + 32


def cell_centres(locator: str) -> Floats:
    """(9,) by the model that locates: its cells see less than the picture, those of RAM's grid share it out."""
    if locator == "ram":
        return (np.arange(GRID) + 0.5) / GRID
    return (np.arange(GRID) * _STRIDE + _FIELD / 2) / _SIDE


def tile_size(locator: str) -> float:
    """The distance between two cells' centres."""
    return 1 / GRID if locator == "ram" else _STRIDE / _SIDE


def field_size(locator: str) -> float:
    """The width of what a cell sees: the model's cells overlap by half."""
    return 1 / GRID if locator == "ram" else _FIELD / _SIDE


def spread(attention: Floats, height: int, width: int) -> Floats:
    """(9, 9) attention of the model → (height, width): full at a cell's centre, nothing beyond what the cell sees."""
    rows, columns = _tents(height), _tents(width)  # (height, 9), (width, 9)
    return np.asarray(rows @ attention @ columns.T)


@cache
def _tents(size: int) -> Floats:
    places = (np.arange(size) + 0.5) / size  # the pixels' centres
    distances = np.abs(places[:, None] - cell_centres("adm"))  # (size, 9)
    return np.maximum(1 - distances / tile_size("adm"), 0.0)
