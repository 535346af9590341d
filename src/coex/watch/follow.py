"""One run as its files tell it, followed as they grow, are cut back or disappear."""

import hashlib
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
from coex.watch.identity import identify
from coex.watch.tail import Tail, read_small

MOST_POINTS, MOST_METRICS, MOST_EPISODES = 1_024, 120, 200  # that are kept of a run
_LARGEST_FILE, _LONGEST_LINE = 1_000_000, 64_000  # bytes


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
        pairs = zip(columns["step"], columns.get(name, []), strict=False)
        known = [(step, value) for step, value in pairs if step is not None and value is not None]
        return [step for step, _ in known], [value for _, value in known]


class Follower:
    """A run; `poll` looks whether its files have changed."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        # For URLs: the same from server to server, and it leads nowhere but to a table.
        self.key = hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:12]
        self.version = 0  # set by who polls: when it last changed
        self.restarts = 0  # how often its log was cut back: what a reader has of it is void
        self.status = "stopped"
        self.identity = identify({}, str(path))
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
                self.identity = identify(_read_object(self.path / CONFIG), str(self.path))
            if self._stamps[3:4] != stamps[3:4]:
                summary = _read_object(self.path / SUMMARY)
                self._finished = bool(summary.get("finished"))
                self.peak_memory = _number(summary.get("peak_memory"))
            self.updated = max((stamp[0] / 1e9 for stamp in stamps[:4] if stamp), default=0.0)
            self._stamps, changed = stamps, True
        changed |= self._read_metrics() | self._read_episodes()
        before, self.status = self.status, "finished" if self._finished else "stopped"
        if self.identity.game == "?":
            self.status = "broken"
        elif is_in_use(self.path):
            self.status = "running"
        return changed or self.status != before

    def played(self) -> tuple[float, int] | None:
        """Returns the mean return and the number of games that `coex eval` played with the newest checkpoint."""
        place = newest_checkpoint(self.path)
        result = _read_object(self.path / f"eval-{int(place.name[5:])}.json") if place else {}
        mean, games = _number(result.get("return_mean")), _number(result.get("episodes"))
        return (mean, int(games)) if mean is not None and games and games >= 1 else None

    def notes(self) -> list[str]:
        """Returns what whoever looks at the run should know."""
        notes = []
        if self.status == "broken":
            notes.append("Its config.json cannot be read.")
        if self.status == "stopped":
            place = f"step {self.points.newest.get('step', 0):,.0f} of {self.identity.total_steps:,}"
            notes.append(f"This run was stopped at {place}: coex resume goes on from its newest checkpoint.")
        if not self.points.count:
            notes.append("There is no log point yet: no curve can be drawn.")
        if self.num_broken:
            notes.append(f"Broken lines of metrics.jsonl that are left out: {self.num_broken}.")
        if self.restarts:
            notes.append("Its log was cut back and grew again while it was watched: it was resumed.")
        return notes

    def _read_metrics(self) -> bool:
        was_cut, lines = self._metrics.read()
        if was_cut:
            self.points, self.num_broken = Points(), 0
            self.restarts += 1
        for line in lines:
            point = _parse_point(line)
            if point is None:
                self.num_broken += 1
            else:
                self.points.add(point)
        return was_cut or bool(lines)

    def _read_episodes(self) -> bool:
        was_cut, lines = self._episodes.read()
        if was_cut:
            self.episodes.clear()
        for line in lines[-MOST_EPISODES - 1 :]:
            row = [_number(part) for part in line.split(b",")[:7]]
            known = [value for value in row if value is not None]
            if len(known) == len(row) == 6:  # not the heading, nor broken
                self.episodes.append(known)
        return was_cut or bool(lines)


def short(value: float | None) -> float | None:
    """Returns a number with as many figures as a screen shows; None for what is none."""
    if value is None or math.isnan(value):
        return None
    return value if value.is_integer() else float(f"{value:.6g}")


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
        point = json.loads(line) if len(line) <= _LONGEST_LINE else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(point, dict):
        return None
    numbers = {name[:80]: number for name, value in point.items() if (number := _number(value)) is not None}
    return numbers if 0 <= numbers.get("step", -1.0) < 2**53 else None


def _number(value: Any) -> float | None:
    """The number that a file holds; None for anything else, and for one beyond all use."""
    try:
        number = float(value) if not isinstance(value, bool | str) else math.nan
    except (ValueError, TypeError, OverflowError):
        return None
    return number if abs(number) < 1e300 else None
