"""The map of visits, from counts made by hand."""

import re

import numpy as np
import pytest

from coex.report.maps import RoomMaps
from coex.report.visits import Visits


def make_visits(letters: str = "xycR", locator: str = "adm", keys: list[list[int]] | None = None) -> Visits:
    keys = keys or [[4, 2, 0, 0], [4, 2, 0, 100], [0, 8, 0, 0], [1, 1, 3, 0], [2, 2, 3, 0]]
    counts = np.array([10, 5, 1, 1, 7][: len(keys)], np.int64)
    frames = {0: np.full((84, 84), 9, np.uint8)}
    return Visits(1_000, letters, locator, np.array(keys, np.int64), counts, frames, {3: 2})


def test_rooms_sum_their_states_in_their_cells() -> None:
    first, second = make_visits().rooms()
    assert (first.name, first.visits, first.states) == (0, 16, 3)
    assert (second.name, second.visits, second.states) == (3, 8, 2)
    assert first.heat is not None
    assert first.heat[2, 4] == 15  # y 2, x 4
    assert first.heat[8, 0] == 1
    assert first.heat.sum() == 16


def test_other_letters_in_another_order() -> None:
    heat = make_visits("Ryx", keys=[[0, 2, 4]]).rooms()[0].heat
    assert heat is not None
    assert heat[2, 4] == 10
    assert make_visits("cR", keys=[[0, 2]]).rooms()[0].heat is None


def test_the_rarest_are_the_newest_of_the_rare() -> None:
    visits = make_visits()
    assert [state.parts for state in visits.rarest(3)] == [
        {"x": 1, "y": 1, "c": 3, "R": 0},
        {"x": 0, "y": 8, "c": 0, "R": 0},
        {"x": 4, "y": 2, "c": 0, "R": 100},
    ]
    assert [state.count for state in visits.most_visited(9)] == [10, 7, 5, 1, 1]


@pytest.mark.parametrize(
    ("locator", "left", "top", "size"),
    # Centres at (x + 1)/10 of the picture, a tenth wide; by RAM, ninths.
    [("adm", 84 * 0.45, 84 * 0.25, 8.4), ("ram", 84 * 4 / 9, 84 * 2 / 9, 84 / 9)],
)
def test_heat_lies_where_the_cell_is(locator: str, left: float, top: float, size: float) -> None:
    drawn = RoomMaps(make_visits(locator=locator), "p-").rooms()
    cell = re.search(r'x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="[\d.]+"><title>cell 4, 2: 15 visits', drawn)
    assert cell
    assert [float(number) for number in cell.groups()] == pytest.approx([left, top, size], abs=0.01)


def test_rooms_without_a_picture_say_so() -> None:
    maps = RoomMaps(make_visits(), "p-")
    assert maps.pictures().count("<image") == 1
    drawn = maps.rooms()
    assert drawn.count('<use href="#p-0"') == 1
    assert drawn.count("no picture") == 1
    assert "Room 3 (RAM: 2)" in drawn
