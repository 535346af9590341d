"""The gradient steps of a learner: one optimiser, its schedule, and its state with the network's."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from coex.core.optim import guarded_step
from coex.learners.networks import ActorCritic


def linear_decay(initial: float, steps_done: int, schedule_steps: int) -> float:
    """From `initial` at the start to 0 after `schedule_steps`."""
    return initial * max(0.0, 1.0 - steps_done / schedule_steps)


class Descent:
    """Guarded steps at a rate that falls linearly to 0 over `schedule_steps`; at a constant one if that is None."""

    def __init__(
        self, network: ActorCritic, optimizer: Optimizer, max_grad_norm: float, schedule_steps: int | None
    ) -> None:
        self._network = network
        self._optimizer = optimizer
        self._parameters = list(network.parameters())
        self._max_grad_norm = max_grad_norm
        self._schedule_steps = schedule_steps
        self._initial_rate: float = optimizer.defaults["lr"]

    def set_rate(self, steps_done: int) -> float:
        """The rate of the steps that follow."""
        rate = self._initial_rate
        if self._schedule_steps is not None:
            rate = linear_decay(rate, steps_done, self._schedule_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        return rate

    def step(self, losses: Tensor | Iterable[Tensor]) -> float:
        """One step on a loss or the sum of several; returns the gradient's norm before it was clipped."""
        return guarded_step(self._optimizer, losses, self._parameters, self._max_grad_norm)

    def figures(self, norms: list[float]) -> dict[str, float]:
        """Of the gradients' norms that some steps returned: their mean, and the share of them that was cut."""
        cut = sum(norm > self._max_grad_norm for norm in norms)
        return {"grad_norm": sum(norms) / len(norms), "cut_gradients": cut / len(norms)}

    def state_dict(self) -> dict[str, Any]:
        return {"network": self._network.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
