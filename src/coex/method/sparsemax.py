"""Sparsemax (Martins & Astudillo, 2016): the Euclidean projection of scores onto the simplex."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Sparsemax(torch.autograd.Function):
    """Works on the last dimension; `sparsemax` moves any other one there."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        # Shifting all scores alike changes nothing, and keeps the cumulative sum accurate.
        scores = scores - scores.amax(-1, keepdim=True)
        ranked = scores.sort(-1, descending=True).values  # (..., n)
        excess = ranked.cumsum(-1) - 1
        rank = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
        # The support is the largest k with 1 + k·z_(k) > Σ_{j≤k} z_(j). It holds for k = 1, but for NaN.
        support_size = (rank * ranked > excess).sum(-1, keepdim=True).clamp_(min=1)  # (..., 1)
        threshold = excess.gather(-1, support_size - 1) / support_size
        probabilities = (scores - threshold).clamp_(min=0)
        ctx.save_for_backward(probabilities)
        return probabilities

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        # The Jacobian is diag(s) − s·sᵀ/|s| with s the indicator of the support: centre the gradient on it.
        (probabilities,) = ctx.saved_tensors
        support = (probabilities > 0).to(gradient.dtype)  # (..., n)
        gradient = gradient * support
        mean = gradient.sum(-1, keepdim=True) / support.sum(-1, keepdim=True)
        return gradient.addcmul_(support, mean, value=-1)


def sparsemax(scores: Tensor, dim: int = -1) -> Tensor:
    """Probabilities of the same shape that sum to 1 along `dim`, most of them exactly 0."""
    probabilities: Tensor = _Sparsemax.apply(scores.movedim(dim, -1))  # type: ignore[no-untyped-call]
    return probabilities.movedim(-1, dim)
