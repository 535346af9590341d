"""What the losses of A2C and PPO have in common: value error, entropy, and how they are weighed."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from coex.learners.batch import Batch
from coex.learners.networks import ActorCritic

Parts = dict[str, Tensor]  # of a loss, for the record: (), without gradient


class Evaluation(NamedTuple):
    """What the network as it is now says of a batch."""

    log_probs: Tensor  # (B,) of the actions taken
    entropy: Tensor  # () the policy's mean entropy
    value_loss: Tensor  # () half the mean squared error, summed over the values


def evaluate(network: ActorCritic, batch: Batch) -> Evaluation:
    """One forward pass."""
    logits, values = network(batch.observations)  # (B, A), (B, V)
    log_probs = logits.log_softmax(dim=-1)  # (B, A)
    return Evaluation(
        log_probs=log_probs.gather(1, batch.actions[:, None]).squeeze(1),
        entropy=-(log_probs.exp() * log_probs).sum(dim=-1).mean(),
        value_loss=0.5 * (values - batch.returns).square().sum(dim=-1).mean(),
    )


def weigh(
    policy_loss: Tensor, evaluation: Evaluation, *, entropy_weight: float, value_weight: float
) -> tuple[Tensor, Parts]:
    """The loss as a whole, and its parts."""
    loss = policy_loss - entropy_weight * evaluation.entropy + value_weight * evaluation.value_loss
    parts = {"policy_loss": policy_loss, "value_loss": evaluation.value_loss, "entropy": evaluation.entropy}
    return loss, {name: part.detach() for name, part in parts.items()}


def mean_parts(steps: Sequence[Parts]) -> dict[str, float]:
    """Each part's mean over the gradient steps."""
    return {name: torch.stack([parts[name] for parts in steps]).mean().item() for name in steps[0]}


def explained_variance(returns: Tensor, values: Tensor) -> float:
    """1 − Var(returns − values) / Var(returns)."""
    residual, total = (torch.var(part, correction=0).item() for part in (returns - values, returns))
    return 1.0 - residual / max(total, 1e-8)
