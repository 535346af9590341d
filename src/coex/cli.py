"""The `coex` command."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from coex import __version__
from coex.commands import check, compare, evaluate, grid, lists, paper, report, train, truth, watch
from coex.errors import CoexError, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 1 (failed), 2 (bad input), 130/143 (stopped by a signal)."""
    try:
        options = _parser().parse_args(arguments)
        code: int = options.run(options)
        return code
    except CoexError as error:
        print(f"coex: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # `coex games | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:  # a full disk, a directory that may not be written
        print(f"coex: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # before a run has begun to listen
        return 128 + signal.SIGINT


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see '{self.prog} --help')")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="coex",
        description="Reinforcement learning for sparse rewards: agents that learn, from pixels alone, "
        "which part of the screen they control, and use that to explore.",
    )
    parser.add_argument("--version", action="version", version=f"coex {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for module in (train, watch, check, evaluate, truth, report, compare, grid, paper, lists):
        module.add_commands(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
