"""Where is the agent? Attention, smoothed over time, and its largest cell (section 3.2); fitting the model."""

from collections.abc import Iterator
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.core.optim import guarded_step
from coex.method.adm import (
    AttentiveDynamicsModel,
    RolloutPass,
    action_logits,
    adm_losses,
    changed_cells,
    forward_rollout,
    normalised_entropy,
    propensity_weights,
)
from coex.rollouts.rollout import Transitions

_MAX_GRAD_NORM = 10.0  # far above what is seen: it only keeps a freak batch from undoing the model
_FORWARD_SIZE = 256  # frames in a pass without gradient
_SKILL_STEPS = 5_000  # over which the share of right guesses is averaged
_BLOCK_STEPS = 8  # at least, where a rollout is that long: a block of T steps encodes T + 1 frames


class Smoothed(NamedTuple):
    """ᾱ on the frames the transitions reached, and what the next rollout starts from."""

    attention: Tensor  # (T, N, 81)
    carried: Tensor  # (N, 81)


def smooth_attention(attention: Tensor, carried: Tensor, final_index: Tensor, restart: Tensor) -> Smoothed:
    """ᾱ_t = (1 − ω) ᾱ_{t−1} + ω α_t with ω = max α_t, in each environment (section 3.2, footnote).

    `carried` (N, 81) is ᾱ on the rollout's first frames: α itself at the very start. Where an episode ended
    (`final_index` (K, 2)), ᾱ restarts as α on the first frame of the next (`restart` (K, 81)).
    """
    smoothed = torch.empty_like(attention)
    for t, alpha in enumerate(attention):
        smoothed[t] = carried.lerp(alpha, alpha.amax(-1, keepdim=True))
        ended = final_index[:, 0] == t
        carried = smoothed[t].index_put((final_index[ended, 1],), restart[ended])
    return Smoothed(smoothed, carried)


