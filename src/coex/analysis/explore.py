"""Trajectories through many rooms: saved games, and play from the rare ones (after Go-Explore).

A tool of evaluation only: it reads RAM and restores emulator states, which no agent that we train may do.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coex.envs import RAM_SHAPE, ram
from coex.envs.atari import AtariGame
from coex.envs.game_config import GameConfig
from coex.envs.views import Frame

BURST_STEPS = 160  # played from one saved game; with 80, Hero's second level was not left in 100,000 steps
KEEP_ACTION = 0.9  # chance that a step takes the action of the last: ladders and corridors are long
PLACE_PIXELS = 8


class Place(NamedTuple):
    """What tells two saved games apart; the first two are its scene."""

    room: int
    progress: int
    column: int
    row: int

    @property
    def scene(self) -> tuple[int, int]:
        return self[:2]


class SavedPlace(NamedTuple):
    """A game to go on from, and its score."""

    state: dict[str, Any]
    score: float


class SavedPlaces:
    """One saved game for each place, and how often the place was visited since."""

    def __init__(self) -> None:
        self._saved: dict[Place, SavedPlace] = {}
        self._visits: dict[Place, int] = {}

    def __len__(self) -> int:
        return len(self._saved)

    def visit(self, place: Place, score: float, state: Callable[[], dict[str, Any]]) -> None:
        """Counts it; `state` is asked for if the place is new."""
        if place not in self._saved:
            self._saved[place] = SavedPlace(state(), score)
        self._visits[place] = self._visits.get(place, 0) + 1

    def chances(self) -> dict[Place, float]:
        """Of being chosen: a scene's is as 1/its visits, and within the scene a place's is as 1/its own."""
        visits: dict[tuple[int, int], int] = defaultdict(int)
        rarity: dict[tuple[int, int], float] = defaultdict(float)
        for place, count in self._visits.items():
            visits[place.scene] += count
            rarity[place.scene] += 1 / count
        total = sum(1 / count for count in visits.values())
        return {
            place: 1 / visits[place.scene] / total / count / rarity[place.scene]
            for place, count in self._visits.items()
        }

    def choose(self, generator: np.random.Generator) -> SavedPlace:
        chances = self.chances()
        index = generator.choice(len(chances), p=np.fromiter(chances.values(), float))
        return self._saved[list(chances)[index]]


def explore(game: str, seed: int) -> Iterator[tuple[Frame, NDArray[np.uint8]]]:
    """Every step's `context` view (84, 84, 3) and RAM (128,), without end; both are valid until the next."""
    game_seed, acting_seed = np.random.SeedSequence(seed).spawn(2)
    generator = np.random.default_rng(acting_seed)
    emulator = AtariGame(game, GameConfig(), game_seed)
    views = {"rgb84": np.zeros((84, 84, 3), np.uint8), "ram": np.zeros(RAM_SHAPE, np.uint8)}
    archive = SavedPlaces()
    emulator.reset()
    emulator.paint(views, fresh=True)
    archive.visit(place_of(game, views["ram"], score=0.0), 0.0, lambda: save(emulator))
    while True:
        saved = archive.choose(generator)
        emulator.load_state_dict(saved.state)
        for _ in _burst(game, emulator, views, archive, saved.score, generator):
            yield views["rgb84"], views["ram"]


def _burst(
    game: str,
    emulator: AtariGame,
    views: dict[str, Frame],
    archive: SavedPlaces,
    score: float,
    generator: np.random.Generator,
) -> Iterator[None]:
    """Random play that ends with the life; each place it comes through counts once."""
    lives, passed = emulator.lives, set()
    action = int(generator.integers(len(emulator.action_names)))
    for _ in range(BURST_STEPS):
        if generator.random() >= KEEP_ACTION:
            action = int(generator.integers(len(emulator.action_names)))
        reward, terminated, truncated = emulator.step(action)
        score += reward
        emulator.paint(views, fresh=False)
        yield
        if terminated or truncated or emulator.lives < lives:
            return
        place = place_of(game, views["ram"], score)
        # A game saved in the middle of a death or of a change of rooms is a poor place to go on from.
        if place not in passed and ram.player_visible(game, views["ram"]):
            passed.add(place)
            archive.visit(place, score, lambda: save(emulator))


def save(emulator: AtariGame) -> dict[str, Any]:
    """A state to restore before a step, which draws both screens anew: without them it takes 14 KB, not 81."""
    return emulator.state_dict() | {"screens": np.zeros((), np.uint8)}


def place_of(game: str, memory: NDArray[np.uint8], score: float) -> Place:
    """The score counts by its powers of two: a key in hand is progress, but not every point is a place of its own."""
    x, y, *_ = ram.player_box(game, memory).tolist()
    progress = int(max(score, 0)).bit_length()
    return Place(int(ram.room(game, memory)), progress, x // PLACE_PIXELS, y // PLACE_PIXELS)
