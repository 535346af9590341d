"""Real games that the policy plays: what it did well by itself, and where to search from when it failed."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coex.archive.lessons import STACK, Segment

SAVE_EVERY = 4  # steps


@dataclass
class RealGame:
    """A game from a real start, step by step."""

    number: int  # of its start
    frames: list[NDArray[np.uint8]]  # (84, 84): the policy saw frames t to t + 3 before step t
    seen: list[tuple[NDArray[np.int64], NDArray[np.uint8]]]  # the cell and the look before each step
    actions: bytearray = field(default_factory=bytearray)
    rewards: list[float] = field(default_factory=list)
    views: list[dict[str, NDArray[np.uint8]]] = field(default_factory=list)  # not yet looked at
    losses: list[int] = field(default_factory=list)  # steps that lost a life, or the game
    failures: list[tuple[int, int]] = field(default_factory=list)  # first step of the life, step of the failure
    new_at: int = 0  # the step that led to a new place last
    places: set[tuple[int, ...]] = field(default_factory=set)
    is_over: bool = False

    @property
    def life_from(self) -> int:
        """The first step of the life that is played."""
        return self.losses[-1] + 1 if self.losses else 0

    def scores(self) -> NDArray[np.float64]:
        """(L + 1,) before each step, and at the end."""
        return np.concatenate([[0.0], np.cumsum(self.rewards)])

    def lose(self) -> None:
        """Takes in that the last step lost a life."""
        self.failures.append((self.life_from, len(self.actions) - 1))
        self.losses.append(len(self.actions) - 1)

    def stretches(self, longest: int) -> list[Segment]:
        """Returns what led from a life's beginning or a reward to the next reward that no life was paid for."""
        rewarded = [t for t, reward in enumerate(self.rewards) if reward > 0]
        begins = [0, *(t + 1 for t in self.losses), *(t + 1 for t in rewarded)]
        scores, found = self.scores(), []
        for t in rewarded:
            first = max(begin for begin in begins if begin <= t)
            if t in self.losses or t + 1 - first > longest:
                continue
            cells, looks = zip(*self.seen[first : t + 1], strict=True)
            frames = np.stack(self.frames[first : t + STACK])
            actions = bytes(self.actions[first : t + 1])
            found.append(Segment(frames, actions, np.stack(cells), np.stack(looks), float(scores[first])))
        return found


def step_before(failure: tuple[int, int], back: int) -> int:
    """Returns the saved step at least so many before a failure, but none of the life before."""
    life_from, at = failure
    return max((at - back) // SAVE_EVERY * SAVE_EVERY, life_from)
