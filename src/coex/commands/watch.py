"""`coex watch`."""

import argparse
import contextlib
import os
import secrets
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Any

from coex.commands.evaluate import whole_number
from coex.errors import UsageError

_PORT = 8777


def add_commands(commands: Any) -> None:
    """Adds it to the command line."""
    watch = commands.add_parser(
        "watch",
        help="see runs as they go, in a browser",
        description="Serve a page about all runs under the given directories, for this machine: their curves, the "
        "agents at play as they train, and where they have been. It reads their files and controls nothing. "
        "Ctrl-C ends it; the runs go on.",
    )
    watch.add_argument(
        "directories", nargs="*", metavar="RUNS", type=Path, default=[Path("runs")],
        help="runs, or directories of runs, which may be begun later (default: runs)",
    )  # fmt: skip
    watch.add_argument("--port", metavar="P", help=f"(default: {_PORT}, or any other if that is taken)")
    watch.add_argument("--host", metavar="H", help="let other machines look, too, by this address of this one")
    watch.add_argument(
        "--token", nargs="?", const=secrets.token_urlsafe(18), metavar="T",
        help="what a browser must bring; needed for --host (default: a new one)",
    )  # fmt: skip
    watch.add_argument("--no-open", action="store_true", help="do not open the page, only print its address")
    watch.set_defaults(run=_watch)


def _watch(options: argparse.Namespace) -> int:
    from coex.grid.status import describe_grid
    from coex.watch.runs import Runs
    from coex.watch.server import HOST, WatchServer

    for path in options.directories:
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file: name a run's directory, or one of runs")
    port = whole_number(options.port, "--port") if options.port is not None else None
    if port is not None and not 0 <= port < 65_536:
        raise UsageError(f"--port takes a number from 0 to 65535, not {port}")
    runs = Runs(options.directories, describe_grid=describe_grid)
    host = options.host if options.host is not None else HOST
    try:
        try:
            server = WatchServer(runs, _PORT if port is None else port, host, options.token)
        except OSError:
            if port is not None:
                raise
            server = WatchServer(runs, 0, host, options.token)
    except (OSError, UnicodeError) as error:
        place = f"--host {host}" if port is None else f"--port {port} of {host}"
        raise UsageError(f"{place} cannot be had: {getattr(error, 'strerror', None) or error}") from None
    with server:
        runs.start()
        print(f"{server.address} shows {', '.join(map(str, options.directories))} (Ctrl-C ends it)", flush=True)
        if not options.no_open and _has_screen():
            threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _has_screen() -> bool:
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
