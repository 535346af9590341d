"""What the losses of A2C and PPO have in common: value error, entropy, how they are weighed, and signs of illness."""

from collections.abc import Sequence
from math import log
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
    health: Parts


def evaluate(network: ActorCritic, batch: Batch) -> Evaluation:
    """One forward pass."""
    features = network.features(batch.observations)  # (B, 512)
    log_probs = network.policy(features).log_softmax(dim=-1)  # (B, A)
    return Evaluation(
        log_probs=log_probs.gather(1, batch.actions[:, None]).squeeze(1),
        entropy=-(log_probs.exp() * log_probs).sum(dim=-1).mean(),
        value_loss=0.5 * (network.value(features) - batch.returns).square().sum(dim=-1).mean(),
        health=health(features.detach(), log_probs.detach()),
    )


def health(features: Tensor, log_probs: Tensor) -> Parts:
    """Whether the network sees: how far (B, 512) features and (B, A) log π differ between the batch's states.

    A network whose features hardly differ, or whose units are mostly dead, acts and values by its biases alone.
    """
    return {
        "network/spread": features.std(dim=0, correction=0).mean(),
        "network/policy_spread": log_probs.std(dim=0, correction=0).mean(),
        "network/dead_units": (features == 0).all(dim=0).float().mean(),
    }


def log_entropy(entropy: Tensor, num_actions: int) -> Tensor:
    """Returns a bonus whose gradient grows as the entropy falls; for a uniform policy of three actions it is 1.

    With the entropy itself, a weight that keeps a policy from collapsing is one that keeps it from learning at first.
    It grows with the actions, too: of the same entropy, each of eighteen has a smaller share than each of three.
    """
    most = log(max(num_actions, 2))
    return most * (most / log(3)) * (entropy / most).clamp(min=1e-4).log()


def combine(
    policy_loss: Tensor, evaluation: Evaluation, entropy_bonus: Tensor, *, entropy_weight: float, value_weight: float
) -> tuple[Tensor, Parts]:
    """The loss as a whole, and its parts."""
    loss = policy_loss - entropy_weight * entropy_bonus + value_weight * evaluation.value_loss
    parts = {"policy_loss": policy_loss, "value_loss": evaluation.value_loss, "entropy": evaluation.entropy}
    return loss, {name: part.detach() for name, part in parts.items()} | evaluation.health


def mean_parts(steps: Sequence[Parts]) -> dict[str, float]:
    """Each part's mean over the gradient steps."""
    return {name: torch.stack([parts[name] for parts in steps]).mean().item() for name in steps[0]}


def explained_variance(returns: Tensor, values: Tensor) -> float:
    """1 − Var(returns − values) / Var(returns)."""
    residual, total = (torch.var(part, correction=0).item() for part in (returns - values, returns))
    return 1.0 - residual / max(total, 1e-8)


def normalised(advantages: Tensor) -> Tensor:
    """Advantages of mean 0 and standard deviation 1: the policy's steps do not depend on the rewards' units."""
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
