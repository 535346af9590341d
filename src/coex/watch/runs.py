"""All runs under some directories: found, followed, and told to whoever asks what has changed."""

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coex.runs.files import CONFIG, LIVE, WATCHED
from coex.runs.visits import newest_checkpoint, saved_visits
from coex.watch.follow import Follower, short
from coex.watch.groups import compare
from coex.watch.tail import read_small

MOST_RUNS, _MOST_DIRECTORIES, _DEPTH = 1_000, 20_000, 4
_POLL_SECONDS, _SCAN_SECONDS, _TOUCH_SECONDS = 1.0, 4.0, 2.0
_LARGEST_LIVE = 4_000_000  # bytes
_CARD = (
    "step", "return_mean40", "max_return_mean40", "episodes", "steps_per_second", "seconds", "adm/distance",
    "rooms/clusters", "rooms/true", "archive/rooms", "archive/cells", "archive/best", "counts/states",
)  # fmt: skip


DescribeGrid = Callable[[Path, Mapping[Path, Follower]], dict[str, Any] | None]


class Runs:
    """Follows runs in a thread of its own; every change has a number, so that a reader asks only for what is new."""

    def __init__(
        self, roots: Sequence[Path], score: float | None = None, describe_grid: DescribeGrid = lambda *_: None
    ) -> None:
        """`score`: methods are compared by the time to it; None: to half of the best.

        `describe_grid` returns how the grid in a directory stands, given the runs by their paths; None: there is none.
        """
        self._score, self._describe_grid = score, describe_grid
        self._grids: tuple[int, list[dict[str, Any]]] = 0, []  # when they last changed
        self.epoch = secrets.token_hex(4)  # numbers of changes mean something within one server only
        self._roots = [root.absolute() for root in roots]
        self._runs: dict[str, Follower] = {}
        self._gone: dict[str, int] = {}
        self.version = 0  # the number of the last change
        self._scanned_at = float("-inf")
        self._guard = threading.RLock()
        self._stop = threading.Event()
        self._touched: dict[str, float] = {}
        self._maps: dict[str, tuple[Path | None, dict[str, Any] | None]] = {}
        self._games: dict[str, tuple[int, list[dict[str, Any]]]] = {}

    def start(self) -> None:
        threading.Thread(target=self._follow, name="follow-runs", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def poll(self) -> None:
        """Looks once at everything."""
        if time.monotonic() - self._scanned_at >= _SCAN_SECONDS:
            self._scan()
            self._scanned_at = time.monotonic()
        for run in sorted(self._runs.values(), key=lambda run: -run.updated):
            with self._guard, contextlib.suppress(Exception):  # whatever is in one run's files, the others go on
                if run.poll():
                    self.version += 1
                    run.version = self.version

    def overview(self, since: int) -> dict[str, Any]:
        """Returns the runs that have changed since that number, and their games' curves."""
        with self._guard:
            changed = [run for run in self._runs.values() if run.version > since]
            games = {run.identity.game for run in changed if run.status != "broken"}
            return {
                "epoch": self.epoch,
                "version": self.version,
                "runs": [_card(run) for run in changed],
                "gone": [key for key, version in self._gone.items() if version > since],
                "games": {game: self._compare(game) for game in sorted(games)},
                "grids": self._grids[1] if self._grids[0] > since else None,
            }

    def detail(self, key: str, since: int) -> dict[str, Any] | None:
        """Returns all about one run, or only its number if it has not changed since; None: there is no such run."""
        with self._guard:
            run = self._runs.get(key)
            if run is None:
                return None
            return {
                "epoch": self.epoch,
                "version": run.version,
                **(_card(run) | _details(run) if run.version > since else {}),
            }

    def live(self, key: str, *, is_present: bool = True) -> dict[str, Any] | None:
        """Returns the agent at play and its map, and lets a run that goes on know that somebody looks.

        For who is not `is_present`, it is the newest checkpoint's map.
        """
        with self._guard:
            run = self._runs.get(key)
        if run is None:
            return None
        if run.status == "running" and is_present:
            self._touch(run)
            with contextlib.suppress(ValueError, RecursionError):
                scene = json.loads(read_small(run.path / LIVE, _LARGEST_LIVE) or b"")
                if isinstance(scene, dict):
                    return scene if scene.get("map") else scene | {"map": self._saved_map(run)}
        return {"map": self._saved_map(run)}

    def _touch(self, run: Follower) -> None:
        """Says "somebody looks" in a run's directory; where nothing may be written, the run is not told."""
        now = time.monotonic()
        if now - self._touched.get(run.key, float("-inf")) < _TOUCH_SECONDS:
            return
        self._touched[run.key] = now
        how = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        with contextlib.suppress(OSError), os.fdopen(os.open(run.path / WATCHED, how, 0o644), "wb") as file:
            os.utime(file.fileno())

    def _saved_map(self, run: Follower) -> dict[str, Any] | None:
        newest, known = newest_checkpoint(run.path), self._maps.get(run.key)
        if known is None or known[0] != newest:
            state, grid = run.identity.state, run.identity.grid
            known = self._maps[run.key] = newest, saved_visits(run.path, state, grid) if state else None
        return known[1]

    def _compare(self, game: str) -> list[dict[str, Any]]:
        runs = [run for run in self._runs.values() if run.identity.game == game]
        newest = max(run.version for run in runs)
        if game not in self._games or self._games[game][0] != newest:
            self._games[game] = newest, compare(runs, self._score)
        return self._games[game][1]

    def _follow(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            with contextlib.suppress(OSError):  # a directory that goes while it is looked at
                self.poll()
            self._stop.wait(max(0.1, _POLL_SECONDS - (time.monotonic() - began)))

    def _scan(self) -> None:
        found = dict(find_runs(self._roots))
        with self._guard:
            known = {run.path for run in self._runs.values()}
            for path in [path for path in found if path not in known][: MOST_RUNS - len(known)]:
                run = Follower(path, found[path])
                self._gone.pop(run.key, None)
                self._runs[run.key] = run
            for gone in [run for run in self._runs.values() if run.path not in found]:
                self.version += 1
                self._gone[gone.key] = self.version
                del self._runs[gone.key]
                for run in self._runs.values():  # their game's curves have changed
                    if run.identity.game == gone.identity.game:
                        run.version = self.version
            self._look_at_grids()

    def _look_at_grids(self) -> None:
        followed, grids = {run.path: run for run in self._runs.values()}, []
        for place in dict.fromkeys([*self._roots, *(path.parents[1] for path in followed)]):  # PLACE/GAME/RUN
            with contextlib.suppress(Exception):  # whatever is in its files
                grids.append(self._describe_grid(place, followed))
        found = [grid for grid in grids if grid]
        if found != self._grids[1]:
            self.version += 1
            self._grids = self.version, found


def find_runs(roots: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yields the directories that hold a run, with their names for people; links are not followed."""
    left = _MOST_DIRECTORIES
    for root in roots:
        todo = [(root, 0)]
        while todo and left > 0:
            path, depth = todo.pop()
            left -= 1
            try:
                entries = [entry for entry in os.scandir(path) if not entry.name.startswith(".")]
            except OSError:
                continue
            if any(entry.name == CONFIG for entry in entries):
                yield path, str(path.relative_to(root.parent))
            elif depth < _DEPTH:
                inner = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
                todo += [(Path(entry.path), depth + 1) for entry in inner]


def _card(run: Follower) -> dict[str, Any]:
    """What the table of runs shows of one."""
    identity, newest = run.identity, run.points.newest
    return {
        "id": run.key,
        "name": run.name,
        "status": run.status,
        "game": identity.game,
        "method": identity.method,
        "variant": identity.variant,
        "seed": identity.seed,
        "total": identity.total_steps,
        "updated": round(run.updated),
        "newest": {name: short(newest[name]) for name in _CARD if name in newest},
    }


def _details(run: Follower) -> dict[str, Any]:
    """All else about it, but its map."""
    return {
        "path": str(run.path),
        "notes": run.notes(),
        "command": run.identity.command,
        "settings": run.identity.settings,
        "paper": run.identity.paper,
        "columns": {name: [short(value) for value in column] for name, column in run.points.columns().items()},
        "log": list(run.episodes),
    }
