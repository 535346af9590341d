"""Pseudo-counts of a PixelCNN (Ostrovski et al. 2017): how much likelier one gradient step makes a picture."""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from coex.bonuses import Bonus, BonusContext, Rewarded
from coex.bonuses.parts import Fit, seeded
from coex.bonuses.pseudocount import Floats
from coex.config.field import PixelCNNConfig
from coex.rollouts.rollout import Transitions

VIEW = "grey42"
_LEVELS = 8
_CHANNELS, _WIDE = 16, 64
_LOOK, _BEFORE = 7, 24  # a pixel looks at a square of this side, and sees the 24 of it that come before itself
_OPTIMISER = partial(torch.optim.RMSprop, alpha=0.95, momentum=0.9, eps=1e-4)


class GatedBlock(nn.Module):
    """A residual block of one gate, tanh(a)·σ(b), at each pixel by itself."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gate = nn.Linear(channels, 2 * channels)
        self.out = nn.Linear(channels, channels)

    def forward(self, hidden: Tensor) -> Tensor:
        a, b = self.gate(hidden).chunk(2, dim=-1)
        residue: Tensor = self.out(a.tanh() * b.sigmoid())
        return hidden + residue


class PixelCNN(nn.Module):
    """The density of pictures of few levels, pixel by pixel, each given those before it, row by row from the top left.

    Behind the first layer, a masked 7 × 7 convolution, every pixel is by itself: 1 × 1 convolutions, as plain products.
    """

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Linear(_BEFORE, _CHANNELS)
        self.rest = nn.Sequential(
            *(GatedBlock(_CHANNELS), GatedBlock(_CHANNELS)),
            *(nn.Linear(_CHANNELS, _WIDE), nn.ReLU(), nn.Linear(_WIDE, _LEVELS)),
        )

    def forward(self, levels: Tensor) -> Tensor:
        """(M, H, W) uint8 levels → logits (M, H·W, 8)."""
        patches = F.unfold(levels[:, None].float() / (_LEVELS - 1), _LOOK, padding=_LOOK // 2)  # (M, 49, H·W)
        logits: Tensor = self.rest(self.look(patches[:, :_BEFORE].mT))
        return logits

    def log_density(self, levels: Tensor) -> Tensor:
        """(M, H, W) uint8 levels → (M,) log ρ in nats."""
        log_probs = self(levels).log_softmax(-1)
        return log_probs.gather(-1, levels.flatten(1)[..., None].long()).sum((1, 2))


def gain_bonus(gain: Floats, steps: Floats, scale: float, limit: float) -> Floats:
    """N̂^−½ with N̂ = 1/(exp(c·n^−½·gain) − 1), at most `limit`."""
    most = np.log1p(limit**2)  # where the limit is reached
    bonus: Floats = np.sqrt(np.expm1(np.clip(scale * steps**-0.5 * gain, 0.0, most)))
    return bonus


class PixelCNNBonus(Bonus):
    """N̂^−½ of small grey pictures, each learned once, one after the other (or in chunks)."""

    def __init__(self, config: PixelCNNConfig, context: BonusContext) -> None:
        self.config = config
        self._device = context.device
        with seeded(context.seed):
            self.model = PixelCNN().to(context.device)
        self._fit = Fit(self.model, config.learning_rate, _OPTIMISER)
        self._steps = 0

    def reward(self, rollout: Transitions) -> Rewarded:
        gains, steps = [], []
        for pictures in rollout.next_view_parts(VIEW):
            for chunk in (pictures // (256 // _LEVELS)).split(self.config.chunk):
                gains.append(self.learn(chunk.to(self._device)))
                self._steps += len(chunk)
                steps.append(np.full(len(chunk), float(self._steps)))
        bonus = gain_bonus(np.concatenate(gains), np.concatenate(steps), self.config.scale, self.config.limit)
        return Rewarded(torch.from_numpy(bonus).float().view(rollout.actions.shape))

    def learn(self, levels: Tensor) -> Floats:
        """Takes one gradient step on (M, H, W) levels → (M,) log ρ' − log ρ of each, in nats."""
        with torch.enable_grad():
            before = self.model.log_density(levels)
            self._fit.step(-before.mean() / levels[0].numel())
        with torch.no_grad():
            after = self.model.log_density(levels)
        return (after.double() - before.detach().double()).cpu().numpy()

    def state_dict(self) -> dict[str, Any]:
        return {"model": self._fit.state_dict(), "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._fit.load_state_dict(state["model"])
        self._steps = state["steps"]
