"""Checkpoints: everything that a run needs to go on as if it had never stopped, in files that cannot run code."""

from coex.config.checkpoints import CheckpointConfig
from coex.runs.checkpoints.store import CheckpointStore, DamagedError, Saved

__all__ = ["CheckpointConfig", "CheckpointStore", "DamagedError", "Saved"]
