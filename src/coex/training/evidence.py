"""How right the learned location and rooms are, where a game's RAM tells. Never seen by the agent."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

import coex.envs.ram as ram

ARI_WINDOW, LONG_ARI_WINDOW = 100, 5_000  # observations: the paper's, and one that holds several rooms


def location_errors(
    game: str, locations: NDArray[Any], memory: NDArray[np.uint8], grid: int = ram.GRID
) -> NDArray[np.float64]:
    """Distance in cells between those predicted (…, 2) and the player's centre, where it is on the screen -> (K,).

    Where the player has a vehicle as well, which obeys the same actions: to the nearer of the two.
    """
    truth = ram.controlled_cells(game, memory, grid)  # (…, P, 2)
    # A cell's place is its centre.
    errors = np.linalg.norm(locations[..., None, :] + 0.5 - truth, axis=-1).min(axis=-1)
    return errors[ram.player_visible(game, memory)]


class RoomEvidence:
    """Recent rooms by cluster and by RAM, and all the true rooms that were reached."""

    def __init__(self, game: str) -> None:
        self._game = game
        self._recent: deque[tuple[int, int]] = deque(maxlen=LONG_ARI_WINDOW)  # (cluster, true room)
        self._reached: set[int] = set()

    def add(self, clusters: NDArray[np.int64], memory: NDArray[np.uint8]) -> None:
        """(M,) cluster names and (M, 128) RAM, in the order of Algorithm 1."""
        rooms = ram.room(self._game, memory)
        self._reached.update(np.unique(rooms).tolist())
        self._recent.extend(zip(clusters.tolist(), rooms.tolist(), strict=True))

    def rooms(self) -> dict[str, Any]:
        return {"rooms/true": len(self._reached), "rooms/reached": sorted(self._reached)}

    def agreement(self) -> dict[str, float | None]:
        recent = np.array(self._recent).reshape(-1, 2)
        return {"rooms/ari": _ari(recent[-ARI_WINDOW:]), "rooms/ari_long": _ari(recent)}

    def state_dict(self) -> dict[str, Any]:
        return {"recent": np.array(self._recent).reshape(-1, 2), "reached": sorted(self._reached)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._recent = deque(map(tuple, state["recent"].tolist()), maxlen=LONG_ARI_WINDOW)
        self._reached = set(state["reached"])


def _ari(pairs: NDArray[np.int64]) -> float | None:
    return float(adjusted_rand_score(pairs[:, 1], pairs[:, 0])) if len(pairs) else None
