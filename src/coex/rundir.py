"""A run's directory: configuration, metrics, episodes, TensorBoard events and the summary at the end."""

import csv
import json
import math
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from coex.config import RunConfig
from coex.errors import UsageError
from coex.rollout import Episode

CONFIG, METRICS, EPISODES, SUMMARY = "config.json", "metrics.jsonl", "episodes.csv", "summary.json"
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


class RunDirectory:
    """Writes one run's files, flushed at every log point; closes them whatever happens."""

    def __init__(self, path: Path, config: RunConfig, wandb_project: str | None = None) -> None:
        self.path = path
        self.scores = ScoreBoard()
        check_unused(path)
        wandb = _import_wandb() if wandb_project else None
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--out {path} cannot be made: {error.strerror}") from error
        _write_json(path / CONFIG, config.to_dict())
        self._metrics = (path / METRICS).open("a")
        self._episodes_file = (path / EPISODES).open("a", newline="")
        self._episodes = csv.writer(self._episodes_file, lineterminator="\n")
        self._episodes.writerow(["episode", "step", "env", "return", "length", "truncated"])
        from torch.utils.tensorboard import SummaryWriter  # slow to import, and not needed to read a run

        self._tensorboard = SummaryWriter(path / "tensorboard")
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
        for key, value in point.items():
            if isinstance(value, int | float) and key != "step" and math.isfinite(value):
                self._tensorboard.add_scalar(key, value, point["step"])

        if self._wandb:
            self._wandb.log(point, step=point["step"])

    def finish(self, summary: dict[str, Any]) -> None:
        _write_json(self.path / SUMMARY, {key: _finite(value) for key, value in summary.items()})

    def close(self) -> None:
        self._metrics.close()
        self._episodes_file.close()
        self._tensorboard.close()
        if self._wandb:
            self._wandb.finish()

    def __enter__(self) -> "RunDirectory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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


def score_at(points: Iterable[dict[str, Any]], steps: int) -> float | None:
    """The paper's score with a budget of `steps`: the best mean return of 40 episodes until then."""
    record: float | None = None
    for point in points:
        if point["step"] <= steps:
            record = point["max_return_mean40"]
    return record


def check_unused(path: Path) -> None:
    """A run never writes over another one, or into a directory of something else."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"--out {path} is a file: choose a directory")
    if (path / CONFIG).exists():
        raise UsageError(f"--out {path} already holds a run: choose another directory (nothing was changed)")
    if path.exists() and any(path.iterdir()):
        raise UsageError(f"--out {path} is not empty and holds no run: choose another directory")


def _import_wandb() -> Any:
    try:
        import wandb
    except ImportError:
        raise UsageError("--wandb needs the package wandb: pip install 'coex[wandb]'") from None
    return wandb


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_json(path: Path, value: dict[str, Any]) -> None:
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    scratch.replace(path)  # a reader sees the old file or the new one, never half of one
