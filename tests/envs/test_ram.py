"""RAM truth against the emulator's pixels, found by means that know nothing of the formulas.

`sprite` finds the player by its colours in the raw palette indices; `joystick_pixels` by what differs between two
futures of one state under opposite actions. Frames are what agents see: skip 4, the last two emulator frames.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import ale_py
import cv2
import numpy as np
import pytest
from ale_py import Action, ALEInterface, roms

from coex.envs import ram
from coex.envs.atari import ROMS

FRAME_SKIP = 4


def emulator(game: str, seed: int = 0) -> ALEInterface:
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path(ROMS[game]))
    return ale


def step(ale: ALEInterface, action: Action) -> np.ndarray:
    """The last two screens of a step, as palette indices: (2, 210, 160)."""
    for _ in range(FRAME_SKIP - 1):
        ale.act(action)
    before_last = ale.getScreen()
    ale.act(action)
    return np.stack([before_last, ale.getScreen()])


def wander(game: str, steps: int, seed: int = 0) -> Iterator[tuple[ALEInterface, np.ndarray]]:
    """Random play in which an action lasts six steps on average, so that the player gets about."""
    ale, rng = emulator(game, seed), np.random.default_rng(seed)
    actions = ale.getMinimalActionSet()
    action = actions[0]
    for _ in range(steps):
        if rng.random() < 1 / 6:
            action = actions[rng.integers(len(actions))]
        yield ale, step(ale, action)
        if ale.game_over():
            ale.reset_game()


@dataclass(frozen=True)
class Sprite:
    """The player's looks: the blob of `colours` that has the most of `marks` is the player.

    `full_height`: at this many rows it is all in view (not behind its car, the waves or the screen's edge), so that
    its centre is the box's.
    """

    colours: tuple[int, ...]
    marks: tuple[int, ...]
    rows: tuple[int, int]
    full_height: int
    columns: int = 160


SPRITES = {
    "Freeway": Sprite((30,), (30,), (16, 195), full_height=8, columns=80),  # the other chicken is on the right
    "Frostbite": Sprite((36, 54, 22, 6), (36, 54), (45, 190), full_height=15),
    "Hero": Sprite((152, 12, 68, 28, 70), (152,), (20, 137), full_height=23),
    "MontezumaRevenge": Sprite((70, 250, 74, 76), (70,), (47, 210), full_height=19),
    "PrivateEye": Sprite((74, 70, 22, 26, 30, 130), (74,), (40, 180), full_height=20),
    "Qbert": Sprite((52,), (52,), (10, 210), full_height=17),
    "Seaquest": Sprite((24,), (24,), (40, 165), full_height=10),
    "Venture": Sprite((66,), (66,), (27, 200), full_height=12),
}


def blobs(mask: np.ndarray) -> list[np.ndarray]:
    count, labels = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)
    return [labels == k for k in range(1, count)]


def sprite(game: str, screen: np.ndarray) -> np.ndarray:
    """Pixels of the player, none if it is not in sight: (210, 160) palette indices -> (210, 160) bool."""
    looks = SPRITES[game]
    window = np.zeros_like(screen, bool)
    window[looks.rows[0] : looks.rows[1], : looks.columns] = True
    marks = np.isin(screen, looks.marks) & window
    found = blobs(np.isin(screen, looks.colours) & window)
    best = max(found, key=lambda blob: int((blob & marks).sum()), default=np.zeros_like(window))
    return best if (best & marks).sum() >= 8 else np.zeros_like(window)


def venture_dot(screen: np.ndarray) -> np.ndarray:
    """The player on the map: a dot of the walls' colour, found when it touches no wall."""
    below_lives = np.where(np.arange(210)[:, None] >= 27, screen, 0)
    dots = [blob for blob in blobs(below_lives == 84) if blob.sum() <= 2]
    return np.any(dots, axis=0) if dots else np.zeros_like(screen, bool)


def find_player(game: str, screens: np.ndarray) -> np.ndarray:
    """The player's pixels in either of two frames (Venture draws it in every other one)."""
    found = np.any([sprite(game, screen) for screen in screens], axis=0)
    if game == "Venture" and not found.any():
        found = np.any([venture_dot(screen) for screen in screens], axis=0)
    return found


@dataclass(frozen=True)
class Measured:
    """One row a step in which the player is visible by RAM and found by its pixels."""

    covered: np.ndarray  # (n,) share of the player's pixels in the box
    offset: np.ndarray  # (m, 2) x, y of the sprite's centre from the box's, where the sprite is whole
    cells: np.ndarray  # (n, 2)
    found_when_visible: float
    found_when_hidden: int


@cache
def measure(game: str, steps: int = 900) -> Measured:
    covered, offset, cells = [], [], []
    visible_count = hidden_found = 0
    for ale, screens in wander(game, steps):
        memory = ale.getRAM()
        pixels = find_player(game, screens)
        if not ram.player_visible(game, memory):
            hidden_found += int(pixels.any())
            continue
        visible_count += 1
        if not pixels.any():
            continue
        x, y, width, height = ram.player_box(game, memory)
        covered.append(pixels[max(y, 0) : y + height, max(x, 0) : x + width].sum() / pixels.sum())
        cells.append(ram.player_grid_cell(game, memory))
        rows, columns = np.nonzero(pixels)
        if np.ptp(rows) + 1 >= min(SPRITES[game].full_height, height):
            centre = (columns.min() + columns.max() + 1) / 2, (rows.min() + rows.max() + 1) / 2
            offset.append((centre[0] - x - width / 2, centre[1] - y - height / 2))
    return Measured(
        np.array(covered), np.array(offset), np.array(cells), len(covered) / visible_count, hidden_found
    )


if __name__ == "__main__":
    import time
    for g in ram.RAM_GAMES:
        t = time.time(); m = measure(g)
        d = np.hypot(*m.offset.T)
        print(f"{g:17s} n={len(m.covered)} m={len(m.offset)} found|vis {m.found_when_visible:.3f} hidden&found {m.found_when_hidden} bias {m.offset.mean(0).round(2)} med {np.median(m.offset,0)} mean {d.mean():.2f} p95 {np.percentile(d,95):.2f} cover>=.8 {(m.covered>=.8).mean():.3f} mean {m.covered.mean():.3f} cells {len(np.unique(m.cells,axis=0))} {time.time()-t:.1f}s")
