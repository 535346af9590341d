"""ψ(s) = (x, y, c, R): where the agent is, in which room, with what score (section 3.3). Nothing else computes it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from coex.bonuses import BonusContext
from coex.config.bonuses import CoexConfig
from coex.envs import ram
from coex.method.adm import AttentiveDynamicsModel, RolloutPass
from coex.method.locator import ADMLocator
from coex.method.rooms import NEW_ROOM, RoomClusters
from coex.rollouts.rollout import Transitions

_ROOMS_VIEW = "rgb84"
Ints = NDArray[np.int64]


class States(NamedTuple):
    """ψ of the pictures that the steps of a rollout led to."""

    parts: dict[str, Ints]  # (T, N) by letter: x, y, c, R
    attention: Tensor | None  # (T, N, 81) ᾱ, where the attentive dynamics model locates
    features: RolloutPass | None  # what fitting the model may go on from

    def keys(self, letters: str) -> Ints:
        """(T·N, |ψ|), time-major, as Algorithm 1 counts."""
        return np.stack([self.parts[letter].ravel() for letter in letters], axis=-1)


class StateEncoder:
    """Turns transitions into states, by the attentive dynamics model and the clusters, or by the truth."""

    def __init__(self, config: CoexConfig, context: BonusContext) -> None:
        self.config = config
        self._game = context.game
        self._generator = np.random.default_rng(context.seed)
        self.rooms = RoomClusters(config.clusters) if config.needs_clusters else None
        self.locator: ADMLocator | None = None
        if config.needs_adm:
            self.locator = ADMLocator(AttentiveDynamicsModel(context.num_actions, config.adm), context.device)

    def encode(self, rollout: Transitions, *, founds_rooms: bool = True) -> States:
        """Returns the states; those in rooms of which there is no cluster found one, or are in room −1."""
        parts: dict[str, Ints] = {}
        attention, features = None, None
        if self.locator is not None:
            cells, attention, features = self.locator.locate(rollout)
        elif self.config.needs_location:
            cells = self._locate_without_model(rollout)
        if self.config.needs_location:
            parts["x"], parts["y"] = cells[..., 0], cells[..., 1]
        if "c" in self.config.state:
            parts["c"] = self._rooms(rollout, founds_rooms=founds_rooms)
        if "R" in self.config.state:
            parts["R"] = np.floor(rollout.scores.numpy()).astype(np.int64)
        return States(parts, attention, features)

    def forget_episodes(self) -> None:
        """Forgets the attention on the frames before."""
        if self.locator is not None:
            self.locator.forget_attention()

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"generator": self._generator.bit_generator.state}
        if self.rooms is not None:
            state["clusters"] = self.rooms.state_dict()
        if self.locator is not None:
            state["locator"] = self.locator.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._generator.bit_generator.state = state["generator"]
        if self.rooms is not None:
            self.rooms.load_state_dict(state["clusters"])
        if self.locator is not None:
            self.locator.load_state_dict(state["locator"])

    def _locate_without_model(self, rollout: Transitions) -> Ints:
        """(T, N, 2) the true cells, or, as a control, random ones (appendix F)."""
        if self.config.locator == "random":
            return self._generator.integers(self.config.adm.grid, size=(*rollout.actions.shape, 2))
        return ram.player_grid_cell(self._game, rollout.next_view("ram").numpy(), self.config.adm.grid)

    def _rooms(self, rollout: Transitions, *, founds_rooms: bool) -> Ints:
        """(T, N) the room's name, by its cluster or by RAM."""
        if self.rooms is None:
            return ram.room(self._game, rollout.next_view("ram").numpy())
        embeddings = np.concatenate([self.rooms.embed(frames) for frames in rollout.next_view_parts(_ROOMS_VIEW)])
        names = np.full(len(embeddings), NEW_ROOM)
        valid = slice(None) if rollout.valid is None else rollout.valid.flatten().numpy()
        names[valid] = (self.rooms.assign if founds_rooms else self.rooms.find)(embeddings[valid])
        return names.reshape(tuple(rollout.actions.shape))
