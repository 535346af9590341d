"""Makes the parts of an agent that a configuration describes."""

import numpy as np
import torch

from coex.bonuses import Bonus, BonusContext
from coex.config.learners import A2CConfig, PPOConfig
from coex.config.presets import load_bonus_class, split_method
from coex.config.run import RunConfig
from coex.core.ranks import Shards
from coex.learners import Learner
from coex.learners.a2c import A2C
from coex.learners.networks import ActorCritic
from coex.learners.ppo import PPO


def make_network(config: RunConfig, num_actions: int) -> ActorCritic:
    """A network of the shape that a run's configuration describes, its weights drawn from torch's own generator."""
    has_two_values = isinstance(config.learner, PPOConfig) and config.learner.two_value_heads
    learner = config.learner
    num_values = 2 if has_two_values else 1
    return ActorCritic(num_actions, num_values, centred=learner.centre_observations, precision=learner.precision)


def make_learner(
    config: RunConfig, num_actions: int, seed: np.random.SeedSequence, device: torch.device, shards: Shards = Shards()
) -> Learner:
    """The learner that a run's configuration describes, with a new network."""
    network = make_network(config, num_actions).to(device)
    match config.learner:
        case A2CConfig():
            return A2C(network, config.learner, config.schedule_steps, shards)
        case PPOConfig():
            return PPO(network, config.learner, config.schedule_steps, int(seed.generate_state(1)[0]), shards)
    raise TypeError(f"{config.method} learns from no rollouts")


def make_bonus(config: RunConfig, num_actions: int, seed: np.random.SeedSequence, device: torch.device) -> Bonus | None:
    """Returns the bonus that a run's configuration describes, if it has one."""
    if config.bonus is None:
        return None
    bonus_class = load_bonus_class(split_method(config.method)[1])
    bonus: Bonus = bonus_class(config.bonus, BonusContext(config.game, num_actions, seed, device))
    return bonus
