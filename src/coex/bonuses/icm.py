"""The intrinsic curiosity module (Pathak et al. 2017): a forward model's error, in features that tell the action."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from coex.bonuses import Bonus, BonusContext, Metrics, Rewarded
from coex.bonuses.parts import Fit, PairBlock, blocks, encode_pairs, initialise, seeded
from coex.config.field import ICMConfig
from coex.rollouts.rollout import Transitions

VIEW = "grey42x4"
_FEATURES = 288  # 32 × 3 × 3
_HIDDEN = 256


class Prediction(NamedTuple):
    """What a model makes of some steps."""

    errors: Tensor  # (t, N) of the foretold features
    loss: Tensor  # () what is to be minimised
    hits: Tensor  # () share of the actions told rightly


class CuriosityModule(nn.Module):
    """φ, the inverse model that tells a step's action from both ends, and the forward model that foretells its end."""

    def __init__(self, config: ICMConfig, num_actions: int) -> None:
        super().__init__()
        self._share, self._num_actions = config.forward_share, num_actions
        layers: list[nn.Module] = []
        for channels in (4, 32, 32, 32):  # 42 → 21 → 11 → 6 → 3 pixels
            layers += [nn.Conv2d(channels, 32, 3, stride=2, padding=1), nn.ELU()]
        self.encoder = nn.Sequential(*layers, nn.Flatten())
        self.inverse = nn.Sequential(nn.Linear(2 * _FEATURES, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, num_actions))
        self.dynamics = nn.Sequential(
            nn.Linear(_FEATURES + num_actions, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, _FEATURES)
        )
        initialise(self, nn.init.xavier_uniform_)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def encode(self, frames: Tensor) -> Tensor:
        """(M, 42, 42, 4) uint8 → φ (M, 288)."""
        pixels = frames.to(next(self.parameters()).device).permute(0, 3, 1, 2).float() / 255
        features: Tensor = self.encoder(pixels)
        return features

    def forward(self, block: PairBlock) -> Prediction:
        left, reached = encode_pairs(self.encode, block)  # (t, N, 288); the gradient flows into both
        actions = block.actions.to(left.device)
        logits = self.inverse(torch.cat([left, reached], -1))  # (t, N, A)
        foretold = self.dynamics(torch.cat([left, F.one_hot(actions, self._num_actions)], -1))
        errors = (foretold - reached).square().sum(-1) / 2  # L_F
        inverse = F.cross_entropy(logits.flatten(0, 1), actions.flatten())  # L_I
        hits = (logits.argmax(-1) == actions).float().mean()
        return Prediction(errors.detach().cpu(), torch.lerp(inverse, errors.mean(), self._share), hits)


class ICMBonus(Bonus):
    """L_F = ½‖φ̂ − φ‖², without any unit; the paper's η is the bonus's weight."""

    def __init__(self, config: ICMConfig, context: BonusContext) -> None:
        self.config = config
        with seeded(context.seed):
            self.model = CuriosityModule(config, context.num_actions).to(context.device)
        self._fit = Fit(self.model, config.learning_rate)

    def reward(self, rollout: Transitions) -> Rewarded:
        parts = list(blocks(rollout, VIEW, self.config.minibatch))
        if len(parts) == 1:  # the same pass rewards and teaches
            prediction = self.model(parts[0])
            return Rewarded(prediction.errors, memo=prediction)
        with torch.no_grad():
            return Rewarded(torch.cat([self.model(block).errors for block in parts]))

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        steps, ready = [], rewarded.memo
        for _ in range(self.config.epochs):
            for block in blocks(rollout, VIEW, self.config.minibatch):
                prediction: Prediction = ready or self.model(block)
                ready = None
                steps.append((self._fit.step(prediction.loss), prediction.hits.item()))
        loss, hits = (sum(figures) / len(steps) for figures in zip(*steps, strict=True))
        return {"icm/loss": loss, "icm/accuracy": hits}

    def state_dict(self) -> dict[str, Any]:
        return self._fit.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._fit.load_state_dict(state)
