"""What is told of a run as it goes on."""

import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from coex.config.run import RunConfig
from coex.rollouts.rollout import Episode
from coex.runs.directory import RunDirectory
from coex.runs.progress import Progress

Metrics = dict[str, float]

_PATIENCE = 50_000  # steps of learning after which a network should see something
_BLIND_SPREAD = 0.05  # agents that learn have more from their first thousands of steps on, blind ones 0.02 and less


class RunLog:
    """Averages metrics between log points and hands them to the run directory and the progress line."""

    def __init__(
        self, config: RunConfig, run: RunDirectory, snapshot: Callable[[], dict[str, Any]], progress: Progress
    ) -> None:
        self._config = config
        self._run = run
        self._snapshot = snapshot
        self._progress = progress
        self._started = self._point_at = time.monotonic()
        self._point_step = self._last_step = 0
        self._values: dict[str, list[float]] = {}  # since the last point
        self._has_warned = False

    def add(self, episodes: Sequence[Episode], metrics: Metrics, step: int) -> None:
        """Takes in the episodes that an iteration ended and its metrics; `step` is where the run has come to."""
        self._run.add_episodes(episodes)
        for name, value in metrics.items():
            self._values.setdefault(name, []).append(value)
        every = self._config.log_every_steps
        if step // every > self._last_step // every:
            self._log_point(step)
        self._last_step = step

    def finish(self, step: int, *, finished: bool, checkpoint_seconds: float) -> dict[str, Any]:
        """The last point, if anything came since the one before, and the summary."""
        if self._values:
            self._log_point(step, last=True)
        else:
            self._progress.close()
        scores, seconds = self._run.scores, time.monotonic() - self._started
        summary = {
            "finished": finished,
            "game": self._config.game,
            "method": self._config.method,
            "seed": self._config.seed,
            "step": step,
            "frame": step * self._config.env.frame_skip,
            "episodes": scores.episodes,
            "return_mean40": scores.mean,
            "max_return_mean40": scores.record,
            "seconds": round(seconds, 3),
            "checkpoint_seconds": round(checkpoint_seconds, 3),  # since it was last started
            "steps_per_second": round(step / seconds, 1),
            "peak_memory": peak_memory(),
        }
        if self._config.setting:
            summary["setting"] = self._config.setting
        self._run.finish(summary)
        return summary

    def state_dict(self) -> dict[str, Any]:
        """With times as durations: clocks differ from process to process."""
        now = time.monotonic()
        return {
            "seconds": now - self._started,
            "point_seconds": now - self._point_at,
            "point_step": self._point_step,
            "last_step": self._last_step,
            "values": self._values,
            "has_warned": self._has_warned,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        now = time.monotonic()
        self._started, self._point_at = now - state["seconds"], now - state["point_seconds"]
        self._point_step, self._values = state["point_step"], state["values"]
        self._last_step = state["last_step"]
        self._has_warned = state["has_warned"]

    def _log_point(self, step: int, *, last: bool = False) -> None:
        now = time.monotonic()
        scores = self._run.scores
        point: dict[str, Any] = {
            "step": step,
            "frame": step * self._config.env.frame_skip,
            "seconds": round(now - self._started, 3),
            "steps_per_second": round((step - self._point_step) / (now - self._point_at), 1),
            "episodes": scores.episodes,
            "return_mean40": scores.mean,
            "max_return_mean40": scores.record,
        }
        point |= {name: sum(values) / len(values) for name, values in self._values.items()}
        point |= self._snapshot()
        self._run.log(point)
        self._progress.show(point, last=last or step >= self._config.total_steps)
        if not self._has_warned and is_blind(point):
            self._has_warned = True
            self._progress.warn(
                f"the network sees nothing after {step:,} steps: its policy is the same whatever the picture "
                f"(log π varies by {point['network/policy_spread']:.1g}); try the default settings in place of "
                "--preset paper, learner.centre_observations=true, or a smaller reward.bonus_weight"
            )
        self._point_at, self._point_step = now, step
        self._values = {}


def peak_memory() -> int:
    """Returns the most bytes that this process has held, without its workers' processes."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def is_blind(point: dict[str, Any]) -> bool:
    """Whether a log point shows a policy and features that do not depend on the picture, though they had time to."""
    learned = point["step"] - point.get("held_steps", 0)
    spreads = [point[name] for name in ("network/spread", "network/policy_spread") if name in point]
    return bool(spreads) and learned >= _PATIENCE and max(spreads) < _BLIND_SPREAD
