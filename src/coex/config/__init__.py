"""The complete description of a run. Nothing here imports torch."""
