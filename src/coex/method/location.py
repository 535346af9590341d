"""Where attention says the agent is: smoothed over time, its largest cell (section 3.2)."""

from typing import NamedTuple

import torch
from torch import Tensor

from coex.method.adm import GRID


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
    cell = attention.argmax(-1)
    return torch.stack([cell % GRID, cell // GRID], -1)
