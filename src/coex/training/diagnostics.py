"""Measures a run by what the agent never sees: the game's RAM; and keeps a picture of every room for reports."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coex.config.run import RunConfig
from coex.envs import RAM_SHAPE, Shape, ram
from coex.rollouts.rollout import Rollout
from coex.training.album import RoomAlbum
from coex.training.evidence import RoomEvidence, location_errors

States = Mapping[str, NDArray[np.int64]]


def diagnostic_views(config: RunConfig) -> dict[str, Shape]:
    """Returns what is looked at for the record: RAM, where it tells and a bonus has something to compare with it."""
    return {"ram": RAM_SHAPE} if config.bonus is not None and config.game in ram.RAM_GAMES else {}


class Diagnostics:
    """Compares the states that a bonus counted with the truth, rollout after rollout."""

    def __init__(self, game: str, grid: int = ram.GRID) -> None:
        self._game = game
        self._grid = grid
        self._evidence = RoomEvidence(game) if game in ram.RAM_GAMES else None
        self.album = RoomAlbum()

    def observe(self, rollout: Rollout, states: States) -> dict[str, float]:
        """Takes in a rollout and the (T, N) parts of its states; returns the metrics of this rollout."""
        rooms = states.get("c", np.zeros(tuple(rollout.actions.shape), np.int64))  # (T, N)
        if states:
            self.album.add(rooms, rollout)
        return {} if self._evidence is None else self._compare(rooms, states, rollout.next_view("ram").numpy())

    def observe_play(
        self, states: States, frames: NDArray[np.uint8], memory: NDArray[np.uint8] | None
    ) -> dict[str, float]:
        """Does the same for (L,) steps of one game that led to (L, 84, 84) frames and (L, 128) RAM."""
        rooms = states.get("c", np.zeros(len(frames), np.int64))
        self.album.add_frames(rooms, frames)
        return {} if memory is None else self._compare(rooms, states, memory)

    def _compare(self, rooms: NDArray[np.int64], states: States, memory: NDArray[np.uint8]) -> dict[str, float]:
        assert self._evidence is not None
        self._evidence.add(rooms.ravel(), memory.reshape(-1, memory.shape[-1]))
        if "x" not in states or "y" not in states:
            return {}
        errors = location_errors(self._game, np.stack([states["x"], states["y"]], axis=-1), memory, self._grid)
        return {"adm/distance": float(errors.mean())} if len(errors) else {}

    def snapshot(self, *, has_clusters: bool) -> dict[str, Any]:
        """Returns what only a log point needs: the rooms reached, and how well clusters name them."""
        if self._evidence is None:
            return {}
        return self._evidence.rooms() | (self._evidence.agreement() if has_clusters else {})

    def state_dict(self) -> dict[str, Any]:
        state = {"album": self.album.state_dict()}
        return state if self._evidence is None else state | {"evidence": self._evidence.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.album.load_state_dict(state["album"])
        if self._evidence is not None:
            self._evidence.load_state_dict(state["evidence"])
