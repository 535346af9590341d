"""Counts of hashed pictures: A2C+Pixel-SimHash, the paper's baseline after Tang et al. (2017)."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.bonuses import Bonus, BonusContext, Inspection, Rewarded
from coex.config.bonuses import SimHashConfig
from coex.method.counts import VisitCounts, count_visits, rarity
from coex.rollouts.rollout import Transitions

VIEW = "grey52"
_NUM_PIXELS = 52 * 52
# Whole numbers close to a Gaussian: every sum of pixels is then exact in float32, whatever the batch.
_WEIGHT_SCALE, _MAX_WEIGHT = 6, 24
assert _NUM_PIXELS * 255 * _MAX_WEIGHT < 2**24


class PictureHash:
    """The signs of random projections of a small grey picture."""

    def __init__(self, bits: int, seed: np.random.SeedSequence) -> None:
        draws = np.random.default_rng(seed).standard_normal((_NUM_PIXELS, bits))
        weights = np.rint(draws * _WEIGHT_SCALE).clip(-_MAX_WEIGHT, _MAX_WEIGHT)
        self._weights = torch.from_numpy(weights).float()  # (2704, bits)

    def __call__(self, pictures: Tensor) -> NDArray[np.int64]:
        """(M, 52, 52) uint8 -> (M, bits / 64) exact keys."""
        signs = pictures.flatten(1).float() @ self._weights > 0  # (M, bits)
        return np.packbits(signs.numpy(), axis=1).view(np.int64)

    def state(self) -> NDArray[np.int8]:
        return self._weights.numpy().astype(np.int8)

    def load_state(self, state: NDArray[np.int8]) -> None:
        self._weights = torch.from_numpy(state).float()


class SimHashBonus(Bonus):
    """1/√N over the hash of the small grey picture."""

    skips_invalid = True

    def __init__(self, config: SimHashConfig, context: BonusContext) -> None:
        self.hash = PictureHash(config.bits, context.seed)
        self._counts = VisitCounts(config.bits // 64)

    def reward(self, rollout: Transitions) -> Rewarded:
        keys = [self.hash(pictures) for pictures in rollout.next_view_parts(VIEW)]
        return Rewarded(rarity(count_visits(self._counts, np.concatenate(keys), rollout)))

    def snapshot(self) -> dict[str, Any]:
        return {"counts/states": len(self._counts)}

    def inspect(self, step: Transitions) -> Inspection:
        return Inspection(visits=int(self._counts.lookup(self.hash(step.next_view(VIEW)[0]))[0]))

    def state_dict(self) -> dict[str, Any]:
        return {"weights": self.hash.state(), "counts": self._counts.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.hash.load_state(state["weights"])
        self._counts.load_state_dict(state["counts"])
