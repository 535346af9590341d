"""A run's directory: configuration, metrics, episodes, TensorBoard events and the summary at the end."""

import contextlib
import csv
import json
import math
import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from coex.config.run import RunConfig
from coex.errors import UsageError
from coex.rollouts.rollout import Episode
from coex.runs.events import EventWriter, event_files, next_event_file
from coex.runs.files import CONFIG as CONFIG
from coex.runs.files import EPISODES as EPISODES
from coex.runs.files import LOCK
from coex.runs.files import METRICS as METRICS
from coex.runs.files import SUMMARY as SUMMARY
from coex.runs.lease import lease_files

TENSORBOARD = "tensorboard"
WINDOW = 40  # the paper's score: the mean return of this many recent episodes


class ScoreBoard:
    """Mean return of the last 40 episodes, and the best it has been: the paper's score."""

    def __init__(self) -> None:
        self.episodes = 0
        self.best: float | None = None
        self._recent: deque[float] = deque(maxlen=WINDOW)

    def add(self, score: float) -> None:
        self.episodes += 1
        self._recent.append(score)
        # A mean of fewer episodes says too little to be a record, unless there are no more.
        if len(self._recent) == WINDOW:
            mean = sum(self._recent) / WINDOW
            self.best = mean if self.best is None else max(self.best, mean)

    @property
    def mean(self) -> float | None:
        return sum(self._recent) / len(self._recent) if self._recent else None

    @property
    def record(self) -> float | None:
        return self.best if self.best is not None else self.mean

    def state_dict(self) -> dict[str, Any]:
        return {"episodes": self.episodes, "best": self.best, "recent": list(self._recent)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.episodes, self.best = state["episodes"], state["best"]
        self._recent = deque(state["recent"], maxlen=WINDOW)


class RunDirectory:
    """Writes one run's files, flushed at every log point; closes them whatever happens.

    A run that goes on (`logs` tells how long its files were at the checkpoint) first loses what came after it.
    """

    def __init__(
        self, path: Path, config: RunConfig, wandb_project: str | None = None, logs: dict[str, int] | None = None
    ) -> None:
        self.path = path
        self.scores = ScoreBoard()
        wandb = _import_wandb() if wandb_project else None
        # Named before the logs are cut back: a TensorBoard that watches goes on to later names only.
        event_file = next_event_file(path / TENSORBOARD)
        if logs is None:
            check_unused(path)
            path.mkdir(parents=True, exist_ok=True)
        else:
            _refuse_links(path)
            _cut_back(path, logs)
            (path / SUMMARY).unlink(missing_ok=True)
        write_json(path / CONFIG, config.to_dict())
        self._metrics = (path / METRICS).open("a")
        self._episodes_file = (path / EPISODES).open("a", newline="")
        self._episodes = csv.writer(self._episodes_file, lineterminator="\n")
        if not self._episodes_file.tell():
            self._episodes.writerow(["episode", "step", "env", "return", "length", "truncated"])
        self._tensorboard = EventWriter(event_file)
        self._wandb = wandb and wandb.init(project=wandb_project, name=path.name, dir=path, config=config.to_dict())

    def add_episodes(self, episodes: Iterable[Episode]) -> None:
        for episode in episodes:
            self._episodes.writerow(
                [
                    self.scores.episodes,
                    episode.step,
                    episode.env,
                    episode.score,
                    episode.length,
                    int(episode.truncated),
                ]
            )
            self.scores.add(episode.score)

    def log(self, point: dict[str, Any]) -> None:
        """One log point; `point` must hold `step`."""
        self._metrics.write(json.dumps({key: _finite(value) for key, value in point.items()}) + "\n")
        self._metrics.flush()
        self._episodes_file.flush()
        scalars = {
            key: value
            for key, value in point.items()
            if isinstance(value, int | float) and key != "step" and math.isfinite(value)
        }
        self._tensorboard.add(scalars, point["step"])
        if self._wandb:
            self._wandb.log(point, step=point["step"])

    def logs(self) -> dict[str, int]:
        """How long each log is now; so much of it is safe on the disk."""
        self._metrics.flush()
        self._episodes_file.flush()
        sizes = {}
        for path in (self.path / METRICS, self.path / EPISODES, *event_files(self.path / TENSORBOARD)):
            with path.open("rb") as file:
                os.fsync(file.fileno())
                sizes[path.relative_to(self.path).as_posix()] = os.fstat(file.fileno()).st_size
        return sizes

    def finish(self, summary: dict[str, Any]) -> None:
        write_json(self.path / SUMMARY, {key: _finite(value) for key, value in summary.items()})

    def close(self) -> None:
        with contextlib.ExitStack() as stack:  # all of them, though one may fail on a full disk
            for file in (self._tensorboard, self._episodes_file, self._metrics):
                stack.callback(file.close)
            if self._wandb:
                stack.callback(self._wandb.finish)

    def __enter__(self) -> "RunDirectory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except OSError:
            if error is None:  # the first failure is the one to tell
                raise


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The log points of a run; a last line that was torn by a kill is left out."""
    points = []
    lines = (path / METRICS).read_text().splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            points.append(json.loads(line))
        except ValueError:
            if number < len(lines):
                raise UsageError(f"{path / METRICS}, line {number}, is not JSON") from None
    return points


def read_whole_points(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The log points of a run that can be read, by step, and the number of lines that cannot."""
    try:
        lines = (path / METRICS).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return [], 0
    points = []
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            point = json.loads(line)
            if isinstance(point, dict) and isinstance(point.get("step"), int) and 0 <= point["step"] < 2**53:
                points.append(point)
    return sorted(points, key=lambda point: point["step"]), len(lines) - len(points)


def score_at(points: Iterable[dict[str, Any]], steps: int) -> float | None:
    """The paper's score with a budget of `steps`: the best mean return of 40 episodes until then."""
    record: float | None = None
    for point in points:
        if point["step"] <= steps:
            record = point["max_return_mean40"]
    return record


def check_unused(path: Path) -> None:
    """A run never writes over another one, or into a directory of something else."""
    if not path.exists():
        return
    if not path.is_dir():
        raise UsageError(f"--out {path} is a file: choose a directory")
    if (path / CONFIG).exists():
        raise UsageError(f"--out {path} already holds a run: choose another directory (nothing was changed)")
    # Beginnings of a run that was killed before it had a configuration.
    beginnings = {LOCK, Path(CONFIG).with_suffix(".tmp").name, *(lease.name for lease in lease_files(path))}
    if any(entry.name not in beginnings for entry in path.iterdir()):
        raise UsageError(f"--out {path} is not empty and holds no run: choose another directory")


def _import_wandb() -> Any:
    try:
        import wandb
    except ImportError:
        raise UsageError("--wandb needs the package wandb: pip install 'coex-rl[wandb]'") from None
    return wandb


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _refuse_links(path: Path) -> None:
    """Nothing outside the run's directory is ever written."""
    for name in (CONFIG, METRICS, EPISODES, SUMMARY, TENSORBOARD):
        if (path / name).is_symlink():
            raise UsageError(f"{path / name} is a link: put the file itself in its place")


def _cut_back(path: Path, logs: dict[str, int]) -> None:
    """Takes from the logs what was written after the checkpoint, so that no step appears twice."""
    for file in (path / METRICS, path / EPISODES, *event_files(path / TENSORBOARD)):
        size = logs.get(file.relative_to(path).as_posix())
        if size is None:
            file.unlink(missing_ok=True)
        elif file.exists() and file.stat().st_size > size:
            os.truncate(file, size)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes a whole file: a reader sees the old one or the new one, never half of one."""
    scratch = path.with_suffix(".tmp")
    scratch.unlink(missing_ok=True)
    with scratch.open("x", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def runs_below(paths: Iterable[Path]) -> list[Path]:
    """Returns the runs, each directory of many (a grid's, say) replaced by those that it holds, in order."""
    found: list[Path] = []
    for path in paths:
        below = [] if (path / CONFIG).exists() else sorted(place.parent for place in path.glob(f"*/*/{CONFIG}"))
        found += below or [path]
    return found
