"""The training loop: collect, reward, learn, log."""

import contextlib
import ctypes
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coex.config.run import RunConfig
from coex.envs import VectorEnv
from coex.errors import CoexError, UsageError
from coex.learners.batch import make_rewards
from coex.learners.networks import SamplingPolicy
from coex.rollouts.rollout import Collector, Rollout
from coex.runs.checkpoints import CheckpointStore
from coex.runs.directory import RunDirectory, check_unused
from coex.runs.lock import RunLock
from coex.runs.log import RunLog
from coex.runs.progress import Progress
from coex.runs.resume import find_checkpoint
from coex.runs.saver import GlobalGenerators, Saver, Stateful, restore
from coex.runs.stopping import Interrupted
from coex.training.make import bonus_views, make_bonus, make_learner

Metrics = dict[str, float]


def train(
    config: RunConfig,
    out: Path,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    interrupting: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    wandb_project: str | None = None,
    *,
    resume: bool = False,
) -> dict[str, Any]:
    """Trains one agent into the directory `out`, or goes on with the run that is there, and returns the summary.

    `should_stop` is asked between iterations; within `interrupting()` a long one may be ended by raising Interrupted.
    """
    progress = progress or Progress(config.total_steps, config.env.frame_skip, quiet=True)
    device = pick_device(config.device)
    if not resume:
        check_unused(out)
    _keep_freed_memory()
    env_seed, *seeds = np.random.SeedSequence(config.seed).spawn(5)
    with contextlib.ExitStack() as stack:
        stack.enter_context(RunLock(out))
        saved = find_checkpoint(config, out, progress) if resume else None
        env = VectorEnv(
            config.game,
            config.env,
            num_envs=config.num_envs,
            num_workers=config.num_workers,
            views=["policy", *bonus_views(config)],
            seed=env_seed,
        )
        agent = Agent(config, stack.enter_context(env), seeds, device)
        # Before the logs are cut back: a checkpoint that does not fit changes nothing.
        restarted: list[int] = restore(saved, "agent", agent) if saved else []
        logs = saved.manifest.logs if saved else {} if resume else None
        run = stack.enter_context(RunDirectory(out, config, wandb_project, logs))
        log = RunLog(config, run, agent.bonus, progress)
        parts: dict[str, Stateful] = {"agent": agent, "scores": run.scores, "log": log}
        saved_step = saved.manifest.step if saved else None
        saver = Saver(CheckpointStore(out), config, parts, run.logs, progress, saved_step)
        if saved:
            restore(saved, "scores", run.scores)
            restore(saved, "log", log)
        else:
            agent.collector.reset()
            saver.save(0)
        if restarted:
            progress.warn(
                f"{config.game} cannot save its state: {len(restarted)} environments begin a new episode, "
                "and everything else goes on exactly"
            )
        try:
            return _loop(config, agent, log, saver, should_stop, interrupting)
        except OSError as error:
            raise CoexError(f"{out} cannot be written: {error.strerror or error}; {saver.last_good()}") from error


def _loop(
    config: RunConfig,
    agent: "Agent",
    log: RunLog,
    saver: Saver,
    should_stop: Callable[[], bool],
    interrupting: Callable[[], AbstractContextManager[None]],
) -> dict[str, Any]:
    """Iterates until the end, or until it is asked to stop, and leaves a checkpoint and a summary."""
    step, abandoned = agent.collector.steps_done, False
    while step < config.total_steps and not should_stop():
        guard = interrupting if saver.begin_iteration(step) else contextlib.nullcontext
        try:
            with guard():
                rollout, metrics = agent.iterate()
        except Interrupted:
            abandoned = True
            break
        except CoexError as error:
            raise CoexError(f"stopped at step {step:,}: {error}; {saver.last_good()}") from error
        step = agent.collector.steps_done
        log.add(rollout, metrics, step)
        saver.end_iteration(step)
    saved = saver.save(step, abandoned=abandoned)
    is_finished = saved and step >= config.total_steps
    summary = log.finish(step, finished=is_finished, checkpoint_seconds=saver.seconds)
    if not saved:
        raise CoexError(f"the run ended at step {step:,} without a checkpoint of it; {saver.last_good()}")
    return summary


class Agent:
    """What learns: one iteration collects, rewards and updates."""

    def __init__(
        self, config: RunConfig, env: VectorEnv, seeds: Sequence[np.random.SeedSequence], device: torch.device
    ) -> None:
        network_seed, acting_seed, bonus_seed, learner_seed = seeds
        self._generators = GlobalGenerators(_as_int(network_seed), device)
        self._learner = make_learner(config, env.num_actions, learner_seed, device)
        self.bonus = make_bonus(config, env.num_actions, bonus_seed, device)
        self._policy = SamplingPolicy(self._learner.network)
        generator = torch.Generator().manual_seed(_as_int(acting_seed))
        self.collector = Collector(env, config.learner.num_steps, generator, device)
        self._reward = config.reward
        self._env = env
        self._held_steps = 0  # while the policy waited for the bonus to be ready

    def iterate(self) -> tuple[Rollout, Metrics]:
        steps_before = self.collector.steps_done
        rollout = self.collector.collect(self._policy)
        novelty = self.bonus.reward(rollout) if self.bonus else None  # (T, N)
        rewards = make_rewards(rollout.rewards, novelty, self._reward)
        held = self.bonus is not None and not self.bonus.ready
        self._held_steps += held * rollout.num_transitions
        metrics = self._learner.update(rollout, rewards, steps_before, hold_policy=held)
        metrics |= {"held_steps": float(self._held_steps), "reward/mean": rollout.rewards.mean().item()}
        self._learner.network.take_in(rollout.views["policy"][:-1])
        return rollout, metrics | (self.bonus.update(rollout) if self.bonus else {})

    def state_dict(self) -> dict[str, Any]:
        return {
            "env": self._env.state_dict(),
            "collector": self.collector.state_dict(),
            "learner": self._learner.state_dict(),
            "bonus": self.bonus.state_dict() if self.bonus else None,
            "generators": self._generators.state_dict(),
            "held_steps": self._held_steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> list[int]:
        """Returns the environments that had to begin a new episode."""
        exact = self._env.load_state_dict(state["env"])
        self.collector.load_state_dict(state["collector"])
        self._learner.load_state_dict(state["learner"])
        if self.bonus:
            self.bonus.load_state_dict(state["bonus"])
        self._generators.load_state_dict(state["generators"])
        self._held_steps = state["held_steps"]
        restarted = [index for index, is_exact in enumerate(exact) if not is_exact]
        if restarted:
            self.collector.restart_episodes(restarted)
            if self.bonus:
                self.bonus.forget_episodes()
        return restarted


def pick_device(name: str) -> torch.device:
    """The torch device called `name`; one that is not there is said, with what is."""
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda", "mps"):
        raise UsageError(f"--device takes cpu, cuda, cuda:0 or mps, not {name!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        built = "finds no GPU" if torch.backends.cuda.is_built() else "is a CPU build"
        raise UsageError(f"--device {name}: this PyTorch ({torch.__version__}) {built}; use --device cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"--device {name}: there is none; the last is cuda:{torch.cuda.device_count() - 1}")
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
