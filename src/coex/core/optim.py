"""One guarded gradient step, for every network that is trained."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from coex.errors import CoexError


class NonFiniteError(CoexError):
    """A loss or gradient that is not a number: the parameters have not been touched."""


def guarded_step(
    optimizer: Optimizer, losses: Tensor | Iterable[Tensor], parameters: list[nn.Parameter], max_norm: float
) -> float:
    """One gradient step with the gradient's norm clipped; one that is not finite is refused. Returns the norm.

    The losses of a large batch may come one part at a time: they are summed, and only one's graph is held in memory.
    """
    optimizer.zero_grad(set_to_none=True)
    return clipped_step(optimizer, backward([losses] if isinstance(losses, Tensor) else losses), parameters, max_norm)


def backward(losses: Iterable[Tensor]) -> Tensor:
    """Adds the gradients of losses, one after the other, to the parameters'; returns their sum."""
    parts = []
    for part in losses:
        part.backward()
        parts.append(part.detach())
    return torch.stack(parts).sum()


def clipped_step(optimizer: Optimizer, loss: Tensor, parameters: list[nn.Parameter], max_norm: float) -> float:
    """Takes the step that the gradients say, their norm clipped, and returns it; one that is not finite is refused."""
    norm = nn.utils.clip_grad_norm_(parameters, max_norm)
    if not torch.isfinite(loss) or not torch.isfinite(norm):
        raise NonFiniteError(f"the loss is {loss.item():g} and the gradient's norm {norm.item():g}")
    optimizer.step()
    return norm.item()
