"""A run on disk: its directory, log, lock, checkpoints, and how it is resumed."""
