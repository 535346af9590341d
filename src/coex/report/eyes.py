"""What a checkpoint's bonus makes of a picture. Looking changes nothing: no visit is counted, no cluster founded."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.bonuses.simhash import SimHashBonus
from coex.config.bonuses import CoexConfig, SimHashConfig
from coex.config.run import RunConfig
from coex.envs import ram
from coex.envs.views import Views
from coex.method.adm import GRID, AttentiveDynamicsModel
from coex.method.counts import VisitCounts
from coex.method.rooms import ObservationClusters

NEW_ROOM = -1  # a picture that would found a cluster


@dataclass(frozen=True)
class Sight:
    """Parts that a method does not have are None."""

    attention: NDArray[np.float64] | None = None  # (9, 9) ᾱ
    cell: tuple[int, int] | None = None  # (x, y)
    room: int | None = None
    visits: int | None = None  # N of this state in training

    @property
    def bonus(self) -> float | None:
        """What a visit now would earn, before its weight: the count includes the visit itself."""
        return None if self.visits is None else (self.visits + 1) ** -0.5


class Eyes(Protocol):
    """`look` at the pictures of an episode one after the other; `begin_episode` forgets the one before."""

    def begin_episode(self) -> None: ...
    def look(self, views: Views, score: float) -> Sight: ...


def open_eyes(config: RunConfig, state: Any, num_actions: int) -> Eyes:
    """Eyes for the saved `state` of a run's bonus; for a bonus that has none here, or no bonus, they see nothing."""
    match config.bonus:
        case CoexConfig():
            return CoexEyes(config.bonus, config.game, state, num_actions)
        case SimHashConfig():
            return SimHashEyes(config.bonus, state)
        case _:
            return NoEyes()


class NoEyes:
    """See nothing but the game."""

    def begin_episode(self) -> None:
        pass

    def look(self, views: Views, score: float) -> Sight:
        return Sight()


class SimHashEyes:
    """Sees how often the hashed picture was met."""

    def __init__(self, config: SimHashConfig, state: dict[str, Any]) -> None:
        self._bonus = SimHashBonus(config, np.random.SeedSequence(0))
        self._bonus.load_state_dict(state)
        self._counts = VisitCounts(config.bits // 64)
        self._counts.load_state_dict(state["counts"])

    def begin_episode(self) -> None:
        pass

    def look(self, views: Views, score: float) -> Sight:
        keys = self._bonus.hash(torch.from_numpy(views["small"])[None])
        return Sight(visits=int(self._counts.lookup(keys)[0]))


class CoexEyes:
    """Sees ψ(s) = (x, y, c, R) as training would."""

    def __init__(self, config: CoexConfig, game: str, state: dict[str, Any], num_actions: int) -> None:
        self._config = config
        self._game = game
        self._counts = VisitCounts(len(config.state))
        self._counts.load_state_dict(state["counts"])
        self._clusters = ObservationClusters(config.clusters) if config.needs_clusters else None
        if self._clusters is not None:
            self._clusters.load_state_dict(state["clusters"])
        self._model: AttentiveDynamicsModel | None = None
        if config.needs_adm:
            self._model = AttentiveDynamicsModel(num_actions, config.adm)
            self._model.load_state_dict(state["locator"]["model"])
        self._smoothed: Tensor | None = None  # (81,) ᾱ of the picture before

    def begin_episode(self) -> None:
        self._smoothed = None

    def look(self, views: Views, score: float) -> Sight:
        attention = self._attend(views)
        cell = self._locate(views, attention)
        room = self._room(views) if "c" in self._config.state else None
        parts = {"x": cell and cell[0], "y": cell and cell[1], "c": room, "R": int(np.floor(score))}
        key = [parts[letter] for letter in self._config.state]
        visits = None if None in key else int(self._counts.lookup(np.array([key], np.int64))[0])
        return Sight(attention, cell, room, visits)

    @torch.no_grad()
    def _attend(self, views: Views) -> NDArray[np.float64] | None:
        if self._model is None:
            return None
        alpha = self._model.attend(self._model.encode(torch.from_numpy(views["adm"])[None]))[0]  # (81,)
        before = alpha if self._smoothed is None else self._smoothed
        self._smoothed = before.lerp(alpha, alpha.max())  # as in `smooth_attention`
        return self._smoothed.reshape(GRID, GRID).double().numpy()

    def _locate(self, views: Views, attention: NDArray[np.float64] | None) -> tuple[int, int] | None:
        """None for the locator of the control experiment, which draws places at random."""
        if attention is not None:
            y, x = divmod(int(attention.argmax()), GRID)
            return x, y
        if self._config.needs_location and self._config.locator == "ram":
            x, y = ram.player_grid_cell(self._game, views["ram"]).tolist()
            return x, y
        return None

    def _room(self, views: Views) -> int:
        if self._clusters is None:
            return int(ram.room(self._game, views["ram"]))
        embedding = self._clusters.embed(torch.from_numpy(views["context"])[None])
        room = int(self._clusters.find(embedding)[0])
        return NEW_ROOM if room < 0 else room
