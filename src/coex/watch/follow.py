"""One run as its files tell it, followed as they grow, are cut back or disappear."""

import json
import math
import os
from array import array
from collections import deque
from pathlib import Path
from typing import Any

from coex.runs.files import CONFIG, EPISODES, METRICS, SUMMARY
from coex.runs.lease import is_in_use
from coex.runs.visits import newest_checkpoint
from coex.watch.identity import Identity, identify
from coex.watch.tail import Tail, read_small

MOST_POINTS, MOST_METRICS, MOST_EPISODES = 1_024, 120, 200  # that are kept of a run
_LARGEST_FILE = 1_000_000  # bytes of config.json or summary.json
_HUGE = 1e300


class Points:
    """Log points by column, every one at first, then every 2nd, 4th, … so that there are never too many."""

    def __init__(self) -> None:
        self.newest: dict[str, float] = {}  # of each metric
        self.count = 0
        self._every = 1
        self._columns: dict[str, array[float]] = {"step": array("d")}

    def add(self, point: dict[str, float]) -> None:
        self.newest |= point
        if self.count % self._every == 0:
            length = len(self._columns["step"])
            for name in point:
                if name not in self._columns and len(self._columns) < MOST_METRICS:
                    self._columns[name] = array("d", [math.nan] * length)
            for name, column in self._columns.items():
                column.append(point.get(name, math.nan))
            if length + 1 == MOST_POINTS:
                self._every *= 2
                self._columns = {name: column[::2] for name, column in self._columns.items()}
        self.count += 1

    def columns(self, *names: str) -> dict[str, list[float | None]]:
        """Returns columns of one length with the newest point at their end; all of them if none is named."""
        steps = self._columns["step"]
        last = bool(self.newest) and (not steps or steps[-1] != self.newest["step"])
        return {
            name: [None if math.isnan(value) else value for value in column] + ([self.newest.get(name)] if last else [])
            for name, column in self._columns.items()
            if not names or name in names
        }

    def series(self, name: str) -> tuple[list[float], list[float]]:
        """Returns steps and values of a metric, where it has one."""
        columns = self.columns("step", name)
        pairs = [(s, v) for s, v in zip(columns["step"], columns.get(name, []), strict=False) if None not in (s, v)]
        return [s for s, _ in pairs if s is not None], [v for _, v in pairs if v is not None]


class Follower:
    """A run; `poll` looks whether its files have changed."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.version = 0  # set by who polls: when it last changed
        self.restarts = 0  # how often its log was cut back: what a reader has of it is void
        self.status = "stopped"
        self.identity: Identity | None = None
        self.points = Points()
        self.episodes: deque[list[float]] = deque(maxlen=MOST_EPISODES)
        self.num_broken = 0
        self.peak_memory: float | None = None  # bytes
        self.updated = 0.0
        self._metrics, self._episodes = Tail(path / METRICS), Tail(path / EPISODES)
        self._stamps: tuple[Any, ...] = ()
        self._finished = False

    def poll(self) -> bool:
        """Reads what is new; returns whether anything is."""
        stamps = tuple(_stamp(self.path / name) for name in (CONFIG, METRICS, EPISODES, SUMMARY))
        stamps += (_stamp(self.path) if self.status != "running" else None,)  # what `coex eval` wrote beside them
        changed = False
        if stamps != self._stamps:
            if self._stamps[:1] != stamps[:1]:
                self._read_config()
            if self._stamps[3:4] != stamps[3:4]:
                summary = _read_object(self.path / SUMMARY)
                self._finished = bool(summary.get("finished"))
                size = summary.get("peak_memory")
                self.peak_memory = float(size) if isinstance(size, int | float) and abs(size) < _HUGE else None
            self.updated = max((stamp[0] / 1e9 for stamp in stamps[:4] if stamp), default=0.0)
            self._stamps, changed = stamps, True
        changed |= self._read_metrics() | self._read_episodes()
        status = self._find_status()
        changed |= status != self.status
        self.status = status
        return changed

    def played(self) -> tuple[float, int] | None:
        """Returns the mean return and the number of games that `coex eval` played with the newest checkpoint."""
        place = newest_checkpoint(self.path)
        result = _read_object(self.path / f"eval-{int(place.name[5:])}.json") if place else {}
        mean, games = result.get("return_mean"), result.get("episodes")
        if not isinstance(mean, int | float) or not abs(mean) < _HUGE or not isinstance(games, int) or games < 1:
            return None
        return float(mean), games

    def _read_config(self) -> None:
        self.identity = identify(_read_object(self.path / CONFIG), str(self.path))

    def _read_metrics(self) -> bool:
        was_cut, lines, too_long = self._metrics.read()
        if was_cut:
            self.points, self.num_broken = Points(), 0
            self.restarts += 1
        self.num_broken += too_long
        for line in lines:
            point = _parse_point(line)
            if point is None:
                self.num_broken += 1
            else:
                self.points.add(point)
        return was_cut or bool(lines)

    def _read_episodes(self) -> bool:
        was_cut, lines, _ = self._episodes.read()
        if was_cut:
            self.episodes.clear()
        for line in lines[-MOST_EPISODES - 1 :]:
            parts = line.split(b",")
            try:
                row = [float(part) for part in parts]
            except ValueError:  # the heading, or broken
                continue
            if len(row) == 6 and all(abs(value) < _HUGE for value in row):
                self.episodes.append(row)
        return was_cut or bool(lines)

    def _find_status(self) -> str:
        if self.identity is None or self.identity.game == "?":
            return "broken"
        return "running" if is_in_use(self.path) else "finished" if self._finished else "stopped"


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_small(path, _LARGEST_FILE) or b"")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _parse_point(line: bytes) -> dict[str, float] | None:
    """The numbers of a log point; None for a line that is none."""
    try:
        point = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(point, dict):
        return None
    numbers = {
        name[:80]: float(value)
        for name, value in point.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _HUGE
    }
    step = numbers.get("step", -1.0)
    return numbers if 0 <= step < 2**53 else None
