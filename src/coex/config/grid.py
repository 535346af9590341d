"""Where the cells of a grid lie on the picture, as shares of its width or height."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RECEPTIVE_FIELD = 32  # pixels of the model's picture that a cell sees: its encoder's
STRIDES = (8, 16, 24, 32)  # pixels between cells that the encoder can have; with more, some would be seen by none
LARGEST_PICTURE = 640  # pixels


class Grid(NamedTuple):
    """Square cells, as many in a row as in a column."""

    cells: int  # in a row
    first: float  # the centre of the first
    tile: float  # the distance between the centres of two neighbours
    field: float  # the width of what a cell sees

    @property
    def centres(self) -> NDArray[np.float64]:
        """(cells,)."""
        return np.asarray(self.first + self.tile * np.arange(self.cells), np.float64)


def picture_size(cells: int, stride: int) -> int:
    """Returns the side, in pixels, of the picture that so many cells cover."""
    return RECEPTIVE_FIELD + stride * (cells - 1)


def model_grid(cells: int, stride: int) -> Grid:
    """Returns the grid of the attentive dynamics model, whose cells overlap where the stride is below 32."""
    side = picture_size(cells, stride)
    return Grid(cells, RECEPTIVE_FIELD / 2 / side, stride / side, RECEPTIVE_FIELD / side)


def even_grid(cells: int) -> Grid:
    """Returns the grid that RAM's locations are put into: its cells share out the picture."""
    return Grid(cells, 0.5 / cells, 1 / cells, 1 / cells)
