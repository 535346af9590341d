"""What is known of a run, from its files: all of it or, while it goes on or when parts are missing, what there is."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coex.analysis.trained import find_saved
from coex.config.bonuses import CoexConfig
from coex.config.presets import changed_settings
from coex.config.run import RunConfig
from coex.config.settings import setting_text
from coex.errors import CoexError
from coex.report.visits import Visits, read_visits
from coex.results.published import Published, published_score
from coex.runs.directory import METRICS, SUMMARY, read_whole_points
from coex.runs.lock import is_in_use
from coex.runs.resume import OPERATIONAL, run_config

_TITLES = {
    "a2c": "A2C",
    "ppo": "PPO",
    "coex": "CoEX",
    "coex-ram": "CoEX+RAM",
    "simhash": "Pixel-SimHash",
    "rnd": "RND",
    "icm": "ICM",
    "curiosity": "curiosity (inverse features)",
    "curiosity-random": "curiosity (random features)",
    "noveld": "NovelD",
    "e3b": "E3B",
    "coex-e3b": "CoEX×E3B",
    "phi-eb": "φ-EB",
    "cts": "CTS",
    "ae-simhash": "AE-SimHash",
    "pixelcnn": "PixelCNN",
    "pixelcnn-chunks": "PixelCNN in chunks",
}


@dataclass(frozen=True)
class Run:
    """One run as a report sees it."""

    path: Path
    config: RunConfig
    points: list[dict[str, Any]]
    skipped_lines: int  # of metrics.jsonl
    summary: dict[str, Any] | None  # None: it has not come to an end
    is_going_on: bool
    checkpoint_step: int | None
    visits: Visits | None

    @property
    def step(self) -> int:
        return int(self.points[-1]["step"]) if self.points else 0

    @property
    def title(self) -> str:
        return f"{method_title(self.config.method)} on {game_title(self.config.game)}"

    @property
    def settings(self) -> str:
        """Those that make the method another one than the paper's, for people."""
        changed = changed_settings(self.config).items()
        return ", ".join(f"{name} = {setting_text(value)}" for name, value in changed if _matters(name))

    @property
    def variant(self) -> str:
        """The method with these settings."""
        return method_title(self.config.method) + (f" ({self.settings})" if self.settings else "")

    @property
    def schedule_steps(self) -> int | None:
        """Where the learning rate reaches 0, which makes runs of different lengths different runs; None: nowhere."""
        return self.config.schedule_steps if self.config.rate_decays else None

    @property
    def status(self) -> str:
        if self.is_going_on:
            return "going on"
        done = self.summary is not None and self.summary.get("finished")
        return "finished" if done else "stopped"

    @property
    def played(self) -> tuple[float, int] | None:
        """The mean return and the number of games that `coex eval` played with the newest checkpoint."""
        try:
            result = json.loads((self.path / f"eval-{self.checkpoint_step}.json").read_text())
            mean, games = result["return_mean"], result["episodes"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return (float(mean), int(games)) if _is_number(mean) and _is_number(games) and games >= 1 else None

    @property
    def published(self) -> Published | None:
        """The paper's score of this method; of another ψ only where the paper has it."""
        bonus = self.config.bonus
        changed = changed_settings(self.config)
        state = bonus.state if isinstance(bonus, CoexConfig) and "bonus.state" in changed else None
        return published_score(self.config.game, self.config.method, state)

    def last(self, key: str) -> float | None:
        """The newest value of a metric."""
        values = self.series(key)[1]
        return float(values[-1]) if len(values) else None

    def series(self, key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Steps (P,) and values (P,) of a metric, where it has a number."""
        pairs = [(point["step"], point[key]) for point in self.points if _is_number(point.get(key))]
        steps, values = np.array(pairs, np.float64).reshape(-1, 2).T
        return steps, values

    def notes(self) -> list[str]:
        """What is missing or damaged, for people."""
        notes = []
        if self.is_going_on:
            notes.append(f"This run is still going on: this is how it stood at step {self.step:,}.")
        elif self.status == "stopped":
            notes.append(f"This run was stopped at step {self.step:,} of {self.config.total_steps:,}.")
        if not self.points:
            notes.append(f"There is no log point in {METRICS}: no curve can be drawn.")
        elif not len(self.series("return_mean40")[0]):
            notes.append("No episode has ended yet: there is no learning curve.")
        if self.skipped_lines:
            lines = "line" if self.skipped_lines == 1 else "lines"
            notes.append(
                f"{self.skipped_lines} broken {lines} of {METRICS} could not be read and {_was(lines)} left out."
            )
        if self.checkpoint_step is None:
            notes.append("There is no checkpoint that can be read: no map of visits, no states and no video.")
        elif self.checkpoint_step < self.step:
            notes.append(f"The map, the states and the video are of the checkpoint of step {self.checkpoint_step:,}.")
        return notes


def load_run(path: Path, warn: Callable[[str], None]) -> Run:
    """Raises UsageError for a directory that holds no run."""
    config = run_config(path)
    is_going_on = is_in_use(path)  # asked first: a run that ends now has a summary when it is read
    points, skipped = read_whole_points(path)
    try:
        saved = find_saved(path, None, warn)
        step, visits = saved.manifest.step, read_visits(saved)
    except CoexError:
        step, visits = None, None
    return Run(path, config, points, skipped, _read_summary(path), is_going_on, step, visits)


def method_title(method: str) -> str:
    """a2c+coex → A2C+CoEX."""
    return "+".join(_TITLES.get(part, part) for part in method.split("+"))


def game_title(game: str) -> str:
    return game.removeprefix("gym:")


def _read_summary(path: Path) -> dict[str, Any] | None:
    try:
        summary = json.loads((path / SUMMARY).read_text())
    except (OSError, ValueError):
        return None
    return summary if isinstance(summary, dict) else None


def _matters(name: str) -> bool:
    """Whether a setting can change what is learned."""
    return name.partition(".")[0] not in OPERATIONAL


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _was(noun: str) -> str:
    return "were" if noun.endswith("s") else "was"
