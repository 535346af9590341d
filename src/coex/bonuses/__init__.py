"""What makes a rare state worth a visit: one file a bonus, one contract."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.rollouts.rollout import Transitions

Metrics = dict[str, float]
EXPLODED = 1e6  # a bonus or a loss of that size is a model's that has diverged: no weight makes it worth learning from


class BonusContext(NamedTuple):
    """What a bonus is made for, besides its own settings."""

    game: str
    num_actions: int
    seed: np.random.SeedSequence
    device: torch.device


class Rewarded(NamedTuple):
    """What a bonus makes of a rollout."""

    bonus: Tensor  # (T, N) float32, unscaled
    states: Mapping[str, NDArray[np.int64]] = {}  # (T, N) each: what was counted, for those who measure it
    memo: Any = None  # what `update` needs of it
    # For those who watch, where the bonus has them:
    attention: Tensor | None = None  # (T, N, 81) ᾱ
    visits: NDArray[np.int64] | None = None  # (T, N) N of the states, this visit included


class Inspection(NamedTuple):
    """What a bonus makes of one picture; parts that it does not have are None."""

    attention: NDArray[np.float64] | None = None  # (9, 9) ᾱ
    cell: tuple[int, int] | None = None  # (x, y)
    room: int | None = None
    visits: int | None = None  # N of this state in training

    @property
    def bonus(self) -> float | None:
        """What a visit now would earn, before its weight: the count includes the visit itself."""
        return None if self.visits is None else (self.visits + 1) ** -0.5


class Bonus(ABC):
    """A reward for what the agents reached, worked out after the rollout in one batch.

    It is made with its settings and a `BonusContext`. A class from outside names its settings, a frozen dataclass, as
    `Config`; their method `views(game)` returns the names and shapes of the pictures that it looks at.

    Where several processes share a run, only the first has the bonus. It sees the whole rollout of all environments,
    as it would alone, and its rewards and weights must follow from its settings, its seed and the rollouts it has seen
    and nothing else: so any model, moment or hash that is fitted in the order of (t, n) is the same for any number.
    """

    skips_invalid = False  # whether it leaves out the steps that `Transitions.valid` says no action led to

    @property
    def ready(self) -> bool:
        """Whether its rewards can be trusted; until then, the policy is held uniform."""
        return True

    @abstractmethod
    def reward(self, rollout: Transitions) -> Rewarded:
        """Rewards each step of a rollout, and counts it."""

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        """Fits the bonus's own networks on a rollout that `reward` has seen, and returns metrics."""
        return {}

    def snapshot(self) -> dict[str, Any]:
        """Returns what only a log point needs, such as the sizes of tables."""
        return {}

    def forget_episodes(self) -> None:  # noqa: B027 - most bonuses carry nothing
        """Forgets what is carried from step to step: the environments have begun new episodes."""

    def inspect(self, step: Transitions) -> Inspection:
        """Returns what the bonus makes of the picture that one step of one environment led to; counts nothing."""
        return Inspection()

    def attend(self, views: Mapping[str, Tensor]) -> Tensor | None:
        """Returns (M, 9, 9) where it looks in M pictures, each by itself, if it looks anywhere; changes nothing."""
        return None

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Returns everything that changes, as nested dictionaries and lists of arrays, tensors, numbers and text."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what `state_dict` returned."""
