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

from coex.config.archive import ArchiveConfig
from coex.config.run import RunConfig
from coex.errors import CoexError, UsageError
from coex.runs.checkpoints import CheckpointStore
from coex.runs.directory import RunDirectory, check_unused
from coex.runs.lock import RunLock
from coex.runs.log import RunLog
from coex.runs.progress import Progress
from coex.runs.resume import find_checkpoint
from coex.runs.saver import Saver, Stateful, preserved_generators, restore
from coex.runs.stopping import Interrupted
from coex.training.agent import Agent, make_env, split_seed
from coex.training.archive_agent import ArchiveAgent, make_pool
from coex.training.live import LiveView


def train(
    config: RunConfig,
    out: Path | str,
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
    out = Path(out)
    progress = progress or Progress(config.total_steps, config.env.frame_skip, quiet=True)
    device = pick_device(config.device)
    if not resume:
        check_unused(out)
    _keep_freed_memory()
    env_seed, *seeds = split_seed(config.seed)
    with contextlib.ExitStack() as stack:
        stack.enter_context(RunLock(out))
        stack.enter_context(preserved_generators())
        saved = find_checkpoint(config, out, progress) if resume else None
        agent = _make_agent(config, stack, env_seed, seeds, device)
        # Before the logs are cut back: a checkpoint that does not fit changes nothing.
        restarted: list[int] = restore(saved, "agent", agent) if saved else []
        logs = saved.manifest.logs if saved else {} if resume else None
        run = stack.enter_context(RunDirectory(out, config, wandb_project, logs))
        log = RunLog(config, run, agent.snapshot, progress)
        parts: dict[str, Stateful] = {"agent": agent, "scores": run.scores, "log": log}
        saved_step = saved.manifest.step if saved else None
        saver = Saver(CheckpointStore(out), config, parts, run.logs, progress, saved_step)
        if saved:
            restore(saved, "scores", run.scores)
            restore(saved, "log", log)
        else:
            agent.begin()
            saver.save(0)
        if restarted:
            progress.warn(
                f"{config.game} does not repeat itself: {len(restarted)} environments begin a new episode, "
                "and everything else goes on exactly"
            )
        try:
            live = LiveView(out, config)
            stack.callback(live.close)
            return _loop(config, agent, log, saver, live, should_stop, interrupting)
        except OSError as error:
            raise CoexError(f"{out} cannot be written: {error.strerror or error}; {saver.last_good()}") from error


def _loop(
    config: RunConfig,
    agent: Agent | ArchiveAgent,
    log: RunLog,
    saver: Saver,
    live: LiveView,
    should_stop: Callable[[], bool],
    interrupting: Callable[[], AbstractContextManager[None]],
) -> dict[str, Any]:
    """Iterates until the end, or until it is asked to stop, and leaves a checkpoint and a summary."""
    step, abandoned = agent.steps_done, False
    while step < config.total_steps and not should_stop():
        guard = interrupting if saver.begin_iteration(step) else contextlib.nullcontext
        try:
            with guard():
                episodes, metrics = agent.iterate()
        except Interrupted:
            abandoned = True
            break
        except CoexError as error:
            raise CoexError(f"stopped at step {step:,}: {error}; {saver.last_good()}") from error
        step = agent.steps_done
        log.add(episodes, metrics, step)
        saver.end_iteration(step)
        live.observe(agent)
    saved = saver.save(step, abandoned=abandoned)
    is_finished = saved and step >= config.total_steps
    summary = log.finish(step, finished=is_finished, checkpoint_seconds=saver.seconds)
    if not saved:
        raise CoexError(f"the run ended at step {step:,} without a checkpoint of it; {saver.last_good()}")
    return summary


def _make_agent(
    config: RunConfig,
    stack: contextlib.ExitStack,
    env_seed: np.random.SeedSequence,
    seeds: Sequence[np.random.SeedSequence],
    device: torch.device,
) -> Agent | ArchiveAgent:
    """Returns what learns; its environments end with the stack."""
    if isinstance(config.learner, ArchiveConfig):
        return ArchiveAgent(config, stack.enter_context(make_pool(config)), seeds, device)
    return Agent(config, stack.enter_context(make_env(config, env_seed)), seeds, device)


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
