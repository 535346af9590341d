"""Where an agent has been: the counts of a checkpoint, by room and by state."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coex.config.bonuses import CoexConfig
from coex.envs import ram
from coex.envs.views import Frame
from coex.method.adm import GRID
from coex.runs.checkpoints import Saved
from coex.runs.resume import saved_config

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class State:
    """One ψ(s) and its count; letters that ψ does not have are missing."""

    parts: dict[str, int]
    count: int

    @property
    def room(self) -> int:
        return self.parts.get("c", 0)


@dataclass(frozen=True)
class Room:
    """A room's visits; `heat` (9, 9) is [y, x], or None when ψ has no location."""

    name: int
    visits: int
    states: int
    heat: Ints | None


@dataclass(frozen=True)
class Visits:
    """All that was counted until a checkpoint."""

    step: int
    letters: str  # of ψ
    locator: str
    keys: Ints  # (S, |ψ|), in the order of their first visits
    counts: Ints  # (S,)
    frames: dict[int, Frame]  # a picture of each room
    true_rooms: dict[int, int]  # the RAM room that a cluster mostly was, lately; where RAM tells

    def rooms(self) -> list[Room]:
        """The most visited first."""
        names = self._part("c")
        found = []
        for name in np.unique(names).tolist():
            inside = names == name
            found.append(Room(name, int(self.counts[inside].sum()), int(inside.sum()), self._heat(inside)))
        return sorted(found, key=lambda room: -room.visits)

    def most_visited(self, limit: int) -> list[State]:
        return self._states(np.argsort(-self.counts, kind="stable")[:limit])

    def rarest(self, limit: int) -> list[State]:
        """Of those that were visited as rarely, the newest first."""
        return self._states(np.lexsort((-np.arange(len(self.counts)), self.counts))[:limit])

    def _heat(self, inside: NDArray[np.bool_]) -> Ints | None:
        if not {"x", "y"} <= set(self.letters):
            return None
        heat = np.zeros((GRID, GRID), np.int64)
        np.add.at(heat, (self._part("y")[inside], self._part("x")[inside]), self.counts[inside])
        return heat

    def _part(self, letter: str) -> Ints:
        return self.keys[:, self.letters.index(letter)] if letter in self.letters else np.zeros_like(self.counts)

    def _states(self, indices: Ints) -> list[State]:
        return [
            State(dict(zip(self.letters, self.keys[index].tolist(), strict=True)), int(self.counts[index]))
            for index in indices
        ]


def read_visits(saved: Saved) -> Visits | None:
    """What a checkpoint of a CoEX run counted; None for other methods."""
    config = saved_config(saved)
    if not isinstance(config.bonus, CoexConfig):
        return None
    state: dict[str, Any] = saved.state["agent"]["bonus"]
    record = saved.state["agent"]["diagnostics"]
    album = record["album"]
    met: dict[int, Counter[int]] = {}
    if config.bonus.needs_clusters and config.game in ram.ROOM_GAMES:
        for cluster, room in record["evidence"]["recent"].tolist():
            met.setdefault(cluster, Counter())[room] += 1
    return Visits(
        step=saved.manifest.step,
        letters=config.bonus.state,
        locator=config.bonus.locator,
        keys=state["counts"]["keys"].astype(np.int64).reshape(-1, len(config.bonus.state)),
        counts=state["counts"]["counts"].astype(np.int64),
        frames=dict(zip(album["rooms"].tolist(), album["frames"], strict=True)),
        true_rooms={cluster: rooms.most_common(1)[0][0] for cluster, rooms in met.items()},
    )
