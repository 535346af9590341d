"""RAM truth against the emulator's pixels, found by means that know nothing of the formulas.

`sprite` finds the player by its colours in the raw palette indices, `joystick_pixels` by what differs between
two futures of one state under opposite actions. Frames are what agents see: skip 4, the last two.
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
from coex.results import published

FRAME_SKIP = 4


def emulator(game: str, seed: int = 0) -> ALEInterface:
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", 0.0)
    rom = roms.get_rom_path(ROMS[game])
    assert rom is not None
    ale.loadROM(rom)
    return ale


def step(ale: ALEInterface, action: Action) -> np.ndarray:
    """The last two screens of a step, as palette indices: (2, 210, 160)."""
    for _ in range(FRAME_SKIP - 1):
        ale.act(action)
    before_last = ale.getScreen()
    ale.act(action)
    return np.stack([before_last, ale.getScreen()])


PLACE_BYTES = {"Berzerk": (19, 11)}  # random play dies near the door: it is put elsewhere now and then


def wander(game: str, steps: int, seed: int = 0) -> Iterator[tuple[ALEInterface, np.ndarray]]:
    """Random play in which an action lasts six steps on average, so that the player gets about."""
    ale, rng = emulator(game, seed), np.random.default_rng(seed)
    actions = ale.getMinimalActionSet()
    action = actions[0]
    for _ in range(steps):
        if rng.random() < 1 / 6:
            action = actions[rng.integers(len(actions))]
        if game in PLACE_BYTES and rng.random() < 1 / 30:
            for byte in PLACE_BYTES[game]:
                ale.setRAM(byte, int(rng.integers(10, 140)))
        yield ale, step(ale, action)
        if ale.game_over():
            ale.reset_game()


@dataclass(frozen=True)
class Sprite:
    """The player's looks: the blob of `colours` that has the most of `marks` is the player.

    With `full_height` rows in view it is whole (not behind its car, the waves or the screen's edge), so its
    centre should be the box's.
    """

    colours: tuple[int, ...]
    marks: tuple[int, ...]
    rows: tuple[int, int]
    full_height: int
    columns: int = 160
    gap: int = 0  # lines between its parts


SPRITES = {
    "Freeway": Sprite((30,), (30,), (16, 195), full_height=8, columns=80),  # right: the other chicken
    "Frostbite": Sprite((36, 54, 22, 6), (36, 54), (45, 190), full_height=15),
    "Hero": Sprite((152, 12, 68, 28, 70), (152,), (20, 137), full_height=23),
    "MontezumaRevenge": Sprite((70, 250, 74, 76), (70,), (47, 210), full_height=19),
    "PrivateEye": Sprite((74, 70, 22, 26, 30, 130), (74,), (40, 180), full_height=20),
    "Qbert": Sprite((52,), (52,), (10, 210), full_height=17),
    "Seaquest": Sprite((24,), (24,), (40, 165), full_height=10),
    "Venture": Sprite((66,), (66,), (27, 200), full_height=12),
    "BankHeist": Sprite((36, 64), (36, 64), (40, 178), full_height=7),  # 64: without fuel
    "Berzerk": Sprite((60,), (60,), (0, 180), full_height=20, gap=2),
    "Gravitar": Sprite((170,), (170,), (25, 200), full_height=6),
    "MsPacman": Sprite((42,), (42,), (2, 171), full_height=10),
    "Pitfall": Sprite((200, 210, 74, 18), (200,), (75, 190), full_height=19),
}


def blobs(mask: np.ndarray) -> np.ndarray:
    """Connected pixels share a number, from 1; 0 is the rest: (210, 160) bool -> int."""
    return np.asarray(cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)[1])


def sprite(game: str, screen: np.ndarray) -> np.ndarray:
    """Pixels of the player, none if it is not in sight: (210, 160) palette indices -> bool."""
    looks = SPRITES[game]
    window = np.zeros_like(screen, bool)
    window[looks.rows[0] : looks.rows[1], : looks.columns] = True
    pixels = np.isin(screen, looks.colours) & window
    closed = cv2.morphologyEx(pixels.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((2 * looks.gap + 1, 1), np.uint8))
    labels = np.where(pixels, blobs(closed), 0)
    marks = np.bincount(labels[np.isin(screen, looks.marks) & window], minlength=1)  # of each blob
    return labels == marks.argmax() if marks.max() >= 8 else np.zeros_like(window)


def venture_dot(screen: np.ndarray) -> np.ndarray:
    """The player on the map: a dot of the walls' colour, found when it touches no wall."""
    below_lives = np.arange(210)[:, None] >= 27
    labels = blobs((screen == 84) & below_lives)
    return np.isin(labels, np.flatnonzero(np.bincount(labels.ravel()) <= 2))


def find_player(game: str, screens: np.ndarray) -> np.ndarray:
    """The player's pixels in either of two frames (Venture draws it in every other one)."""
    found: np.ndarray = sprite(game, screens[0]) | sprite(game, screens[1])
    if game == "Venture" and not found.any():
        found = venture_dot(screens[0]) | venture_dot(screens[1])
    return found


@dataclass(frozen=True)
class Measured:
    """One row a step in which the player is visible by RAM and found by its pixels."""

    covered: np.ndarray  # (n,) share of the player's pixels in the box
    offset: np.ndarray  # (m, 2) x, y of the sprite's centre from the box's, where the sprite is whole
    cells: np.ndarray  # (n, 2)
    found_when_visible: float


@cache
def measure(game: str, steps: int = 800) -> Measured:
    covered, offset, cells = [], [], []
    visible = 0
    for ale, screens in wander(game, steps):
        memory = ale.getRAM()
        if not ram.player_visible(game, memory):
            continue
        visible += 1
        pixels = find_player(game, screens)
        if not pixels.any():
            continue
        x, y, width, height = ram.player_box(game, memory)
        covered.append(pixels[max(y, 0) : y + height, max(x, 0) : x + width].sum() / pixels.sum())
        cells.append(ram.player_grid_cell(game, memory))
        rows, columns = np.nonzero(pixels)
        if np.ptp(rows) + 1 >= min(SPRITES[game].full_height, height):
            centre = (columns.min() + columns.max() + 1) / 2, (rows.min() + rows.max() + 1) / 2
            offset.append((centre[0] - x - width / 2, centre[1] - y - height / 2))
    return Measured(np.array(covered), np.array(offset), np.array(cells), len(covered) / visible)


@pytest.mark.parametrize("game", ram.RAM_GAMES)
def test_box_is_where_the_sprite_is(game: str) -> None:
    measured = measure(game)
    assert len(measured.offset) >= 150
    # A formula 4 pixels off would put the median at 2.5 or more: without that, it is within 1.5.
    assert np.abs(np.median(measured.offset, axis=0)).max() < 2.0, "centre, median"
    # The sprite's two positions in two frames, one of them a frame behind the RAM, when it leaps or falls.
    assert np.percentile(np.linalg.norm(measured.offset, axis=1), 95) < 4.5, "centre, 95th percentile"
    assert (measured.covered >= 0.8).mean() > 0.85
    assert measured.covered.mean() > 0.9
    # The player has been in enough places for an error of scale to show.
    assert len(np.unique(measured.cells, axis=0)) >= 9


@pytest.mark.parametrize("game", ram.RAM_GAMES)
def test_visible_player_is_seen(game: str) -> None:
    # Venture's dot cannot be told from a wall that it touches, and it likes walls.
    assert measure(game).found_when_visible > (0.6 if game == "Venture" else 0.97)


OPPOSITE = dict.fromkeys(ram.RAM_GAMES, (Action.LEFT, Action.RIGHT)) | {"Freeway": (Action.UP, Action.DOWN)}


def joystick_pixels(game: str, ale: ALEInterface) -> tuple[np.ndarray, np.ndarray]:
    """What differs between two futures after opposite actions, (210, 160) bool, and their RAM, (2, 128)."""
    state = ale.cloneSystemState()
    screens, memories = [], []
    for action in OPPOSITE[game]:
        ale.act(Action.NOOP)  # a restored state continues exactly only after an act
        ale.restoreSystemState(state)
        for _ in range(6):
            ale.act(action)
        screens.append(ale.getScreen())
        memories.append(ale.getRAM())
    ale.act(Action.NOOP)
    ale.restoreSystemState(state)
    return screens[0] != screens[1], np.stack(memories)


@pytest.mark.parametrize("game", ram.RAM_GAMES)
def test_what_the_joystick_moves_is_in_the_boxes(game: str) -> None:
    inside: list[float] = []
    for n, (ale, _) in enumerate(wander(game, 1000, seed=1)):
        if n % 5 or ale.game_over() or len(inside) == 15:
            continue
        differs, memories = joystick_pixels(game, ale)
        if differs.sum() < 4 or not ram.player_visible(game, memories).all():
            continue
        near_boxes = np.zeros_like(differs)
        for x, y, width, height in ram.controlled_boxes(game, memories).reshape(-1, 4):
            near_boxes[max(y - 1, 0) : y + height + 1, max(x - 1, 0) : x + width + 1] = True
        inside.append((differs & near_boxes).sum() / differs.sum())
    assert len(inside) == 15
    assert np.median(inside) > 0.9


MORTAL = ["Frostbite", "Hero", "MontezumaRevenge", "Qbert", "Seaquest", "Venture", *ram.HELD_OUT_GAMES]


@pytest.mark.parametrize("game", MORTAL)
def test_the_dying_are_not_visible(game: str) -> None:
    deaths, hidden, lives = 0, 0, 0
    was_visible = True
    for ale, _ in wander(game, 1000, seed=2):
        visible = bool(ram.player_visible(game, ale.getRAM()))
        if ale.lives() < lives:
            deaths += 1
            hidden += not (was_visible and visible)
        lives, was_visible = ale.lives(), visible
    assert deaths >= 2
    assert hidden == deaths


@dataclass(frozen=True)
class Journey:
    """A way to another room and back; `beyond` sets RAM bytes after the first leg, to pass what is locked."""

    legs: tuple[tuple[Action, int], ...]
    rooms: tuple[int, ...]
    beyond: tuple[int, int] | None = None


NOOP, UP, RIGHT, LEFT = Action.NOOP, Action.UP, Action.RIGHT, Action.LEFT
JOURNEYS = {
    "Hero": Journey(((NOOP, 28), (RIGHT, 1), (NOOP, 24), (UP, 40)), rooms=(0, 1, 0), beyond=(27, 76)),
    "MontezumaRevenge": Journey(((NOOP, 4), (RIGHT, 12), (LEFT, 30)), rooms=(1, 2, 1), beyond=(42, 140)),
    "PrivateEye": Journey(((RIGHT, 70), (LEFT, 70)), rooms=(0, 1, 2, 1, 0)),
    "Venture": Journey(((NOOP, 16), (UP, 14), (LEFT, 25), (RIGHT, 30)), rooms=(8, 1, 8)),
    "BankHeist": Journey(((NOOP, 4), (LEFT, 4), (RIGHT, 10), (LEFT, 10), (RIGHT, 10)), rooms=(0, 1, 2)),
    "Gravitar": Journey(((NOOP, 8), (LEFT, 4), (UP, 11), (NOOP, 40)), rooms=(2, 19)),
    "Pitfall": Journey(((NOOP, 4), (LEFT, 8), (RIGHT, 12)), rooms=(196, 226, 196)),
}


@cache
def travel(game: str) -> tuple[np.ndarray, np.ndarray]:
    """Screens, (T, 2, 210, 160), and RAM, (T, 128), of a journey."""
    journey, ale = JOURNEYS[game], emulator(game)
    screens, memories = [], []
    for leg, (action, steps) in enumerate(journey.legs):
        for _ in range(steps):
            screens.append(step(ale, action))
            memories.append(ale.getRAM())
        if leg == 0 and journey.beyond:
            ale.setRAM(*journey.beyond)
    return np.stack(screens), np.stack(memories)


def test_journeys_cover_the_games_with_rooms() -> None:
    assert tuple(JOURNEYS) == ram.ROOM_GAMES


@pytest.mark.parametrize("game", JOURNEYS)
def test_room_changes_with_the_scene_and_only_then(game: str) -> None:
    screens, memories = travel(game)
    rooms = ram.room(game, memories)  # (T,)
    changed = np.flatnonzero(np.diff(rooms))
    assert tuple(rooms[np.append(changed, -1)]) == JOURNEYS[game].rooms
    redrawn = (screens[1:, 1] != screens[:-1, 1]).mean(axis=(1, 2))  # (T-1,) share of pixels
    cuts = np.flatnonzero(redrawn > 0.02)
    assert len(cuts) == len(changed)
    assert np.abs(cuts - changed).max() <= 1


@pytest.mark.parametrize("game", JOURNEYS)
def test_box_holds_in_every_room(game: str) -> None:
    screens, memories = travel(game)
    cuts = np.diff(ram.room(game, memories), prepend=-1) != 0  # two frames of these steps show two rooms
    covered: dict[int, list[float]] = {}
    for pair, memory in zip(screens[~cuts], memories[~cuts], strict=True):
        pixels = find_player(game, pair)
        if pixels.any() and ram.player_visible(game, memory):
            x, y, width, height = ram.player_box(game, memory)
            inside = pixels[max(y, 0) : y + height, max(x, 0) : x + width].sum() / pixels.sum()
            covered.setdefault(int(ram.room(game, memory)), []).append(inside)
    assert set(covered) == set(JOURNEYS[game].rooms)
    assert min(np.mean(shares) for shares in covered.values()) > 0.8  # Montezuma's runs all the way


def memory_with(**values: int) -> np.ndarray:
    memory = np.zeros(128, np.uint8)
    for name, value in values.items():
        memory[int(name.removeprefix("r"))] = value
    return memory


def test_known_answers() -> None:
    start = memory_with(r2=4, r3=1, r42=77, r43=235)
    assert ram.player_box("MontezumaRevenge", start).tolist() == [76, 73, 8, 20]
    assert ram.player_cell("MontezumaRevenge", start).tolist() == pytest.approx([80 * 9 / 160, 83 * 9 / 210])
    assert ram.player_grid_cell("MontezumaRevenge", start).tolist() == [4, 3]
    assert ram.player_visible("MontezumaRevenge", start)
    assert ram.room("MontezumaRevenge", start) == 1


def test_levels_have_rooms_of_their_own() -> None:
    second_level = memory_with(r3=1, r57=1), memory_with(r28=1, r117=1)
    assert ram.room("MontezumaRevenge", second_level[0]) != ram.room("MontezumaRevenge", memory_with(r3=1))
    assert ram.room("Hero", second_level[1]) != ram.room("Hero", memory_with(r28=1))


@pytest.mark.parametrize("game", ram.RAM_GAMES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_vectorised_over_leading_dimensions(game: str, shape: tuple[int, ...]) -> None:
    memory = np.random.default_rng(0).integers(0, 256, (*shape, 128)).astype(np.uint8)
    functions: list[tuple[Callable[..., np.ndarray], object, tuple[int, ...]]] = [
        (ram.player_box, np.int64, (4,)),
        (ram.player_visible, np.bool_, ()),
        (ram.room, np.int64, ()),
        (ram.player_cell, np.float64, (2,)),
        (ram.player_grid_cell, np.int64, (2,)),
    ]
    for function, dtype, trailing in functions:
        result = function(game, memory)
        assert result.shape == (*shape, *trailing)
        assert result.dtype == dtype
        one_by_one = [function(game, one) for one in memory.reshape(-1, 128)]
        assert np.array_equal(result.reshape(-1, *trailing), one_by_one)
    cell = ram.player_grid_cell(game, memory)
    assert (cell >= 0).all()
    assert (cell < 9).all()


@pytest.mark.parametrize("game", ram.RAM_GAMES)
def test_memory_that_no_game_has_shows_no_player(game: str) -> None:
    assert not ram.player_visible(game, np.zeros((2, 128), np.uint8)).any()


def test_the_papers_games_are_tuned_on_and_no_others() -> None:
    assert set(ram.RAM_GAMES) == {*published.GAMES, *ram.HELD_OUT_GAMES}
    assert not set(published.GAMES) & set(ram.HELD_OUT_GAMES)


def test_games_without_rooms_have_one() -> None:
    for game in set(ram.RAM_GAMES) - set(ram.ROOM_GAMES):
        assert not ram.room(game, np.full((2, 128), 255, np.uint8)).any()


def test_unknown_game_names_those_with_truth() -> None:
    with pytest.raises(ValueError, match=r"^Pong .*Freeway, .*Pitfall$"):
        ram.player_box("Pong", np.zeros(128, np.uint8))


def test_memory_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        ram.player_box("Freeway", np.zeros((128, 2), np.uint8))
