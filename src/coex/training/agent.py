"""What learns: a policy, a bonus, and the environments they are tried in."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.bonuses import EXPLODED, Rewarded
from coex.config.archive import ArchiveConfig
from coex.config.run import RunConfig
from coex.core.ranks import Ranks, Shards
from coex.core.threads import one_thread
from coex.envs import POLICY_SHAPE, Shape, VectorEnv
from coex.errors import CoexError
from coex.learners.batch import LargestReward, make_rewards
from coex.learners.networks import SamplingPolicy
from coex.rollouts.collector import Collector
from coex.rollouts.rollout import Episode, Rollout
from coex.runs.saver import GlobalGenerators
from coex.training.diagnostics import Diagnostics, States, diagnostic_views
from coex.training.make import make_bonus, make_learner
from coex.training.sharing import cut_envs, gather_envs

Metrics = dict[str, float]


def split_seed(seed: int) -> list[np.random.SeedSequence]:
    """Returns a run's seeds: of its environments, and the four that `Agent` takes."""
    return np.random.SeedSequence(seed).spawn(5)


def all_views(config: RunConfig) -> dict[str, Shape]:
    """Returns the pictures that a run's environments must paint: for its policy, its bonus and the record."""
    return {"policy": POLICY_SHAPE, **config.views(), **diagnostic_views(config)}


def make_env(config: RunConfig, seed: np.random.SeedSequence, ranks: Ranks = Ranks()) -> VectorEnv:
    """Returns a run's environments, or this process's share of them, painting all that it looks at."""
    columns = ranks.columns(config.num_envs)
    return VectorEnv(
        config.game,
        config.env,
        num_envs=columns.stop - columns.start,
        num_workers=ranks.share_of_cores() if config.num_workers < 0 else config.num_workers,
        views=all_views(config),
        seed=seed,
        first_env=columns.start,
        num_blocks=config.shards // ranks.world_size,
    )


