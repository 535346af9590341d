"""φ-exploration-bonus (Martin et al. 2017): pseudo-counts of binary features, each with an estimator of its own."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.bonuses import Bonus, BonusContext, Rewarded
from coex.bonuses.pseudocount import Floats, count_bonus, pseudo_counts
from coex.config.field import PhiEBConfig
from coex.rollouts.rollout import Transitions

VIEW = "rgb84"
_SIDE = 84
_PART = 64  # frames whose features are counted at once


class FeatureDensity:
    """ρ(φ) = Π (N(φ_i) + ½)/(t + 1): the estimator of Krichevsky and Trofimov for every feature."""

    def __init__(self, size: int) -> None:
        self.counts = np.zeros(size, np.int64)  # how often each feature was 1
        self.time = 0

    def learn(self, features: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Takes in (M, size) features one after the other → (M,) log ρ of each before it was counted, and after."""
        seen = (self.counts > 0) | features.any(0)
        active = features[:, seen].astype(np.int64)  # (M, s)
        time = self.time + np.arange(len(features), dtype=np.float64)[:, None]  # (M, 1)
        ones = self.counts[seen] + active.cumsum(0) - active  # (M, s) before each of them
        same = np.where(active == 1, ones, time - ones)  # how often the feature had the value it has now
        unseen = len(self.counts) - int(seen.sum())  # those were 0 each time, and are now
        before = np.log((same + 0.5) / (time + 1)).sum(1) + unseen * np.log((time + 0.5) / (time + 1))[:, 0]
        after = np.log((same + 1.5) / (time + 2)).sum(1) + unseen * np.log((time + 1.5) / (time + 2))[:, 0]
        self.counts[seen] += active.sum(0)
        self.time += len(features)
        return before, after

    def state_dict(self) -> dict[str, Any]:
        return {"counts": self.counts, "time": self.time}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.counts, self.time = state["counts"].copy(), state["time"]


def tile_features(pictures: Tensor, tiles: int, colour_bits: int) -> NDArray[np.bool_]:
    """(M, 84, 84, 3) uint8 → (M, tiles²·2^(3·bits)) whether a colour is in a tile."""
    colours = 1 << 3 * colour_bits
    red, green, blue = (pictures >> (8 - colour_bits)).to(torch.int64).unbind(-1)
    place = torch.arange(_SIDE) // (_SIDE // tiles)
    tile = place[:, None] * tiles + place  # (84, 84)
    index = ((red << colour_bits | green) << colour_bits | blue) + tile * colours  # (M, 84, 84)
    features = torch.zeros((len(pictures), tiles * tiles * colours), dtype=torch.bool)
    return features.scatter_(1, index.flatten(1), value=True).numpy()


class PhiEBBonus(Bonus):
    """(N̂ + 0.01)^−½ of the colours that are in the tiles of a picture."""

    def __init__(self, config: PhiEBConfig, context: BonusContext) -> None:
        self._config = config
        self.density = FeatureDensity(config.tiles**2 << 3 * config.colour_bits)

    def reward(self, rollout: Transitions) -> Rewarded:
        logs = []
        for pictures in rollout.next_view_parts(VIEW):
            for part in pictures.split(_PART):
                features = tile_features(part, self._config.tiles, self._config.colour_bits)
                logs.append(self.density.learn(features))
        before, after = (np.concatenate(part) for part in zip(*logs, strict=True))
        bonus = count_bonus(pseudo_counts(before, after))
        return Rewarded(torch.from_numpy(bonus).float().view(rollout.actions.shape))

    def snapshot(self) -> dict[str, Any]:
        return {"counts/features": int((self.density.counts > 0).sum())}

    def state_dict(self) -> dict[str, Any]:
        return self.density.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.density.load_state_dict(state)
