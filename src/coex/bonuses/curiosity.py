"""Large-scale curiosity (Burda et al. 2018a): the error of deep dynamics in inverse-dynamics or random features."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from coex.bonuses import Bonus, BonusContext, Metrics, Rewarded
from coex.bonuses.parts import (
    LEAK,
    Fit,
    Moments,
    PairBlock,
    RewardFilter,
    blocks,
    conv_layers,
    encode_pairs,
    initialise,
    seeded,
)
from coex.config.field import CuriosityConfig
from coex.envs.views import POLICY_SHAPE
from coex.rollouts.rollout import Transitions

VIEW = "policy"
Foretold = tuple[Tensor, Tensor, Tensor]  # (t, N, 512) features that steps left and reached, and those foretold
_FEATURES = 512
_BLOCKS = 4  # of the dynamics


class InverseFeatures(nn.Module):
    """Features (M, d) of normalised stacks of four frames, and the head that tells the action between two."""

    def __init__(self, num_actions: int, features: int = _FEATURES) -> None:
        super().__init__()
        self.encoder = nn.Sequential(*conv_layers(4), nn.Linear(3136, features))
        self.head = nn.Sequential(nn.Linear(2 * features, _FEATURES), nn.ReLU(), nn.Linear(_FEATURES, num_actions))
        initialise(self)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def loss(self, left: Tensor, reached: Tensor, actions: Tensor) -> Tensor:
        """Cross-entropy of the actions (t, N) between features (t, N, d)."""
        logits = self.head(torch.cat([left, reached], -1))
        return F.cross_entropy(logits.flatten(0, 1), actions.flatten().to(logits.device))


class Dynamics(nn.Module):
    """Foretells the features that an action leads to; every layer is told the action."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self._num_actions = num_actions
        width = _FEATURES + num_actions
        self.first = nn.Linear(width, _FEATURES)
        self.inner = nn.ModuleList(nn.Linear(width, _FEATURES) for _ in range(_BLOCKS))
        self.outer = nn.ModuleList(nn.Linear(width, _FEATURES) for _ in range(_BLOCKS))
        self.last = nn.Linear(width, _FEATURES)
        initialise(self, nn.init.orthogonal_)

    def forward(self, features: Tensor, actions: Tensor) -> Tensor:
        """(…, 512) and (…) → (…, 512)."""
        told = F.one_hot(actions.to(features.device), self._num_actions).float()
        hidden = F.leaky_relu(self.first(torch.cat([features, told], -1)), LEAK)
        for inner, outer in zip(self.inner, self.outer, strict=True):  # residual blocks
            within = F.leaky_relu(inner(torch.cat([hidden, told], -1)), LEAK)
            hidden = hidden + outer(torch.cat([within, told], -1))
        foretold: Tensor = self.last(torch.cat([hidden, told], -1))
        return foretold


class FixedPixels:
    """Pixels less their mean, over one standard deviation for all: of the first steps' pictures, then fixed."""

    def __init__(self, warmup: int, device: torch.device) -> None:
        self._warmup, self._device = warmup, device
        self._moments, self._steps = Moments(POLICY_SHAPE), 0

    @property
    def ready(self) -> bool:
        return self._steps >= self._warmup

    def observe(self, rollout: Transitions) -> None:
        """Takes in a rollout's pictures, before they are fixed."""
        for pictures in rollout.next_view_parts(VIEW):
            self._moments.update(pictures)
        self._steps += rollout.num_transitions

    def normalised(self, frames: Tensor) -> Tensor:
        """(M, 84, 84, 4) uint8 → (M, 4, 84, 84)."""
        std = self._moments.std.mean().item() if self._steps else 255.0
        return ((frames - self._moments.mean.float()) / std).permute(0, 3, 1, 2).to(self._device)

    def state_dict(self) -> dict[str, Any]:
        return {"moments": self._moments.state_dict(), "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._moments.load_state_dict(state["moments"])
        self._steps = state["steps"]


class CuriosityBonus(Bonus):
    """The mean squared error of the foretold features, in units of the deviation of its discounted sum."""

    def __init__(self, config: CuriosityConfig, context: BonusContext) -> None:
        self.config = config
        self._learns = config.features == "inverse"
        with seeded(context.seed):
            self.features = InverseFeatures(context.num_actions).requires_grad_(self._learns)
            self.dynamics = Dynamics(context.num_actions)
        networks = nn.ModuleDict({"features": self.features, "dynamics": self.dynamics}).to(context.device)
        self._fit = Fit(networks, config.learning_rate)
        self._pixels = FixedPixels(config.warmup, context.device)
        self._filter = RewardFilter(config.gamma)

    @property
    def ready(self) -> bool:
        return self._pixels.ready

    def encode(self, frames: Tensor) -> Tensor:
        """(M, 84, 84, 4) uint8 → (M, 512)."""
        features: Tensor = self.features.encoder(self._pixels.normalised(frames))
        return features

    def errors(self, rollout: Transitions) -> tuple[Tensor, list[Foretold]]:
        """(T, N) errors, and what they are of, block by block."""
        parts = list(blocks(rollout, VIEW, self.config.minibatch))
        with torch.set_grad_enabled(len(parts) == 1):  # the same pass rewards and teaches
            found = [self._foretell(block, *encode_pairs(self.encode, block)) for block in parts]
        errors = [(foretold - reached).detach().square().mean(-1).cpu() for _, reached, foretold in found]
        return torch.cat(errors), found

    def _foretell(self, block: PairBlock, left: Tensor, reached: Tensor) -> Foretold:
        return left, reached, self.dynamics(left.detach(), block.actions)  # which teaches the features nothing

    def reward(self, rollout: Transitions) -> Rewarded:
        if not self.ready:
            return Rewarded(torch.zeros(rollout.actions.shape))
        errors, found = self.errors(rollout)
        return Rewarded(self._filter.scaled(errors), memo=found if len(found) == 1 or not self._learns else None)

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        if not self.ready:
            self._pixels.observe(rollout)
            return {}
        steps, memo = [], rewarded.memo or []
        for epoch in range(self.config.epochs):
            for index, block in enumerate(blocks(rollout, VIEW, self.config.minibatch)):
                if epoch == 0 and len(memo) == 1:
                    left, reached, foretold = memo[0]
                elif memo and not self._learns:
                    left, reached, foretold = self._foretell(block, *memo[index][:2])
                else:
                    left, reached, foretold = self._foretell(block, *encode_pairs(self.encode, block))
                error = (foretold - reached.detach()).square().mean()
                inverse = self.features.loss(left, reached, block.actions) if self._learns else torch.zeros(())
                self._fit.step(error + inverse)
                steps.append((error.item(), inverse.item()))
        error_mean, inverse_mean = (sum(figures) / len(steps) for figures in zip(*steps, strict=True))
        metrics = {"curiosity/error": error_mean}
        return metrics | {"curiosity/loss_inverse": inverse_mean} if self._learns else metrics

    def state_dict(self) -> dict[str, Any]:
        return {
            "networks": self._fit.state_dict(),
            "pixels": self._pixels.state_dict(),
            "filter": self._filter.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._fit.load_state_dict(state["networks"])
        self._pixels.load_state_dict(state["pixels"])
        self._filter.load_state_dict(state["filter"])
