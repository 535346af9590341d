"""`coex watch`: runs as they go, in a browser. Reads a run's files, controls nothing, and imports no torch."""
