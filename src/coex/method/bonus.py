"""Contingency-aware exploration (Algorithm 1): a bonus for rare ψ(s) = (x, y, c, R)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coex.bonuses import Bonus, BonusContext, Inspection, Metrics, Rewarded
from coex.config.bonuses import CoexConfig
from coex.method.counts import VisitCounts, count_visits, rarity
from coex.method.state import StateEncoder
from coex.rollouts.rollout import Transitions


class CoexBonus(Bonus):
    """1/√N of ψ(s)."""

    skips_invalid = True

    def __init__(self, config: CoexConfig, context: BonusContext) -> None:
        self.config = config
        self.encoder = StateEncoder(config, context)
        self.counts = VisitCounts(len(config.state))
        self._grid = (config.adm.grid, config.adm.grid)

    @property
    def ready(self) -> bool:
        """Whether the player has been found: a location that is wrong rewards noise."""
        return self.encoder.locator is None or self.encoder.locator.has_found

    def reward(self, rollout: Transitions) -> Rewarded:
        states = self.encoder.encode(rollout)  # ψ of the pictures that the steps led to
        # N(ψ) ← N(ψ) + 1, in the order of time, and r⁺ = 1/√N
        visits = count_visits(self.counts, states.keys(self.config.state), rollout)
        return Rewarded(rarity(visits), states.parts, states.features, states.attention, visits)

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        return {} if self.encoder.locator is None else self.encoder.locator.fit(rollout, rewarded.memo)

    def snapshot(self) -> dict[str, Any]:
        figures = {"counts/states": len(self.counts)}
        rooms = self.encoder.rooms
        if rooms is None:
            return figures
        chosen = {} if rooms.config.threshold else {"rooms/threshold": rooms.threshold}
        return figures | {"rooms/clusters": len(rooms)} | chosen

    def forget_episodes(self) -> None:
        self.encoder.forget_episodes()

    @torch.no_grad()
    def inspect(self, step: Transitions) -> Inspection:
        if self.config.needs_location and self.config.locator == "random":
            return Inspection()
        parts, attention, _ = self.encoder.encode(step, founds_rooms=False)
        here = {letter: int(part[0, 0]) for letter, part in parts.items()}
        key = np.array([[here[letter] for letter in self.config.state]], np.int64)
        return Inspection(
            attention=None if attention is None else attention[0, 0].view(self._grid).double().cpu().numpy(),
            cell=(here["x"], here["y"]) if "x" in here else None,
            room=here.get("c"),
            visits=int(self.counts.lookup(key)[0]),
        )

    @torch.no_grad()
    def attend(self, views: Mapping[str, Tensor]) -> Tensor | None:
        locator = self.encoder.locator
        return None if locator is None else locator.attend(views[locator.view]).unflatten(-1, self._grid)

    def state_dict(self) -> dict[str, Any]:
        return {"counts": self.counts.state_dict(), **self.encoder.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.counts.load_state_dict(state["counts"])
        self.encoder.load_state_dict(state)
