"""Returns. At a terminal state nothing follows.

A truncated episode is cut off, and the value of its true last state stands for what would have followed.
"""

import torch
from torch import Tensor


def n_step_returns(
    rewards: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    end_values: Tensor,
    last_values: Tensor,
    gamma: float,
) -> Tensor:
    """(T, N) R_t = r_t + γ·R_{t+1}, bootstrapped with `last_values` (N,) after step T.

    `end_values` (T, N) holds V of the true last state where an episode was truncated.
    """
    returns = torch.empty_like(rewards)
    following = last_values  # (N,) R_{t+1}
    for t in reversed(range(len(rewards))):
        following = torch.where(truncated[t], end_values[t], following)
        following = torch.where(terminated[t], torch.zeros_like(following), following)
        following = rewards[t] + gamma * following
        returns[t] = following
    return returns