class Agent:
    """What learns: one iteration collects, rewards and updates.

    Where several processes share a run, each has an agent with its share of the environments and all of the policy.
    The first has the bonus, which sees every step of every environment in order, as it would alone.
    """

    def __init__(
        self,
        config: RunConfig,
        env: VectorEnv,
        seeds: Sequence[np.random.SeedSequence],
        device: torch.device,
        ranks: Ranks = Ranks(),
    ) -> None:
        assert not isinstance(config.learner, ArchiveConfig)
        network_seed, acting_seed, bonus_seed, learner_seed = seeds
        self._generators = GlobalGenerators(_as_int(network_seed), device)
        shards = Shards(config.shards, ranks)
        self._learner = make_learner(config, env.num_actions, learner_seed, device, shards)
        self._has_bonus = config.bonus is not None
        self.bonus = make_bonus(config, env.num_actions, bonus_seed, device) if ranks.is_first else None
        self._policy = SamplingPolicy(self._learner.network)
        generator = torch.Generator().manual_seed(_as_int(acting_seed))
        self.collector = Collector(
            env, config.learner.num_steps, generator, device, shards, gathers_pictures=self._has_bonus
        )
        self._diagnostics = Diagnostics(config.game, config.grid.cells)
        self._reward, self._largest = config.reward, LargestReward()
        self._env = env
        self._ranks, self._columns = ranks, ranks.columns(config.num_envs)
        self._held_steps = 0  # while the policy waited for the bonus to be ready
        self.last: tuple[Rollout, Rewarded | None] | None = None  # for those who watch; the next collection reuses it

    @property
    def steps_done(self) -> int:
        return self.collector.steps_done

    def begin(self) -> None:
        """Begins the first episodes."""
        self.collector.reset()

    def iterate(self) -> tuple[list[Episode], Metrics]:
        """Collects a rollout, rewards it and learns from it; returns the episodes that ended, and metrics."""
        rollout, metrics, _ = self._iterate()
        return rollout.episodes, metrics

    def watch(self) -> tuple[Rollout, States]:
        """Does as `iterate`, and returns the rollout with the states that the bonus counted."""
        rollout, _, states = self._iterate()
        return rollout, states

    def _iterate(self) -> tuple[Rollout, Metrics, States]:
        steps_before = self.collector.steps_done
        rollout = self.collector.collect(self._policy)
        with one_thread():
            rewarded = self.bonus.reward(rollout) if self.bonus else None
        bonus, held = self._tell_bonus(rollout, rewarded) if self._has_bonus else (None, False)
        rewards = make_rewards(rollout.rewards, bonus, self._reward, self._largest)
        self._held_steps += held * rollout.num_transitions
        metrics = self._learner.update(rollout, rewards, steps_before, hold_policy=held)
        metrics |= {"held_steps": float(self._held_steps), "reward/mean": rollout.rewards.mean().item()}
        self._learner.network.update_mean_frame(rollout.views["policy"][:-1, self._columns], self._ranks)
        if self.bonus and rewarded:
            metrics["bonus/mean"] = rewarded.bonus.mean().item()
            with one_thread():
                metrics |= self.bonus.update(rollout, rewarded)
            metrics |= self._diagnostics.observe(rollout, rewarded.states)
        self.last = rollout, rewarded and rewarded._replace(memo=None)
        return rollout, metrics, rewarded.states if rewarded else {}

    def _tell_bonus(self, rollout: Rollout, rewarded: Rewarded | None) -> tuple[Tensor, bool]:
        """Returns what the first process knows to all: the (T, N) bonus, and whether the policy is still held."""
        message = torch.zeros(rollout.num_transitions + 1)
        if self.bonus and rewarded:
            message[:-1], message[-1] = rewarded.bonus.flatten(), float(not self.bonus.ready)
        self._ranks.broadcast(message)
        bonus = message[:-1].view(rollout.actions.shape)
        if not (bonus.abs() < EXPLODED).all():  # nor is NaN
            raise CoexError(f"the bonus has diverged: it is up to {bonus.abs().max().item():g}")
        return bonus, bool(message[-1])

    @property
    def room_pictures(self) -> Mapping[int, NDArray[np.uint8]]:
        """A grey picture (84, 84) of each room."""
        return self._diagnostics.album.frames

    @property
    def action_names(self) -> Sequence[str]:
        return self._env.action_names

    def snapshot(self) -> dict[str, Any]:
        """Returns what only a log point needs."""
        figures = self.bonus.snapshot() if self.bonus else {}
        return figures | self._diagnostics.snapshot(has_clusters="rooms/clusters" in figures)

    def state_dict(self) -> dict[str, Any]:
        """Returns the whole state, to the first process; all of them must ask for it at the same time."""
        return {
            "env": gather_envs(self._ranks, self._env.state_dict(), self._learner.network),
            "collector": self.collector.state_dict(),
            "learner": self._learner.state_dict(),
            "bonus": self.bonus.state_dict() if self.bonus else None,
            "diagnostics": self._diagnostics.state_dict(),
            "generators": self._generators.state_dict(),
            "held_steps": self._held_steps,
            "largest_reward": self._largest.size,
        }

    def load_state_dict(self, state: dict[str, Any]) -> list[int]:
        """Returns the environments that had to begin a new episode; only the first process needs the bonus's state."""
        exact = torch.zeros((1, len(state["env"]["envs"])), dtype=torch.bool)
        exact[0, self._columns] = torch.tensor(self._env.load_state_dict(cut_envs(state["env"], self._columns)))
        self._ranks.fill([exact])
        self.collector.load_state_dict(state["collector"])
        self._learner.load_state_dict(state["learner"])
        if self.bonus:
            self.bonus.load_state_dict(state["bonus"])
        self._diagnostics.load_state_dict(state["diagnostics"])
        self._generators.load_state_dict(state["generators"])
        self._held_steps = state["held_steps"]
        self._largest.size = state.get("largest_reward", 0.0)  # older checkpoints have none
        restarted: list[int] = (~exact[0]).nonzero().flatten().tolist()
        if restarted:
            self.collector.restart_episodes(restarted)
            if self.bonus:
                self.bonus.forget_episodes()
        return restarted


def _as_int(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1)[0])
