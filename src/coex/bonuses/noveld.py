"""NovelD (Zhang et al. 2021): how much more novel a picture is than the one before, once an episode."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.bonuses import Bonus, BonusContext, Metrics, Rewarded
from coex.bonuses.parts import EpisodeMemory, blocks, encode_pairs
from coex.bonuses.rnd import VIEW, Distillation
from coex.bonuses.simhash import VIEW as HASHED_VIEW
from coex.bonuses.simhash import PictureHash
from coex.config.field import NovelDConfig
from coex.rollouts.rollout import Transitions

_FEATURES = 512  # that the networks give: novelty is the error's length, not its mean square
_PART = 1_024  # transitions at a time


class NovelDBonus(Bonus):
    """max(novelty(s') − α·novelty(s), 0) where s' is first seen in its episode."""

    def __init__(self, config: NovelDConfig, context: BonusContext) -> None:
        predictor_seed, hash_seed = context.seed.spawn(2)
        self.distillation = Distillation(config.predictor, predictor_seed, context.device)
        self._alpha = config.alpha
        self._hash = PictureHash(config.bits, hash_seed)
        self._met = EpisodeMemory()

    @property
    def ready(self) -> bool:
        return self.distillation.ready

    def reward(self, rollout: Transitions) -> Rewarded:
        first = self.first_visits(rollout)
        if not self.ready:
            return Rewarded(torch.zeros(rollout.actions.shape))
        pairs = [encode_pairs(self._novelty, block) for block in blocks(rollout, VIEW, _PART)]
        rises = torch.cat([reached - self._alpha * left for left, reached in pairs])  # (T, N)
        return Rewarded(rises.clamp(min=0.0) * torch.from_numpy(first))

    def first_visits(self, rollout: Transitions) -> NDArray[np.bool_]:
        """(T, N) whether a step led to a picture not seen before in its episode, whose first picture is seen too."""
        shown = self._keys(rollout.views[HASHED_VIEW].flatten(0, 1))  # (T + 1)·N
        reached = self._keys(rollout.next_view(HASHED_VIEW).flatten(0, 1))  # T·N
        return self._met.first_visits(reached, rollout, shown)

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        return self.distillation.update(rollout)

    def forget_episodes(self) -> None:
        self._met.forget()

    def state_dict(self) -> dict[str, Any]:
        state = {"distillation": self.distillation.state_dict(), "hash": self._hash.state()}
        return {**state, "met": self._met.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.distillation.load_state_dict(state["distillation"])
        self._hash.load_state(state["hash"])
        self._met.load_state_dict(state["met"])

    def _novelty(self, pictures: Tensor) -> Tensor:
        """(M, 84, 84, 4) uint8 → (M,) ‖predictor − target‖."""
        return (self.distillation.errors(pictures[..., -1]) * _FEATURES).sqrt()

    def _keys(self, pictures: Tensor) -> list[bytes]:
        return [key.tobytes() for part in pictures.split(_PART) for key in self._hash(part)]
