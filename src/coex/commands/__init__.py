"""The commands of `coex`, one module each."""
