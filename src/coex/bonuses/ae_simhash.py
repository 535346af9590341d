"""Counts of learned codes (Tang et al. 2017): an autoencoder with a binary middle, and 1/√N over its code."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coex.bonuses import Bonus, BonusContext, Inspection, Metrics, Rewarded
from coex.bonuses.parts import Fit, seeded
from coex.config.field import AESimHashConfig
from coex.method.counts import VisitCounts
from coex.rollouts.rollout import Transitions

VIEW = "grey52"
_SIDE, _NUM_PIXELS = 52, 52 * 52
_LEVELS = 64  # of grey that are told apart
_SMOOTHING = 0.003  # added to every level of the right answer, which is then normalised
_HIDDEN = 1024
_LEAST_GAIN = 1e-4


class Autoencoder(nn.Module):
    """(M, 52, 52) levels → code (M, D) in (0, 1) → logits of the levels (M, 64, 52, 52)."""

    def __init__(self, channels: int, code: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, padding in ((1, 0), (channels, 1), (channels, 2)):  # 52 → 24 → 11 → 5 pixels
            layers += [nn.Conv2d(inputs, channels, 6, 2, padding), nn.ReLU(), nn.BatchNorm2d(channels)]
        self.encoder = nn.Sequential(
            *(*layers, nn.Flatten(), nn.Linear(channels * 25, _HIDDEN), nn.ReLU()),
            # Without normalisation before the sigmoid, codes collapse to a few.
            *(nn.Linear(_HIDDEN, code), nn.BatchNorm1d(code), nn.Sigmoid()),
        )
        layers = [nn.Linear(code, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, channels * 25), nn.ReLU()]
        layers += [nn.Unflatten(1, (channels, 5, 5))]
        for crop in (2, 0, 0):  # 5 → 10 → 24 → 52 pixels
            layers += [nn.ConvTranspose2d(channels, channels, 6, 2, crop), nn.ReLU()]
        self.decoder = nn.Sequential(*layers, nn.Conv2d(channels, _LEVELS, 1, bias=False))
        self.bias = nn.Parameter(torch.zeros(_LEVELS, _SIDE, _SIDE))

    def encode(self, levels: Tensor) -> Tensor:
        code: Tensor = self.encoder(levels[:, None].float() / (_LEVELS - 1))
        return code

    def decode(self, code: Tensor) -> Tensor:
        logits: Tensor = self.decoder(code) + self.bias
        return logits


def code_penalty(code: Tensor) -> Tensor:
    """() the mean of min(b², (1 − b)²): 0 for a binary code, ¼ for one of halves."""
    return torch.minimum(code.square(), (1 - code).square()).mean()


def reconstruction_loss(logits: Tensor, levels: Tensor) -> Tensor:
    """() −log p of (M, 52, 52) smoothed levels under (M, 64, 52, 52) logits, the mean over pictures and pixels."""
    log_probs = logits.log_softmax(1)
    right = log_probs.gather(1, levels[:, None].long()).squeeze(1)
    return -((right + _SMOOTHING * log_probs.sum(1)) / (1 + _LEVELS * _SMOOTHING)).mean()


def majorities(code: Tensor, bits: int) -> NDArray[np.bool_]:
    """(M, D) → (M, bits) whether most of a group's units are above ½; a tie is 0."""
    groups = (code > 0.5).unflatten(1, (bits, -1))
    return (groups.sum(-1) * 2 > groups.shape[-1]).cpu().numpy()


class AESimHashBonus(Bonus):
    """1/√N over the code; a rollout is counted whole before its pictures are paid. Training does not change counts."""

    def __init__(self, config: AESimHashConfig, context: BonusContext) -> None:
        self.config = config
        self._device = context.device
        network_seed, draw_seed = context.seed.spawn(2)
        with seeded(network_seed):
            self.model = Autoencoder(config.channels, config.code).to(context.device)
        self._fit = Fit(self.model, config.learning_rate)
        self._counts = VisitCounts(config.bits // 64)
        self._draws = torch.Generator().manual_seed(int(draw_seed.generate_state(1)[0]))
        self._pool = torch.zeros((config.pool, _SIDE, _SIDE), dtype=torch.uint8)  # the oldest are overwritten
        self._steps = 0

    @torch.no_grad()
    def hash(self, pictures: Tensor) -> NDArray[np.int64]:
        """(M, 52, 52) uint8 → (M, bits / 64) keys; what else is in the batch does not matter."""
        self.model.eval()
        parts = [self.model.encode(_levels(part).to(self._device)) for part in pictures.split(256)]
        return np.packbits(majorities(torch.cat(parts), self.config.bits), axis=1).view(np.int64)

    def reward(self, rollout: Transitions) -> Rewarded:
        keys = np.concatenate([self.hash(pictures) for pictures in rollout.next_view_parts(VIEW)])
        self._counts.visit(keys)
        counts = torch.from_numpy(self._counts.lookup(keys)).double()
        return Rewarded(counts.rsqrt().float().view(rollout.actions.shape))

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        before = self._steps
        for pictures in rollout.next_view_parts(VIEW):
            self._pool[(self._steps + torch.arange(len(pictures))) % self.config.pool] = pictures
            self._steps += len(pictures)
        every = self.config.train_every
        return self._train() if self._steps // every > before // every else {}

    def _train(self) -> Metrics:
        """Takes blocks of gradient steps until their loss gains nothing any more."""
        best, idle, blocks, loss, penalty = float("inf"), 0, 0, 0.0, 0.0
        self.model.train()
        while idle < self.config.patience and (blocks < self.config.max_blocks or not self.config.max_blocks):
            figures = [self._step() for _ in range(self.config.block)]
            loss, penalty = (sum(figure) / len(figures) for figure in zip(*figures, strict=True))
            idle += best - loss < _LEAST_GAIN
            best, blocks = min(best, loss), blocks + 1
        return {"autoencoder/loss": loss, "autoencoder/penalty": penalty, "autoencoder/blocks": float(blocks)}

    def _step(self) -> tuple[float, float]:
        index = torch.randint(min(self._steps, self.config.pool), (self.config.minibatch,), generator=self._draws)
        levels = _levels(self._pool[index]).to(self._device)
        code = self.model.encode(levels)
        noise = (2 * torch.rand(code.shape, generator=self._draws) - 1) * self.config.noise
        logits = self.model.decode(code + noise.to(self._device))
        penalty = code_penalty(code)
        # Eq. 4 over the number of pixels, which Adam does not mind.
        loss = reconstruction_loss(logits, levels) + self.config.penalty / _NUM_PIXELS * penalty
        return self._fit.step(loss), penalty.item()

    def snapshot(self) -> dict[str, Any]:
        return {"counts/states": len(self._counts)}

    def inspect(self, step: Transitions) -> Inspection:
        return Inspection(visits=int(self._counts.lookup(self.hash(step.next_view(VIEW)[0]))[0]))

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": self._fit.state_dict(),
            "counts": self._counts.state_dict(),
            "draws": self._draws.get_state(),
            "pool": self._pool[: self._steps],
            "steps": self._steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._fit.load_state_dict(state["model"])
        self._counts.load_state_dict(state["counts"])
        self._draws.set_state(state["draws"])
        self._pool[: len(state["pool"])] = state["pool"]
        self._steps = state["steps"]


def _levels(pictures: Tensor) -> Tensor:
    """Shades as levels: 0 to 63."""
    return pictures // (256 // _LEVELS)
