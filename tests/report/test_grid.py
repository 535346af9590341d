"""Cells are drawn where the model sees them."""

import numpy as np
import pytest
import torch

from coex.config.bonuses import ADMConfig
from coex.config.grid import even_grid, model_grid
from coex.method.adm import AttentiveDynamicsModel
from coex.report.scene import cell_box, spread

PAPER = model_grid(9, 16)


@pytest.mark.parametrize(
    ("cell", "cells", "stride"),
    [
        ((0, 0), 9, 16),
        ((8, 8), 9, 16),
        ((2, 6), 9, 16),
        ((3, 1), 4, 16),
        ((4, 2), 5, 8),
        ((1, 2), 3, 24),
        ((5, 6), 7, 32),
    ],
)
def test_a_cells_box_is_what_the_encoder_sees_of_the_picture(cell: tuple[int, int], cells: int, stride: int) -> None:
    config = ADMConfig(grid=cells, stride=stride)
    side = config.picture_size
    left, top, right, bottom = (round(edge) for edge in cell_box(cell, model_grid(cells, stride), side, side))
    assert (right - left, bottom - top) == (32, 32)
    model, generator = AttentiveDynamicsModel(4, config), torch.Generator().manual_seed(0)
    first, other = torch.randint(0, 256, (2, side, side, 3), dtype=torch.uint8, generator=generator)
    outside, corners = other.clone(), first.clone()
    outside[top:bottom, left:right] = first[top:bottom, left:right]
    for y in (top, bottom - 1):
        for x in (left, right - 1):
            corners[y, x] = other[y, x]
    with torch.no_grad():
        seen = [model.encode(frame[None])[0, cells * cell[1] + cell[0]] for frame in (first, outside, corners)]
    torch.testing.assert_close(seen[0], seen[1], rtol=0, atol=1e-5)
    assert not torch.allclose(seen[0], seen[2])


def test_the_cells_of_ram_share_out_the_picture() -> None:
    assert cell_box((0, 8), even_grid(9), 90, 180) == pytest.approx((0, 160, 10, 180))


def test_attention_is_spread_over_what_its_cell_sees() -> None:
    attention = np.zeros((9, 9))
    attention[3, 0] = 1.0  # y, x: centred at pixel (64, 16) of 160
    heat = spread(attention, PAPER, 160, 160)
    ys, xs = np.nonzero(heat)
    assert (ys.min(), ys.max() + 1, xs.min(), xs.max() + 1) == (48, 80, 0, 32)
    assert heat[63:65, 15:17] == pytest.approx(np.full((2, 2), (31 / 32) ** 2))
    assert np.unravel_index(spread(attention, PAPER, 211, 161).argmax(), (211, 161)) == (84, 16)


def test_even_attention_stays_even_between_the_cells() -> None:
    assert spread(np.full((9, 9), 0.5), PAPER, 160, 160)[16:144, 16:144] == pytest.approx(0.5)
