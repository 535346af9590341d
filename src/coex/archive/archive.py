"""One saved game for each cell, and which of them to play on from."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coex.archive.ways import Way, pack_bytes, pack_ways, unpack_bytes, unpack_ways
from coex.envs.pool import Start


class Cell(NamedTuple):
    """What tells two saved games apart; the first two are its scene."""

    room: int
    progress: int  # the score, by its powers of two: a key in hand is progress, but not every point is a cell's own
    column: int
    row: int
    things: int = 0  # a name for what is seen away from the player, where that tells cells apart

    @property
    def scene(self) -> tuple[int, int]:
        return self[:2]


def progress_of(score: float) -> int:
    """Returns the score's size in bits."""
    return int(max(score, 0)).bit_length()


@dataclass
class Entry:
    """A cell's saved game."""

    way: Way
    score: float
    saved: bytes  # empty where games are returned to by playing their way
    is_safe: bool  # the life went on for a while
    visits: int = 0

    def start(self) -> Start:
        return Start(self.way.number, self.way.path(), self.saved)


class Archive:
    """Saved games by cell."""

    def __init__(self) -> None:
        self.entries: dict[Cell, Entry] = {}

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def rooms(self) -> int:
        return len({cell.room for cell in self.entries})

    def choose(self, count: int, generator: np.random.Generator) -> list[Cell]:
        """Draws cells: a level of progress as its rank, a level's scenes and a scene's cells as 1/their visits."""
        cells = list(self.entries)
        visits = np.array([self.entries[cell].visits for cell in cells], float)
        scene_visits: dict[tuple[int, int], float] = defaultdict(float)
        rarity: dict[tuple[int, int], float] = defaultdict(float)
        for cell, seen in zip(cells, visits.tolist(), strict=True):
            scene_visits[cell.scene] += seen
            rarity[cell.scene] += 1 / seen
        level_rarity: dict[int, float] = defaultdict(float)
        for (_, progress), seen in scene_visits.items():
            level_rarity[progress] += 1 / seen
        ranks = {progress: rank for rank, progress in enumerate(sorted(level_rarity), start=1)}
        shares = [
            ranks[cell.progress] / level_rarity[cell.progress] / scene_visits[cell.scene] / rarity[cell.scene]
            for cell in cells
        ]
        weights = np.array(shares) / visits
        picks = generator.choice(len(cells), size=count, p=weights / weights.sum())
        return [cells[pick] for pick in picks.tolist()]

    def state_dict(self) -> dict[str, Any]:
        entries = list(self.entries.values())
        return {
            "cells": np.array(list(self.entries), np.int64).reshape(-1, len(Cell._fields)),
            "ways": pack_ways([entry.way for entry in entries]),
            "scores": np.array([entry.score for entry in entries]),
            "saved": pack_bytes(entry.saved for entry in entries),
            "is_safe": np.array([entry.is_safe for entry in entries], bool),
            "visits": np.array([entry.visits for entry in entries], np.int64),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        columns = (
            unpack_ways(state["ways"]),
            state["scores"].tolist(),
            unpack_bytes(state["saved"]),
            state["is_safe"].tolist(),
            state["visits"].tolist(),
        )
        cells = [Cell(*cell) for cell in state["cells"].tolist()]
        self.entries = {cell: Entry(*row) for cell, row in zip(cells, zip(*columns, strict=True), strict=True)}
