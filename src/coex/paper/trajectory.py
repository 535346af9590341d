"""Play that was recorded as actions and is played again by the emulator: frames would take gigabytes."""

import dataclasses
import zipfile
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.config.run import RunConfig
from coex.envs import POLICY_SHAPE, Shape, VectorEnv
from coex.envs.game_config import GameConfig
from coex.errors import UsageError
from coex.paper.agents import environment_seed, open_agent
from coex.rollouts.collector import Collector
from coex.rollouts.rollout import Rollout


@dataclass(frozen=True)
class Trajectory:
    """S steps of N environments that began as those of a run with that game, seed and `GameConfig()`."""

    game: str
    seed: int
    num_actions: int  # that there are to choose from
    actions: NDArray[np.uint8]  # (S, N)
    log_probs: NDArray[np.float16]  # (S, N) of those actions under the policy of the moment

    @property
    def num_transitions(self) -> int:
        return self.actions.size

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".tmp")
        with scratch.open("wb") as file:
            np.savez_compressed(file, **dataclasses.asdict(self))
        scratch.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Trajectory":
        try:
            with np.load(path, allow_pickle=False) as stored:
                numbers = int(stored["seed"]), int(stored["num_actions"])
                return cls(str(stored["game"]), *numbers, stored["actions"], stored["log_probs"])
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
            raise UsageError(
                f"{path} is not a trajectory that 'coex paper' recorded: remove it, or restore it"
            ) from None


def record(config: RunConfig, should_stop: Callable[[], bool], on_step: Callable[[int], None]) -> Trajectory | None:
    """What an agent does in its first steps while it learns; None if it was stopped before `total_steps`."""
    assert config.env == GameConfig(), "a trajectory is replayed with the default settings of the game"
    actions, log_probs = [], []
    with open_agent(config) as (env, agent):
        agent.collector.reset()
        while agent.collector.steps_done < config.total_steps:
            if should_stop():
                return None
            rollout, _ = agent.watch()
            actions.append(rollout.actions.numpy().astype(np.uint8))
            log_probs.append(rollout.log_probs.numpy().astype(np.float16))
            on_step(agent.collector.steps_done)
        num_actions = env.num_actions
    return Trajectory(config.game, config.seed, num_actions, np.concatenate(actions), np.concatenate(log_probs))


def replay(trajectory: Trajectory, views: Mapping[str, Shape], rollout_steps: int) -> Generator[Rollout]:
    """The same frames once more, in rollouts of (T, N); each is valid until the next."""
    steps, envs = trajectory.actions.shape
    with VectorEnv(
        trajectory.game,
        GameConfig(),
        num_envs=envs,
        group_size=envs,  # one group, so that the actions are asked for in order
        views={"policy": POLICY_SHAPE, **views},
        seed=environment_seed(trajectory.seed),
    ) as env:
        collector = Collector(env, rollout_steps, torch.Generator(), torch.device("cpu"))
        policy = _Replayed(trajectory)
        collector.reset()
        for _ in range(steps // rollout_steps):
            yield collector.collect(policy)


class _Replayed:
    """A policy that repeats what was recorded, whatever it sees."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._actions = torch.from_numpy(trajectory.actions.astype(np.int64))
        self._log_probs = torch.from_numpy(trajectory.log_probs.astype(np.float32))
        self._t = 0

    def act(self, observations: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        actions, log_probs = self._actions[self._t], self._log_probs[self._t]
        assert len(observations) == len(actions), "the environments must form one group"
        self._t += 1
        return actions, log_probs, torch.zeros(draws.shape)

    def value(self, observations: Tensor) -> Tensor:
        return torch.zeros(len(observations))
