"""The gradient steps of a learner: one optimiser, its schedule, and its state with the network's."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from coex.core.optim import backward, clipped_step
from coex.core.ranks import Shards
from coex.learners.loss import Parts
from coex.learners.networks import ActorCritic

Losses = Iterable[tuple[Tensor, Parts]]  # the terms of a loss, each with the figures that it adds to


def linear_decay(initial: float, steps_done: int, schedule_steps: int) -> float:
    """From `initial` at the start to 0 after `schedule_steps`."""
    return initial * max(0.0, 1.0 - steps_done / schedule_steps)


class Descent:
    """Guarded steps at a rate that falls linearly to 0 over `schedule_steps`; at a constant one if that is None."""

    def __init__(
        self,
        network: ActorCritic,
        optimizer: Optimizer,
        max_grad_norm: float,
        schedule_steps: int | None,
        shards: Shards,
    ) -> None:
        self._network = network
        self._optimizer = optimizer
        self._parameters = list(network.parameters())
        self._max_grad_norm = max_grad_norm
        self._schedule_steps = schedule_steps
        self._shards = shards
        self._initial_rate: float = optimizer.defaults["lr"]

    def set_rate(self, steps_done: int) -> float:
        """The rate of the steps that follow."""
        rate = self._initial_rate
        if self._schedule_steps is not None:
            rate = linear_decay(rate, steps_done, self._schedule_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        return rate

    def step(self, shards: Iterable[Losses]) -> tuple[float, Parts]:
        """One step on the sum of all terms of all shards, given those of this process's.

        Returns the gradient's norm before it was clipped, and the sums of the figures.
        """
        loss, figures = self._sum(shards) if self._shards.count > 1 else self._backward(next(iter(shards)))
        return clipped_step(self._optimizer, loss, self._parameters, self._max_grad_norm), figures

    def _backward(self, losses: Losses) -> tuple[Tensor, Parts]:
        """Puts one shard's gradient into the parameters; returns its loss and figures."""
        figures: Parts = {}

        def terms() -> Iterator[Tensor]:
            for loss, parts in losses:
                for name, value in parts.items():
                    figures[name] = figures[name] + value if name in figures else value
                yield loss

        self._optimizer.zero_grad(set_to_none=True)
        return backward(terms()), figures

    def _sum(self, shards: Iterable[Losses]) -> tuple[Tensor, Parts]:
        """Puts the sum of all shards' gradients into the parameters; returns that of their losses and figures."""
        vectors, names = [], list[str]()
        for losses in shards:
            loss, figures = self._backward(losses)
            names = list(figures)
            gradients = [_gradient(parameter).flatten() for parameter in self._parameters]
            vectors.append(torch.cat([*gradients, torch.stack([loss, *figures.values()])]))
        *gradients, last = self._shards.sum(vectors).split([*(p.numel() for p in self._parameters), 1 + len(names)])
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            _gradient(parameter).copy_(gradient.view(parameter.shape))
        return last[0], dict(zip(names, last[1:], strict=True))

    def figures(self, norms: list[float]) -> dict[str, float]:
        """Of the gradients' norms that some steps returned: their mean, and the share of them that was cut."""
        cut = sum(norm > self._max_grad_norm for norm in norms)
        return {"grad_norm": sum(norms) / len(norms), "cut_gradients": cut / len(norms)}

    def state_dict(self) -> dict[str, Any]:
        return {"network": self._network.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad
