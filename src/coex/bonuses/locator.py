"""Where is the agent? The attentive dynamics model at work on rollouts."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.optim import guarded_step
from coex.representation.adm import (
    AttentiveDynamicsModel,
    RolloutPass,
    action_logits,
    adm_losses,
    forward_rollout,
    locate,
    propensity_weights,
    smooth_attention,
)
from coex.rollout import Rollout

_MAX_GRAD_NORM = 10.0  # far above what is seen: it only keeps a freak batch from undoing the model


class ADMLocator:
    """Locates by smoothed attention, and learns from the same forward pass."""

    def __init__(self, model: AttentiveDynamicsModel, device: torch.device) -> None:
        self.model = model.to(device)
        self._device = device
        self._parameters = list(model.parameters())
        self._optimizer = torch.optim.Adam(self._parameters, model.config.learning_rate)
        self._carried: Tensor | None = None  # (N, 81) ᾱ on the frames the next rollout starts from
        self._pass: RolloutPass | None = None

    def locate(self, rollout: Rollout) -> NDArray[np.int64]:
        """(T, N, 2) the cell (x, y) of the agent in the picture that each step led to."""
        frames, finals = rollout.views["adm"].to(self._device), rollout.final_views["adm"].to(self._device)
        index = rollout.final_index.to(self._device)
        if self._carried is None:  # the very first frames: nothing to smooth with yet
            with torch.no_grad():
                self._carried = self.model.attend(self.model.encode(frames[0]))
        self._pass = forward_rollout(self.model, frames, index, finals)
        smoothed = smooth_attention(self._pass.attention.detach(), self._carried, index, self._pass.restart)
        self._carried = smoothed.carried
        return locate(smoothed.attention).cpu().numpy()

    def fit(self, rollout: Rollout) -> dict[str, float]:
        """One gradient step on all transitions of the rollout that was just located."""
        assert self._pass is not None, "locate comes first"
        features, self._pass = self._pass, None
        config = self.model.config
        actions = rollout.actions.to(self._device)
        weights = propensity_weights(rollout.log_probs.to(self._device), self.model.num_actions, config.propensity_clip)
        cells = self.model.cell_logits(features.previous, features.current)  # (T, N, 81, A)
        losses = adm_losses(cells, features.attention, actions, config, weights)
        guarded_step(self._optimizer, losses.total, self._parameters, _MAX_GRAD_NORM)
        guesses = action_logits(features.attention.detach(), cells.detach()).argmax(-1)
        return {
            "adm/accuracy": (guesses == actions).float().mean().item(),
            "adm/loss": losses.total.item(),
            "adm/loss_action": losses.action.mean().item(),
            "adm/loss_cell": losses.cell.mean().item(),
            "adm/entropy": -losses.entropy.mean().item(),
        }

    def forget_attention(self) -> None:
        """The next rollout's first frames follow nothing: ᾱ starts from them."""
        self._carried = None

    def state_dict(self) -> dict[str, Any]:
        state = {"model": self.model.state_dict(), "optimizer": self._optimizer.state_dict()}
        return state if self._carried is None else state | {"attention": self._carried}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        attention = state.get("attention")
        self._carried = None if attention is None else attention.to(self._device)
