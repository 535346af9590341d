"""Where the player truly is, and in which room, read from the Atari's 128 bytes of RAM.

For evaluation and CoEX+RAM only: no other agent sees any of this. Boxes are on the 160x210 screen.

Every formula was checked against the pixels of the emulator (ale-py 0.12.1, frame skip 4, maximum of the
last two frames); `docs/images/ram` shows the boxes, `tests/envs/test_ram.py` repeats the check. In some games
the bytes are one frame ahead of the screen, so that a box leads a running or falling sprite by 1 to 4 pixels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coex.errors import UsageError

SCREEN_WIDTH, SCREEN_HEIGHT = 160, 210
GRID = 9  # cells in a row of the paper's attention grid
RAM_BYTES = 128

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Box = tuple[Ints | int, Ints | int, Ints | int, Ints | int]  # x, y, width, height; (x, y) is the top left


@dataclass(frozen=True)
class Truth:
    """One game's formulas. `r[n]` is RAM byte n as an integer, of shape (...)."""

    box: Callable[[Ints], Box]
    visible: Callable[[Ints], Ints | Bools]
    room: Callable[[Ints], Ints] | None = None
    vehicle: Callable[[Ints], Box] | None = None  # a second sprite that obeys the joystick as the player does


def _show_rows(x: Ints | int, y: Ints, width: int, height: int, top: int, bottom: int) -> Box:
    """The part of a box between the screen rows `top` and `bottom`, where the game draws sprites."""
    y_first, y_last = np.maximum(y, top), np.minimum(y + height, bottom)
    return x, y_first, width, np.maximum(y_last - y_first, 0)


def _hero_box(r: Ints) -> Box:
    # Between rooms, and when he flies against the ceiling, he is cut off by the edge of the cave.
    return _show_rows(r[27], 135 - r[31], 8, 24, top=20, bottom=137)


def _private_eye_box(r: Ints) -> Box:
    # Two heights: byte 97 while he is thrown up out of his car, byte 86 (which also bobs) while he drives.
    return r[63], np.where(r[97] > 0, 150 - r[97], 170 - r[86]), 8, 25


def _private_eye_car(r: Ints) -> Box:
    # It stays below when he is thrown up, and goes where he goes; byte 91 has bit 3 while it faces left.
    return np.where(r[91] & 8, r[63] - 9, r[63] - 3), 182 - r[86], 20, 13


