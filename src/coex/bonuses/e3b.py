"""Exploration by elliptical episodic bonuses (Henaff et al. 2022): features unlike those of the episode so far."""

from typing import Any

import torch
from torch import Tensor

from coex.bonuses import Bonus, BonusContext, Metrics, Rewarded
from coex.bonuses.curiosity import InverseFeatures
from coex.bonuses.parts import Fit, Moments, PairBlock, blocks, encode_pairs, seeded
from coex.config.field import E3BConfig
from coex.rollouts.rollout import Transitions

VIEW = "policy"


class Ellipses:
    """C⁻¹ = (λI + Σ φφᵀ)⁻¹ of the present episode, one for each environment.

    In double precision, which not every device has, so on the processor: in single, what is left of 1/λ after some
    dozen visits of a long φ is rounding, and the bonus stays where it is.
    """

    def __init__(self, ridge: float) -> None:
        self._ridge = ridge
        self.inverse: Tensor | None = None  # (N, d, d); None: no episode has begun

    def bonus(self, left: Tensor, reached: Tensor, final_index: Tensor, first: Tensor) -> Tensor:
        """(T, N) φᵀC⁻¹φ of the pictures reached, each then part of its episode's C.

        `left` and `reached` (T, N, d) are the features of both ends of the steps. Where one ended an episode, `first`
        (K, d) has those of the picture that the next one begins with: it is part of C, and earns nothing.
        """
        left, reached, first = (features.cpu().double() for features in (left, reached, first))
        if self.inverse is None:
            self.inverse = self._begin(left[0])
        bonus = left.new_zeros(left.shape[:2])
        for t, features in enumerate(reached):
            direction = torch.bmm(self.inverse, features[:, :, None])  # (N, d, 1) C⁻¹φ
            bonus[t] = (features * direction[:, :, 0]).sum(-1)
            # Sherman and Morrison's formula: the inverse of C + φφᵀ.
            self.inverse.baddbmm_(direction / (1 + bonus[t])[:, None, None], direction.mT, alpha=-1)
            ended = final_index[:, 0] == t
            if ended.any():
                self.inverse[final_index[ended, 1]] = self._begin(first[ended])
        return bonus

    def _begin(self, features: Tensor) -> Tensor:
        """(n, d) → (n, d, d) the inverse of λI + φφᵀ."""
        square = features.square().sum(-1) / self._ridge  # φᵀφ/λ
        outer = features[:, :, None] * features[:, None, :]
        identity = torch.eye(features.shape[1], dtype=features.dtype) / self._ridge
        return identity - outer / (self._ridge**2 * (1 + square))[:, None, None]


class E3BBonus(Bonus):
    """φᵀC⁻¹φ with φ learned by telling actions, in units of its running standard deviation."""

    def __init__(self, config: E3BConfig, context: BonusContext) -> None:
        self.config = config
        with seeded(context.seed):
            self.model = InverseFeatures(context.num_actions, config.features).to(context.device)
        self._device = context.device
        self._fit = Fit(self.model, config.learning_rate)
        self.ellipses = Ellipses(config.ridge)
        self._moments = Moments()

    def encode(self, frames: Tensor) -> Tensor:
        """(M, 84, 84, 4) uint8 → φ (M, d)."""
        features: Tensor = self.model.encoder(frames.to(self._device).permute(0, 3, 1, 2).float() / 255)
        return features

    def reward(self, rollout: Transitions) -> Rewarded:
        parts = list(blocks(rollout, VIEW, self.config.minibatch))
        with torch.set_grad_enabled(len(parts) == 1):  # the same pass rewards and teaches
            pairs = [encode_pairs(self.encode, block) for block in parts]
        bonus = torch.cat([self._bonus(block, *pair) for block, pair in zip(parts, pairs, strict=True)])
        if self.config.normalise:
            self._moments.update(bonus.flatten())
            bonus = bonus / self._moments.std.float()
        return Rewarded(bonus, memo=pairs[0] if len(pairs) == 1 else None)

    @torch.no_grad()
    def _bonus(self, block: PairBlock, left: Tensor, reached: Tensor) -> Tensor:
        t, n = block.final_index.unbind(1)
        first = self.encode(block.frames[t + 1, n]) if len(t) else reached.new_zeros(0, self.config.features)
        return self.ellipses.bonus(left, reached, block.final_index, first).float()

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        losses, ready = [], rewarded.memo
        for _ in range(self.config.epochs):
            for block in blocks(rollout, VIEW, self.config.minibatch):
                left, reached = ready or encode_pairs(self.encode, block)
                ready = None
                losses.append(self._fit.step(self.model.loss(left, reached, block.actions)))
        return {"e3b/loss_inverse": sum(losses) / len(losses)}

    def forget_episodes(self) -> None:
        self.ellipses.inverse = None

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": self._fit.state_dict(),
            "inverse": self.ellipses.inverse,
            "moments": self._moments.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._fit.load_state_dict(state["model"])
        inverse = state["inverse"]
        self.ellipses.inverse = None if inverse is None else inverse.double()
        self._moments.load_state_dict(state["moments"])
