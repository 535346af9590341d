"""A trained agent from a run's checkpoint: it acts, says where it believes to be, and how often it was there."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from coex.bonuses import Inspection
from coex.config.run import RunConfig
from coex.envs.views import Views
from coex.errors import UsageError
from coex.learners.networks import SamplingPolicy
from coex.rollouts.rollout import still
from coex.runs.checkpoints import CheckpointStore, Saved
from coex.runs.resume import loading_errors, read_newest, run_config, saved_config
from coex.training.make import make_bonus, make_network


def find_saved(run: Path, step: int | None, warn: Callable[[str], None]) -> Saved:
    """Returns the checkpoint of that step, or the newest that is whole; raises UsageError if there is none."""
    run_config(run)  # says what is wrong with a directory that is no run
    store = CheckpointStore(run)
    steps = store.steps()
    if step is None:
        saved = read_newest(store, warn)
        if saved is None:
            raise UsageError(f"{run} has no checkpoint yet")
        return saved
    if step not in steps:
        there = f"these are there: {', '.join(map(str, steps))}" if steps else "there are none"
        raise UsageError(f"{run} has no checkpoint of step {step}; {there}")
    return store.read(step)


class TrainedAgent:
    """The policy and the bonus of a checkpoint. Nothing that it does changes either."""

    def __init__(self, saved: Saved, device: torch.device = torch.device("cpu")) -> None:
        self.config: RunConfig = saved_config(saved)
        self.step = saved.manifest.step
        with loading_errors(saved.manifest.step, self.config.game):
            weights = saved.state["agent"]["learner"]["network"]
            self.num_actions = len(weights["policy.bias"])
            with torch.random.fork_rng(devices=[]):  # new weights are drawn, and thrown away
                network = make_network(self.config, self.num_actions)
                self.bonus = make_bonus(self.config, self.num_actions, np.random.SeedSequence(0), device)
            network.load_state_dict(weights)
            if self.bonus is not None:
                self.bonus.load_state_dict(saved.state["agent"]["bonus"])
                self.bonus.forget_episodes()
        self.policy = SamplingPolicy(network.to(device))

    def act(self, observations: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Returns (N,) actions, sampled as in training, for (N, 84, 84, 4) uint8 observations."""
        return self.policy.act(observations, torch.rand(len(observations), generator=generator))[0]

    def begin_episode(self) -> None:
        """Forgets the pictures that were inspected before."""
        if self.bonus is not None:
            self.bonus.forget_episodes()

    def inspect(self, views: Views, score: float = 0.0) -> Inspection:
        """Returns what the bonus makes of a picture, in each of the views that `config.views()` names."""
        return Inspection() if self.bonus is None else self.bonus.inspect(still(views, score))


def load(run: Path | str, step: int | None = None, device: str = "cpu") -> TrainedAgent:
    """Returns the agent of a run's newest checkpoint, or of one step's; raises UsageError if there is none."""
    return TrainedAgent(find_saved(Path(run), step, lambda text: None), torch.device(device))