def locate(attention: Tensor) -> Tensor:
    """(x, y) = (j, i) of the most attended cell: (…, 81) → (…, 2) int64."""
    cell, grid = attention.argmax(-1), isqrt(attention.shape[-1])
    return torch.stack([cell % grid, cell // grid], -1)


class Located(NamedTuple):
    """Where the agents were after each step of a rollout."""

    cells: NDArray[np.int64]  # (T, N, 2) (x, y)
    attention: Tensor  # (T, N, 81) ᾱ
    features: RolloutPass | None  # what fitting may go on from; None: it was a rollout of several minibatches


class Block(NamedTuple):
    """Some steps of some environments: what one gradient step learns from."""

    frames: Tensor  # (t + 1, n, 160, 160, 3)
    actions: Tensor  # (t, n)
    log_probs: Tensor  # (t, n)
    final_index: Tensor  # (k, 2) counted from the block's corner
    final_frames: Tensor  # (k, 160, 160, 3)
    valid: Tensor | slice = slice(None)  # (t, n) bool, those to learn from; a slice: all


def split_into_blocks(rollout: Transitions, view: str, minibatch: int) -> Iterator[Block]:
    """Blocks of at most `minibatch` transitions, the earliest first; a rollout that is no larger is one block."""
    steps, envs = rollout.actions.shape
    width = min(envs, max(1, minibatch // min(steps, _BLOCK_STEPS)))
    height = max(1, minibatch // width)
    for top in range(0, steps, height):
        for left in range(0, envs, width):
            bottom, right = min(top + height, steps), min(left + width, envs)
            t, n = rollout.final_index.unbind(1)
            inside = (top <= t) & (t < bottom) & (left <= n) & (n < right)  # (K,)
            yield Block(
                rollout.views[view][top : bottom + 1, left:right],
                rollout.actions[top:bottom, left:right],
                rollout.log_probs[top:bottom, left:right],
                rollout.final_index[inside] - torch.tensor([top, left]),
                rollout.final_views[view][inside],
                slice(None) if rollout.valid is None else rollout.valid[top:bottom, left:right],
            )


class ADMLocator:
    """Locates by smoothed attention, and learns in minibatches.

    A rollout of one minibatch (A2C's) is located and learned from by the same forward pass.
    """

    def __init__(self, model: AttentiveDynamicsModel, device: torch.device) -> None:
        self.model = model.to(device)
        self.view = model.config.view  # the pictures that it looks at
        self._device = device
        self._parameters = list(model.parameters())
        self._optimizer = torch.optim.Adam(self._parameters, model.config.learning_rate, fused=True)
        self._carried: Tensor | None = None  # (N, 81) ᾱ on the frames the next rollout starts from
        self._skill = 1.0  # right guesses of recent steps, as a multiple of what chance would bring
        self._steps = 0
        self.has_found = model.config.found_by == 0

    def locate(self, rollout: Transitions) -> Located:
        """Locates the agent in the pictures that the steps of a rollout led to."""
        index = rollout.final_index.to(self._device)
        if self._carried is None:  # the very first frames: nothing to smooth with yet
            self._carried = self.attend(rollout.views[self.view][:1])[0]
        features = None
        if rollout.num_transitions <= self.model.config.minibatch:
            features = self._forward(next(split_into_blocks(rollout, self.view, self.model.config.minibatch)))
            attention, restart = features.attention.detach(), features.restart
        else:
            attention = self.attend(rollout.views[self.view])[1:]  # (T, N, 81)
            t, n = index.unbind(1)
            restart = attention[t, n]  # (K, 81)
            if len(index):
                attention[t, n] = self.attend(rollout.final_views[self.view])
        smoothed = smooth_attention(attention, self._carried, index, restart)
        self._carried = smoothed.carried
        return Located(locate(smoothed.attention).cpu().numpy(), smoothed.attention, features)

    def fit(self, rollout: Transitions, features: RolloutPass | None) -> dict[str, float]:
        """Takes gradient steps on all transitions of a rollout that was just located; returns their metrics."""
        config, steps = self.model.config, []
        for _ in range(config.epochs):
            for block in split_into_blocks(rollout, self.view, config.minibatch):
                if not block.actions[block.valid].numel():
                    continue
                steps.append(self._step(features or self._forward(block), block))
                features = None
        if not steps:
            return {}
        metrics = {name: sum(step[name] for step in steps) / len(steps) for name in steps[0]}
        self._judge(metrics["adm/accuracy"], rollout.num_transitions)
        return metrics | {"adm/skill": self._skill}

    def _judge(self, accuracy: float, steps: int) -> None:
        """Whether the player is found: a uniform policy's actions show in nothing but what they move."""
        self._steps += steps
        share = min(1.0, steps / _SKILL_STEPS)
        self._skill += share * (accuracy * self.model.num_actions - self._skill)
        config = self.model.config
        self.has_found = self.has_found or self._skill >= config.found_at or self._steps >= config.found_by

    def forget_attention(self) -> None:
        """The next rollout's first frames follow nothing: ᾱ starts from them."""
        self._carried = None

    def state_dict(self) -> dict[str, Any]:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "skill": self._skill,
            "steps": self._steps,
            "has_found": self.has_found,
        }
        return state if self._carried is None else state | {"attention": self._carried}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._skill, self._steps, self.has_found = state["skill"], state["steps"], state["has_found"]
        attention = state.get("attention")
        self._carried = None if attention is None else attention.to(self._device)

    def _step(self, features: RolloutPass, block: Block) -> dict[str, float]:
        """One gradient step on a block, if there is something to learn from it."""
        config, actions = self.model.config, block.actions.to(self._device)
        log_probs = block.log_probs[block.valid]
        weights = torch.zeros_like(block.log_probs, device=self._device)
        weights[block.valid] = propensity_weights(
            log_probs.to(self._device), self.model.num_actions, config.propensity_clip
        )
        logits = self.model.cell_logits(features.previous, features.current)  # (t, n, 81, A)
        cells = changed_cells(features.previous, features.current) if config.changed_cells else None  # (t, n, 81)
        losses = adm_losses(logits, features.attention, actions, config, weights, cells=cells)
        learns = normalised_entropy(log_probs, self.model.num_actions) >= config.min_policy_entropy
        if learns:
            guarded_step(self._optimizer, losses.total, self._parameters, _MAX_GRAD_NORM)
        guesses = action_logits(features.attention.detach(), logits.detach()).argmax(-1)
        return {
            "adm/accuracy": (guesses == actions)[block.valid].float().mean().item(),
            "adm/loss": losses.total.item(),
            "adm/loss_action": losses.action.mean().item(),
            "adm/loss_cell": losses.cell.mean().item(),
            "adm/entropy": -losses.entropy.mean().item(),
            "adm/learns": float(learns),
        }

    def _forward(self, block: Block) -> RolloutPass:
        """One pass with gradient."""
        frames, finals = block.frames.to(self._device), block.final_frames.to(self._device)
        return forward_rollout(self.model, frames, block.final_index.to(self._device), finals)

    @torch.no_grad()
    def attend(self, frames: Tensor) -> Tensor:
        """Returns α on (…, 160, 160, 3) frames, a part at a time → (…, 81)."""
        parts = frames.flatten(0, -4).split(_FORWARD_SIZE)
        attention = torch.cat([self.model.attend(self.model.encode(part.to(self._device))) for part in parts])
        return attention.unflatten(0, frames.shape[:-3])
