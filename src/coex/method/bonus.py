"""Contingency-aware exploration: counts of (x, y, c, R), where the agent is, in which room, with what score."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.bonuses import Metrics
from coex.config.bonuses import CoexConfig
from coex.envs import ram
from coex.errors import UsageError
from coex.method.adm import GRID, AttentiveDynamicsModel
from coex.method.counts import VisitCounts
from coex.method.locator import ADMLocator
from coex.method.rooms import ObservationClusters
from coex.rollouts.rollout import Rollout
from coex.training.album import RoomAlbum
from coex.training.evidence import RoomEvidence, location_errors


def coex_views(config: CoexConfig, game: str) -> list[str]:
    """The views the bonus looks at. RAM is for the record, unless the configuration asks for the truth."""
    has_truth = game in ram.RAM_GAMES
    if not has_truth and ((config.needs_location and config.locator == "ram") or config.rooms == "ram"):
        raise UsageError(f"{game} has no RAM truth; these games have it: {', '.join(ram.RAM_GAMES)}")
    wanted = {"adm": config.needs_adm, "context": config.needs_clusters, "ram": has_truth}
    return [view for view, is_wanted in wanted.items() if is_wanted]


class CoexBonus:
    """1/√N of ψ(s) = (x, y, c, R). `update` follows `reward`, for the same rollout."""

    def __init__(
        self,
        config: CoexConfig,
        game: str,
        num_actions: int,
        seed: np.random.SeedSequence,
        device: torch.device,
    ) -> None:
        self.config = config
        self._game = game
        self._generator = np.random.default_rng(seed)
        self._counts = VisitCounts(len(config.state))
        self._clusters = ObservationClusters(config.clusters) if config.needs_clusters else None
        self._evidence = RoomEvidence(game) if game in ram.RAM_GAMES else None
        self._album = RoomAlbum()
        self._metrics: Metrics = {}
        self._locator: ADMLocator | None = None
        if config.needs_adm:
            self._locator = ADMLocator(AttentiveDynamicsModel(num_actions, config.adm), device)

    @property
    def ready(self) -> bool:
        """Whether the player has been found: a location that is wrong rewards noise."""
        return self._locator is None or self._locator.has_found

    def reward(self, rollout: Rollout) -> Tensor:
        parts: dict[str, NDArray[np.int64]] = {}
        if self.config.needs_location:
            locations = self._locate(rollout)  # (T, N, 2)
            parts["x"], parts["y"] = locations[..., 0], locations[..., 1]
        if "c" in self.config.state:
            parts["c"] = self._rooms(rollout)
        if "R" in self.config.state:
            parts["R"] = np.floor(rollout.scores.numpy()).astype(np.int64)
        keys = np.stack([parts[letter] for letter in self.config.state], axis=-1)  # (T, N, |ψ|)
        counts = self._counts.visit(keys.reshape(-1, len(self.config.state)))  # time-major, as in Algorithm 1
        bonus = torch.from_numpy(counts).double().rsqrt().float().view(rollout.actions.shape)
        rooms = parts.get("c", np.zeros(bonus.shape, np.int64))  # (T, N)
        self._album.add(rooms, rollout)
        self._look_at_truth(rollout, rooms, parts)
        self._metrics["bonus/mean"] = bonus.mean().item()
        return bonus

    def update(self, rollout: Rollout) -> Metrics:
        metrics, self._metrics = self._metrics, {}
        return metrics | (self._locator.fit(rollout) if self._locator else {})

    def snapshot(self) -> dict[str, Any]:
        figures: dict[str, Any] = {"counts/states": len(self._counts)}
        if self._clusters is not None:
            figures["rooms/clusters"] = len(self._clusters)
        if self._evidence is not None:
            figures |= self._evidence.rooms()
            if self._clusters is not None:
                figures |= self._evidence.agreement()
        return figures

    def forget_episodes(self) -> None:
        if self._locator is not None:
            self._locator.forget_attention()

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "counts": self._counts.state_dict(),
            "generator": self._generator.bit_generator.state,
            "album": self._album.state_dict(),
        }
        if self._clusters is not None:
            state["clusters"] = self._clusters.state_dict()
        if self._evidence is not None:
            state["evidence"] = self._evidence.state_dict()
        if self._locator is not None:
            state["locator"] = self._locator.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._counts.load_state_dict(state["counts"])
        self._generator.bit_generator.state = state["generator"]
        if "album" in state:  # the first checkpoints had none
            self._album.load_state_dict(state["album"])
        if self._clusters is not None:
            self._clusters.load_state_dict(state["clusters"])
        if self._evidence is not None:
            self._evidence.load_state_dict(state["evidence"])
        if self._locator is not None:
            self._locator.load_state_dict(state["locator"])

    def _locate(self, rollout: Rollout) -> NDArray[np.int64]:
        """(T, N, 2) the cell (x, y) of the agent in the picture that each step led to."""
        if self.config.locator == "random":
            return self._generator.integers(GRID, size=(*rollout.actions.shape, 2))
        if self.config.locator == "ram":
            return ram.player_grid_cell(self._game, rollout.next_view("ram").numpy())
        assert self._locator is not None
        return self._locator.locate(rollout)

    def _rooms(self, rollout: Rollout) -> NDArray[np.int64]:
        """(T, N) the room's name, by its cluster or by RAM."""
        if self._clusters is None:
            return ram.room(self._game, rollout.next_view("ram").numpy())
        embeddings = [self._clusters.embed(frames) for frames in rollout.next_view_parts("context")]
        return self._clusters.assign(np.concatenate(embeddings)).reshape(tuple(rollout.actions.shape))

    def _look_at_truth(self, rollout: Rollout, rooms: NDArray[np.int64], parts: dict[str, NDArray[np.int64]]) -> None:
        if self._evidence is None:
            return
        memory = rollout.next_view("ram").numpy()  # (T, N, 128)
        self._evidence.add(rooms.ravel(), memory.reshape(-1, memory.shape[-1]))
        if "x" in parts and "y" in parts:
            errors = location_errors(self._game, np.stack([parts["x"], parts["y"]], axis=-1), memory)
            if len(errors):
                self._metrics["adm/distance"] = float(errors.mean())
