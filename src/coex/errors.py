"""The errors a user meets: one clear line each, and the exit code that goes with it."""


class CoexError(Exception):
    """A failure while running (exit code 1)."""

    exit_code = 1


class UsageError(CoexError, ValueError):
    """Bad input: the message says which input, and what to do (exit code 2)."""

    exit_code = 2
