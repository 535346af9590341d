"""Random network distillation (Burda et al. 2018b): how badly a learned network foretells a fixed random one."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from coex.bonuses import Bonus, BonusContext, Metrics, Rewarded
from coex.bonuses.parts import Fit, Moments, RewardFilter, conv_layers, initialise, seeded
from coex.config.field import PredictorConfig, RNDConfig
from coex.rollouts.rollout import Transitions

VIEW = "policy"
_FEATURES = 512
_FULL_SHARE_ENVS = 32  # with more environments, a pass learns from so many's worth of pictures


class Distillation:
    """The two networks, the pixels' running moments, and the gradient steps."""

    def __init__(self, config: PredictorConfig, seed: np.random.SeedSequence, device: torch.device) -> None:
        self.config = config
        self._device = device
        network_seed, keep_seed = seed.spawn(2)
        with seeded(network_seed):
            self.target = nn.Sequential(*conv_layers(1), nn.Linear(3136, _FEATURES))
            self.predictor = nn.Sequential(
                *(*conv_layers(1), nn.Linear(3136, _FEATURES), nn.ReLU()),
                *(nn.Linear(_FEATURES, _FEATURES), nn.ReLU(), nn.Linear(_FEATURES, _FEATURES)),
            )
            for network in (self.target, self.predictor):
                initialise(network)
                network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.target.requires_grad_(False)
        self._fit = Fit(self.predictor, config.learning_rate)
        self._pixels = Moments((84, 84))
        self._steps = 0
        self._keep = torch.Generator().manual_seed(int(keep_seed.generate_state(1)[0]))

    @property
    def ready(self) -> bool:
        """Whether the pixels' moments are of enough random play."""
        return self._steps >= self.config.warmup

    @torch.no_grad()
    def errors(self, frames: Tensor) -> Tensor:
        """(M, 84, 84) uint8 → (M,) mean squared error of the prediction."""
        inputs = self._normalised(frames)
        return (self.predictor(inputs) - self.target(inputs)).square().mean(-1).cpu()

    def next_errors(self, rollout: Transitions) -> Tensor:
        """(T, N) errors on the newest frames that the steps led to."""
        errors = [self.errors(pictures[..., -1]) for pictures in rollout.next_view_parts(VIEW)]
        return torch.cat(errors).view(rollout.actions.shape)

    def update(self, rollout: Transitions) -> Metrics:
        """Takes the newest frames into the pixels' moments, then learns from them; returns metrics."""
        was_ready = self.ready
        parts = [pictures[..., -1] for pictures in rollout.next_view_parts(VIEW)]
        for part in parts:
            self._pixels.update(part)
        self._steps += rollout.num_transitions
        # Environment by environment: the paper's minibatches are of whole ones.
        frames = torch.cat(parts).unflatten(0, rollout.actions.shape).transpose(0, 1).flatten(0, 1)
        share = self.config.keep or min(1.0, _FULL_SHARE_ENVS / rollout.actions.shape[1])
        losses = [loss for _ in range(self.config.epochs * was_ready) for loss in self._pass(frames, share)]
        return {"predictor/loss": sum(losses) / len(losses)} if losses else {}

    def _pass(self, frames: Tensor, share: float) -> list[float]:
        """One pass over a random share of the frames, chosen before the networks see them."""
        kept = torch.rand(len(frames), generator=self._keep) < share
        losses = []
        for part in frames[kept].split(self.config.minibatch) if kept.any() else ():
            inputs = self._normalised(part)
            losses.append(self._fit.step((self.predictor(inputs) - self.target(inputs)).square().mean()))
        return losses

    def _normalised(self, frames: Tensor) -> Tensor:
        """(M, 84, 84) uint8 → (M, 1, 84, 84), each pixel by its own mean and standard deviation, clipped."""
        centred = (frames - self._pixels.mean.float()) / self._pixels.std.float()
        return centred.clamp_(-self.config.clip, self.config.clip)[:, None].to(self._device)

    def state_dict(self) -> dict[str, Any]:
        return {
            "target": self.target.state_dict(),
            "predictor": self._fit.state_dict(),
            "pixels": self._pixels.state_dict(),
            "steps": self._steps,
            "keep": self._keep.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.target.load_state_dict(state["target"])
        self._fit.load_state_dict(state["predictor"])
        self._pixels.load_state_dict(state["pixels"])
        self._steps = state["steps"]
        self._keep.set_state(state["keep"])


class RNDBonus(Bonus):
    """The prediction's error, in units of the standard deviation of its discounted sum."""

    def __init__(self, config: RNDConfig, context: BonusContext) -> None:
        self.distillation = Distillation(config.predictor, context.seed, context.device)
        self._filter = RewardFilter(config.gamma)

    @property
    def ready(self) -> bool:
        return self.distillation.ready

    def reward(self, rollout: Transitions) -> Rewarded:
        if not self.ready:
            return Rewarded(torch.zeros(rollout.actions.shape))
        return Rewarded(self._filter.scaled(self.distillation.next_errors(rollout)))

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        return self.distillation.update(rollout)

    def state_dict(self) -> dict[str, Any]:
        return {"distillation": self.distillation.state_dict(), "filter": self._filter.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.distillation.load_state_dict(state["distillation"])
        self._filter.load_state_dict(state["filter"])
