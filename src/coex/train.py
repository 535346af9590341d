"""The training loop: collect, reward, learn, log."""

import ctypes
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coex.bonuses import Bonus
from coex.config import RunConfig
from coex.envs import VectorEnv
from coex.errors import CoexError, UsageError
from coex.learners.batch import make_rewards
from coex.learners.networks import SamplingPolicy
from coex.methods import bonus_views, make_bonus, make_learner
from coex.optim import NonFiniteError
from coex.progress import Progress
from coex.rollout import Collector, Rollout
from coex.rundir import RunDirectory, check_unused

Metrics = dict[str, float]


def train(
    config: RunConfig,
    out: Path,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    wandb_project: str | None = None,
) -> dict[str, Any]:
    """Trains one agent into the directory `out` and returns the summary."""
    device = pick_device(config.device)
    check_unused(out)
    _keep_freed_memory()
    env_seed, network_seed, acting_seed, bonus_seed, learner_seed = np.random.SeedSequence(config.seed).spawn(5)
    with VectorEnv(
        config.game,
        config.env,
        num_envs=config.num_envs,
        num_workers=config.num_workers,
        views=["policy", *bonus_views(config)],
        seed=env_seed,
    ) as env:
        torch.manual_seed(_as_int(network_seed))
        learner = make_learner(config, env.num_actions, learner_seed, device)
        bonus = make_bonus(config, env.num_actions, bonus_seed, device)
        policy = SamplingPolicy(learner.network)
        generator = torch.Generator().manual_seed(_as_int(acting_seed))
        collector = Collector(env, config.learner.num_steps, generator, device)
        with RunDirectory(out, config, wandb_project) as run:
            log = RunLog(config, run, bonus, progress)
            collector.reset()
            while collector.steps_done < config.total_steps and not should_stop():
                steps_before = collector.steps_done
                rollout = collector.collect(policy)
                novelty = bonus.reward(rollout) if bonus else None  # (T, N)
                rewards = make_rewards(rollout.rewards, novelty, config.reward)
                try:
                    metrics = learner.update(rollout, rewards, steps_before)
                    metrics |= bonus.update(rollout) if bonus else {}
                except NonFiniteError as error:
                    raise CoexError(
                        f"stopped at step {steps_before:,}: {error}; everything until then is in {out}"
                    ) from error
                log.add(rollout, metrics, collector.steps_done)
            return log.finish(collector.steps_done)


class RunLog:
    """Averages metrics between log points and hands them to the run directory and the progress line."""

    def __init__(self, config: RunConfig, run: RunDirectory, bonus: Bonus | None, progress: Progress | None) -> None:
        self._config = config
        self._run = run
        self._bonus = bonus
        self._progress = progress
        self._started = self._point_at = time.monotonic()
        self._point_step = 0
        self._values: dict[str, list[float]] = {}  # since the last point

    def add(self, rollout: Rollout, metrics: Metrics, step: int) -> None:
        self._run.add_episodes(rollout.episodes)
        for name, value in metrics.items():
            self._values.setdefault(name, []).append(value)
        every = self._config.log_every_steps
        if step // every > (step - rollout.num_transitions) // every:
            self._log_point(step)

    def finish(self, step: int) -> dict[str, Any]:
        """The last point, if anything came since the one before, and the summary."""
        if self._values:
            self._log_point(step, last=True)
        elif self._progress:
            self._progress.close()
        scores, seconds = self._run.scores, time.monotonic() - self._started
        summary = {
            "finished": step >= self._config.total_steps,
            "game": self._config.game,
            "method": self._config.method,
            "seed": self._config.seed,
            "step": step,
            "frame": step * self._config.env.frame_skip,
            "episodes": scores.episodes,
            "return_mean40": scores.mean,
            "max_return_mean40": scores.record,
            "seconds": round(seconds, 3),
            "steps_per_second": round(step / seconds, 1),
        }
        self._run.finish(summary)
        return summary

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
        point |= self._bonus.snapshot() if self._bonus else {}
        self._run.log(point)
        if self._progress:
            self._progress.show(point, last=last or step >= self._config.total_steps)
        self._point_at, self._point_step = now, step
        self._values = {}


def pick_device(name: str) -> torch.device:
    """The torch device called `name`; one that is not there is said, with what is."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"--device takes cpu, cuda, cuda:0 or mps, not {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        built = "finds no GPU" if torch.backends.cuda.is_built() else "is a CPU build"
        raise UsageError(f"--device {name}: this PyTorch ({torch.__version__}) {built}; use --device cpu")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError(f"--device {name}: this PyTorch ({torch.__version__}) has no MPS; use --device cpu")
    return device


def _keep_freed_memory() -> None:
    """Lets glibc keep large blocks for the next update, instead of fetching zeroed pages for them each time."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        m_trim_threshold, m_mmap_threshold = -1, -3
        mallopt(m_mmap_threshold, 1 << 30)
        mallopt(m_trim_threshold, 1 << 30)


def _as_int(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1)[0])
