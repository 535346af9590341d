"""Settings of the environments."""

from dataclasses import dataclass, replace

import numpy as np

from coex.errors import UsageError


@dataclass(frozen=True)
class GameConfig:
    """How one game is played. The defaults are the paper's for A2C."""

    frame_skip: int = 4  # emulator frames a step
    sticky: float = 0.0  # chance that an emulator frame repeats the last action instead of taking the new one
    max_noops: int = 30  # an episode begins with 1 to this many frames without action; 0: none
    max_episode_frames: int = 108_000  # half an hour of play, then the episode is truncated
    levels: int = 0  # of a Gymnasium environment: episodes are those of so many of its seeds; 0: of any seed
    first_level: int = 0  # the first of these seeds
    stagger: int = 0  # an environment's first episode is cut off after up to this many frames; 0: not

    def __post_init__(self) -> None:
        if self.frame_skip < 1:
            raise UsageError(f"frame_skip must be at least 1, not {self.frame_skip}")
        if not 0.0 <= self.sticky < 1.0:
            raise UsageError(f"sticky must be at least 0 and below 1, not {self.sticky}")
        for name in ("max_noops", "levels", "first_level", "stagger"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must be at least 0, not {getattr(self, name)}")
        if self.first_level and not self.levels:
            raise UsageError("first_level is of no use without levels: set how many there are")
        if self.max_episode_frames < self.frame_skip:
            raise UsageError(
                f"max_episode_frames must be at least {self.frame_skip} (one step), not {self.max_episode_frames}"
            )

    def first_episode_frames(self, generator: np.random.Generator) -> int:
        """Where an environment's first episode is cut off.

        Episodes of one length would end in all environments at once, and a short rollout would show nothing but their
        beginnings, or nothing but their ends.
        """
        if not self.stagger:
            return self.max_episode_frames
        return min(self.max_episode_frames, self.frame_skip + int(generator.integers(self.stagger)))

    def draw_noops(self, generator: np.random.Generator) -> int:
        """Returns how many frames without action an Atari game's next episode begins with."""
        return int(generator.integers(1, self.max_noops + 1)) if self.max_noops else 0

    def draw_level(self, generator: np.random.Generator) -> int:
        """Returns the seed of a Gymnasium environment's next episode."""
        return self.first_level + int(generator.integers(self.levels or 2**31 - 1))

    def with_whole_episodes(self) -> "GameConfig":
        """For who measures an agent: none is cut off to stagger the environments."""
        return replace(self, stagger=0)