def _qbert_box(r: Ints) -> Box:
    # The screen has about 26 lines for every 25 steps of the byte; he drops in from above the first line.
    return _show_rows(r[43] - 3, r[67] + r[67] // 25 - 9, 8, 20, top=10, bottom=SCREEN_HEIGHT)


def _venture_box(r: Ints) -> Box:
    # On the two maps of the dungeon he is a dot; in the rooms the dot's bytes are his arrow's.
    on_map = (r[90] == 8) | (r[90] == 9)
    x, y = np.where(on_map, r[85] - 1, r[79] - 1), np.where(on_map, 2 * r[26] + 25, 2 * r[20] + 26)
    return x, y, np.where(on_map, 1, 8), np.where(on_map, 2, 12)


def _gravitar_box(r: Ints) -> Box:
    # The box is around the ship in all its directions. Over a planet (byte 1 is 3) it is drawn four lines higher.
    return r[31] + 1, np.where(r[1] == 3, r[32] + 26, r[32] + 30), 6, 7


def _pitfall_visible(r: Ints) -> Bools:
    # Byte 30 counts down after a death. Byte 105 from 33 to 54 is a hole, or (byte 20) a pool, in which he only dies;
    # above 86 he drops in anew from beyond the trees.
    sinking = (r[20] >= 2) & (r[105] > 32) & (r[105] < 55)
    return (r[30] == 0) & (r[105] <= 86) & ~sinking


_LEAST_ROWS = 6  # of a sprite that the edge of the picture cuts off, for it to count as visible

_TRUTH = {
    "Freeway": Truth(
        box=lambda r: (44, 193 - r[14], 7, 8),
        visible=lambda r: r[14] > 0,  # always: at the bottom of the road it is 6
    ),
    "Frostbite": Truth(
        box=lambda r: (r[102], r[100] + 29, 8, 18),
        visible=lambda r: r[113] == 0,  # else: drowning, freezing, caught by the bear, or in the igloo
    ),
    "Hero": Truth(
        box=_hero_box,
        # Byte 45 counts down from 255 while he dies, then while he sinks in anew, often behind rock;
        # it rests at 83 until the joystick is touched, and at 0 in play.
        visible=lambda r: (r[45] <= 83) & (_hero_box(r)[3] >= _LEAST_ROWS),
        room=lambda r: 256 * r[117] + r[28],  # level, screen
    ),
    "MontezumaRevenge": Truth(
        box=lambda r: (r[42] - 1, 308 - r[43], 8, 20),
        # Byte 4 is 2 and then 1 while the next room is set up, before it is drawn; byte 2 is 6 in death.
        visible=lambda r: (r[4] == 0) & (r[2] != 6),
        room=lambda r: 256 * r[57] + r[3],  # level, room
    ),
    "PrivateEye": Truth(
        box=_private_eye_box,
        visible=lambda r: r[63] > 0,  # always: he cannot die, and a new room is there at once
        room=lambda r: r[92],
        vehicle=_private_eye_car,
    ),
    "Qbert": Truth(
        box=_qbert_box,
        # Byte 59 is 255 after a leap off the pyramid; byte 101 counts down after a collision.
        visible=lambda r: (r[59] != 255) & (r[101] == 0) & (r[67] < 200) & (_qbert_box(r)[3] >= _LEAST_ROWS),
    ),
    "Seaquest": Truth(
        box=lambda r: (r[70], r[97] + 33, 16, 11),
        visible=lambda r: (r[105] == 0) & (r[97] > 0),  # byte 105 counts down through the explosion
    ),
    "Venture": Truth(
        box=_venture_box,
        # Byte 77 is 1 in death; byte 76 starts at 63 on the frame on which the next scene replaces the last.
        visible=lambda r: (r[77] != 1) & (r[76] < 63),
        room=lambda r: r[90],
    ),
    "BankHeist": Truth(
        box=lambda r: (r[28], r[8] + 37, 8, 7),
        visible=lambda r: r[78] == 0,  # it counts down from 200 after a crash, until the next car is there
        room=lambda r: r[0],  # the city; every fourth looks the same
    ),
    "Berzerk": Truth(
        box=lambda r: (r[19] + 3, r[11] + 5, 8, 20),
        # Byte 17 is his step, 0 to 2, or counts up in death; byte 104 is 127 unless a room is being drawn.
        visible=lambda r: (r[17] <= 2) & (r[104] == 127),
    ),
    "Gravitar": Truth(
        box=_gravitar_box,
        # Byte 29 is what was drawn last: the ship, its flame or its beam, from 119 on its explosion.
        # Byte 1 is 1 when the fuel is gone, which ends the game.
        visible=lambda r: (r[29] <= 103) & (r[1] != 1),
        # Byte 1 is the scene: 2 the solar system, 5 a fight with saucers, 3 the planet of byte 2.
        # Later systems were never reached, and may have the same numbers.
        room=lambda r: np.where(r[1] == 3, 16 + r[2], r[1]),
    ),
    "MsPacman": Truth(
        box=lambda r: (r[10] - 12, r[16] + 1, 8, 10),
        visible=lambda r: (r[39] < 73) | (r[39] == 255),  # 255 in play, below 73 in breaks, else in death
    ),
    "Pitfall": Truth(
        box=lambda r: (r[97], r[105] + 73, 8, 21),
        visible=_pitfall_visible,
        room=lambda r: r[1],
    ),
}

# Nothing is tuned on these: they tell how well we do on games that nobody looked at.
HELD_OUT_GAMES = ("BankHeist", "Berzerk", "Gravitar", "MsPacman", "Pitfall")
RAM_GAMES: tuple[str, ...] = tuple(_TRUTH)
ROOM_GAMES: tuple[str, ...] = tuple(game for game, truth in _TRUTH.items() if truth.room)


def player_box(game: str, ram: ArrayLike) -> Ints:
    """Top left, width and height of the player on the 160x210 screen: (..., 128) -> (..., 4).

    Meaningful where `player_visible`.
    """
    return _stack(_truth(game).box(_bytes(ram)))


def controlled_boxes(game: str, ram: ArrayLike) -> Ints:
    """The boxes of all P sprites that obey the joystick, the player's first: (..., 128) -> (..., P, 4)."""
    r, truth = _bytes(ram), _truth(game)
    return np.stack([_stack(box(r)) for box in (truth.box, truth.vehicle) if box], axis=-2)


def player_visible(game: str, ram: ArrayLike) -> Bools:
    """Whether the player is drawn, alive, in its box: (..., 128) -> (...)."""
    r = _bytes(ram)
    centre = player_cell(game, ram)  # (..., 2)
    on_screen = ((centre >= 0) & (centre < GRID)).all(axis=-1)
    return np.asarray(on_screen & r.any(axis=0) & _truth(game).visible(r))  # no game's RAM is all zeros


def room(game: str, ram: ArrayLike) -> Ints:
    """The true room, distinct for each level; 0 in games of one room: (..., 128) -> (...).

    Montezuma's changes up to one step before the picture does; the player is not visible then.
    """
    r = _bytes(ram)
    room_of = _truth(game).room
    return np.asarray(room_of(r) if room_of else np.zeros(r.shape[1:], np.int64))


def player_cell(game: str, ram: ArrayLike, grid: int = GRID) -> NDArray[np.float64]:
    """Centre (x, y) of the player's box in cells of a grid: (..., 128) -> (..., 2)."""
    return _centre(player_box(game, ram), grid)


def controlled_cells(game: str, ram: ArrayLike, grid: int = GRID) -> NDArray[np.float64]:
    """The centres (x, y) of `controlled_boxes` in cells of a grid: (..., 128) -> (..., P, 2)."""
    return _centre(controlled_boxes(game, ram), grid)


def player_grid_cell(game: str, ram: ArrayLike, grid: int = GRID) -> Ints:
    """The cell (x, y) of a grid that holds the centre, from 0 on: (..., 128) -> (..., 2)."""
    return np.floor(player_cell(game, ram, grid)).astype(np.int64).clip(0, grid - 1)


def _stack(box: Box) -> Ints:
    return np.stack(np.broadcast_arrays(*box), axis=-1)  # (..., 4)


def _centre(boxes: Ints, grid: int) -> NDArray[np.float64]:
    """(..., 4) -> (..., 2) in cells of a grid."""
    centre = boxes[..., :2] + boxes[..., 2:] / 2
    return np.asarray(centre * (grid / SCREEN_WIDTH, grid / SCREEN_HEIGHT))


def _truth(game: str) -> Truth:
    if game not in _TRUTH:
        raise UsageError(f"{game} has no RAM truth; these games have it: {', '.join(RAM_GAMES)}")
    return _TRUTH[game]


def _bytes(ram: ArrayLike) -> Ints:
    """RAM as int64 (uint8 arithmetic wraps) with the byte's index first: (..., 128) -> (128, ...)."""
    ram = np.asarray(ram)
    if ram.shape[-1:] != (RAM_BYTES,):
        raise ValueError(f"RAM must have shape (..., {RAM_BYTES}), not {ram.shape}")
    return np.moveaxis(ram, -1, 0).astype(np.int64)
