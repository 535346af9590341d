"""One picture of every room, so that a report can show where the visits were. Never seen by the agent."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coex.envs import POLICY_SHAPE
from coex.rollouts.rollout import Rollout

MOST_ROOMS = 200  # 7 kB each; the oldest are kept

_SHAPE = POLICY_SHAPE[:2]


class RoomAlbum:
    """The newest grey frame (84, 84) of each room, taken in the 1st, 2nd, 4th, 8th, … rollout that shows it.

    The very first may still show the room before: Montezuma's RAM names the next room a step before it is drawn.
    """

    def __init__(self) -> None:
        self.frames: dict[int, NDArray[np.uint8]] = {}
        self._rollouts: dict[int, int] = {}  # in which the room was seen

    def add(self, rooms: NDArray[np.int64], rollout: Rollout) -> None:
        """Takes in a rollout, given (T, N) names of the rooms that its steps led to."""
        finals = {(t, n): k for k, (t, n) in enumerate(rollout.final_index.tolist())}

        def show(t: int, n: int) -> NDArray[np.uint8]:
            ended = finals.get((t, n))
            shown = rollout.views["policy"][t + 1, n] if ended is None else rollout.final_views["policy"][ended]
            return shown[..., -1].numpy()

        self._add(rooms, show)

    def add_frames(self, rooms: NDArray[np.int64], frames: NDArray[np.uint8]) -> None:
        """Takes in (L, 84, 84) frames, given the (L,) names of their rooms."""
        self._add(rooms, lambda t: frames[t])

    def _add(self, rooms: NDArray[np.int64], show: Callable[..., NDArray[np.uint8]]) -> None:
        for room in np.unique(rooms).tolist():
            if room not in self._rollouts and len(self._rollouts) == MOST_ROOMS:
                continue
            self._rollouts[room] = seen = self._rollouts.get(room, 0) + 1
            if seen & (seen - 1) == 0:  # a power of two
                newest = (int(indices[-1]) for indices in np.nonzero(rooms == room))
                self.frames[room] = show(*newest).copy()  # (84, 84)

    def state_dict(self) -> dict[str, Any]:
        return {
            "rooms": np.array(list(self._rollouts), np.int64),
            "rollouts": np.array(list(self._rollouts.values()), np.int64),
            "frames": np.array([self.frames[room] for room in self._rollouts], np.uint8).reshape(-1, *_SHAPE),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        rooms = state["rooms"].tolist()
        self._rollouts = dict(zip(rooms, state["rollouts"].tolist(), strict=True))
        self.frames = dict(zip(rooms, state["frames"].copy(), strict=True))
