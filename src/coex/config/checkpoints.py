"""When checkpoints are written and which are kept."""

from dataclasses import dataclass

from coex.errors import UsageError


@dataclass(frozen=True)
class CheckpointConfig:
    """Besides these, a run writes a checkpoint at its start, at its end and when a signal stops it."""

    every_minutes: float = 10.0  # 0: never by the clock
    every_steps: int = 0  # 0: never by the number of steps
    keep: int = 3  # the newest ones
    keep_every_steps: int = 10_000_000  # the first one after each multiple of this stays for good; 0: none

    def __post_init__(self) -> None:
        for name in ("every_minutes", "every_steps", "keep_every_steps"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} must not be negative, not {getattr(self, name)}")
        if self.keep < 1:
            raise UsageError(f"keep must be at least 1, not {self.keep}")
