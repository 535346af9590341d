"""When checkpoints are written and which are kept."""

from dataclasses import dataclass

from coex.config.checks import check_settings


@dataclass(frozen=True)
class CheckpointConfig:
    """Besides these, a run writes a checkpoint at its start, at its end and when a signal stops it."""

    every_minutes: float = 10.0  # 0: never by the clock
    every_steps: int = 0  # 0: never by the number of steps
    keep: int = 3  # the newest ones
    keep_every_steps: int = 10_000_000  # the first one after each multiple of this stays for good; 0: none

    def __post_init__(self) -> None:
        check_settings(self, counts="keep", weights="every_minutes every_steps keep_every_steps")
