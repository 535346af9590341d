"""RMSProp as the paper's A2C has it."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class RMSPropTF(Optimizer):
    """RMSProp as TensorFlow and OpenAI baselines have it: ε inside the root, and running squares that start at 1.

    PyTorch's own (ε outside, start at 0) takes far larger first steps, after which the policy's entropy collapses
    under the paper's rewards.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float, alpha: float = 0.99, eps: float = 1e-5) -> None:
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        assert closure is None
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            squares = [self._running_square(p) for p in params]
            torch._foreach_mul_(squares, group["alpha"])
            torch._foreach_addcmul_(squares, grads, grads, 1 - group["alpha"])
            roots = torch._foreach_add(squares, group["eps"])
            torch._foreach_sqrt_(roots)
            torch._foreach_addcdiv_(params, grads, roots, -group["lr"])

    def _running_square(self, parameter: nn.Parameter) -> Tensor:
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["square"] = torch.ones_like(parameter)
        square: Tensor = state["square"]
        return square
