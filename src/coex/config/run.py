"""The complete description of a run: what `config.json` holds and `--set key=value` changes."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from coex.config.archive import ArchiveConfig
from coex.config.checkpoints import CheckpointConfig
from coex.config.checks import check_settings
from coex.config.grid import Grid, even_grid
from coex.config.learners import A2CConfig, PPOConfig, RewardConfig
from coex.config.settings import flat_settings
from coex.envs import Shape, is_atari
from coex.envs.game_config import GameConfig
from coex.envs.ram import GRID
from coex.errors import UsageError

# What does not change what is learned: the place, and what is written when.
OPERATIONAL = ("log_every_steps", "num_workers", "device", "checkpoint")

# Settings that earlier versions did not have, and the values that do what was done then.
_AS_BEFORE = {"shards": 1, "learner.tell_things": False}

LearnerConfig = A2CConfig | PPOConfig | ArchiveConfig


@dataclass(frozen=True)
class RunConfig:
    """One run, complete: the same configuration on the same machine gives the same run."""

    game: str  # as coex games lists them, or gym:ID
    method: str  # as coex methods lists them
    preset: str = "default"  # what the other settings are by default
    total_steps: int = 1_000_000  # agent steps over all environments
    seed: int = 0  # the same seed gives the same run
    num_envs: int = 16  # side by side
    shards: int = 1  # blocks of environments with gradients of their own; torchrun's processes share them out
    num_workers: int = -1  # processes for the environments; 0: none, they run in this one; -1: one a core
    schedule_steps: int = 0  # the learning rate reaches 0 here; 0: at total_steps
    log_every_steps: int = 0  # 0: about 200 points a run, from 1,000 to 50,000 steps apart
    device: str = "cpu"  # where the networks run
    env: GameConfig = field(default_factory=GameConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    learner: LearnerConfig = field(default_factory=A2CConfig)
    bonus: Any = None  # the settings of the method's bonus, a frozen dataclass
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        check_settings(self, counts="total_steps num_envs", weights="seed schedule_steps log_every_steps")
        if self.shards < 1 or self.shards & (self.shards - 1) or self.num_envs % self.shards:
            raise UsageError(
                f"shards must be a power of two that divides the {self.num_envs} environments, not {self.shards}"
            )
        if isinstance(self.learner, ArchiveConfig) and self.shards > 1:
            raise UsageError(f"{self.method} learns from no rollouts: it has no shards, and runs in one process")
        if self.num_workers < -1:
            raise UsageError(f"num_workers must be at least -1 (one a core), not {self.num_workers}")
        if isinstance(self.learner, ArchiveConfig) and (self.env.sticky or self.env.stagger):
            raise UsageError(
                f"{self.method} goes back to saved games: env.sticky and env.stagger must be 0 in training"
            )
        if isinstance(self.learner, ArchiveConfig) and not {"x", "y"} <= set(getattr(self.bonus, "state", "")):
            raise UsageError(f"{self.method} saves a game for each place: bonus.state must have x and y (such as xycR)")
        if isinstance(self.learner, ArchiveConfig) and self.learner.returns == "restore" and not is_atari(self.game):
            raise UsageError(f"learner.returns=restore needs an Atari game; {self.game} is gone back to by replay")
        if isinstance(self.learner, PPOConfig):
            transitions = self.num_envs * self.learner.num_steps // self.shards
            if transitions < self.learner.num_minibatches:
                raise UsageError(
                    f"learner.num_minibatches: a rollout has only {transitions} steps to share out"
                    + f" in each of {self.shards} shards" * (self.shards > 1)
                )
            if self.learner.two_value_heads and self.bonus is None:
                raise UsageError(f"learner.two_value_heads needs a bonus, and {self.method} has none")

    def resolved(self) -> "RunConfig":
        """With the numbers that 0 stood for."""
        return dataclasses.replace(
            self,
            schedule_steps=self.schedule_steps or self.total_steps,
            log_every_steps=self.log_every_steps or _log_interval(self.total_steps),
        )

    def views(self) -> dict[str, Shape]:
        """Returns the names and shapes of the pictures that the bonus looks at."""
        find = getattr(self.bonus, "views", None)
        return dict(find(self.game)) if find else {}

    @property
    def grid(self) -> Grid:
        """Returns the grid that the bonus locates the agent in; the paper's, where it does not."""
        found: Grid = getattr(self.bonus, "grid", even_grid(GRID))
        return found

    @property
    def rate_decays(self) -> bool:
        """Whether the learning rate falls to 0 over `schedule_steps`."""
        return self.learner.decay_learning_rate

    @property
    def setting(self) -> str:
        """Returns what training had that an agent in the world has not, for tables; empty for most methods."""
        if not isinstance(self.learner, ArchiveConfig):
            return ""
        return "resettable simulator" if self.learner.returns == "restore" else "deterministic environment"

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def without_derived(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run without those that `RunConfig.resolved` made of its length: for one of another length."""
    steps = settings.get("total_steps")
    derived = {"schedule_steps": steps, "log_every_steps": _log_interval(steps)} if isinstance(steps, int) else {}
    return {name: value for name, value in settings.items() if name not in derived or derived[name] != value}


def lacking_settings(config: RunConfig, given: dict[str, Any]) -> list[str]:
    """The full names of the configuration's settings that are not among the given ones."""
    there = flat_settings(given)
    today = flat_settings(config.to_dict())
    return [name for name in today if name not in there and today[name] != _AS_BEFORE.get(name, ...)]


def _log_interval(total_steps: int) -> int:
    return min(max(total_steps // 200, 1_000), 50_000)
