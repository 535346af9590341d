"""The training loop: collect, reward, learn, log."""

import contextlib
import ctypes
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from coex.config.archive import ArchiveConfig
from coex.config.run import RunConfig
from coex.core.ranks import LostError, Ranks, joined_ranks
from coex.core.threads import one_thread
from coex.errors import CoexError, UsageError
from coex.rollouts.rollout import Episode
from coex.runs.checkpoints import CheckpointStore
from coex.runs.directory import RunDirectory, check_unused
from coex.runs.lock import RunLock
from coex.runs.log import RunLog
from coex.runs.progress import Progress
from coex.runs.resume import find_checkpoint, loading_errors
from coex.runs.saver import Saver, Stateful, preserved_generators, restore
from coex.runs.stopping import Interrupted
from coex.training.agent import Agent, make_env, split_seed
from coex.training.archive_agent import ArchiveAgent, make_pool
from coex.training.live import LiveView
from coex.training.sharing import hear_state, tell_state


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
    Under torchrun its processes share the run; only the first of them writes it down, and has all of the summary.
    """
    out = Path(out)
    progress = progress or Progress(config.total_steps, config.env.frame_skip, quiet=True)
    pick_device(config.device)
    _keep_freed_memory()
    with joined_ranks(config.shards) as ranks:
        loop = _Loop(config, out, progress, should_stop, interrupting, ranks)
        with contextlib.ExitStack() as stack:
            stack.enter_context(preserved_generators())
            if config.shards > 1:  # a shard's numbers are not to depend on how many cores its process has
                stack.enter_context(one_thread())
            summary = loop.lead(stack, wandb_project, resume=resume) if ranks.is_first else loop.follow(stack)
        if not loop.abandoned:
            ranks.wait()  # torchrun ends the others as soon as one has ended
    return summary


class _Loop:
    """One process's part in a run."""

    def __init__(
        self,
        config: RunConfig,
        out: Path,
        progress: Progress,
        should_stop: Callable[[], bool],
        interrupting: Callable[[], AbstractContextManager[None]],
        ranks: Ranks,
    ) -> None:
        self.abandoned = False  # in the middle of an iteration
        self._config, self._out, self._progress, self._ranks = config, out, progress, ranks
        self._should_stop, self._interrupting = should_stop, interrupting

    def lead(self, stack: contextlib.ExitStack, wandb_project: str | None, *, resume: bool) -> dict[str, Any]:
        """Trains, and writes the run down; returns its summary."""
        config, out, progress, ranks = self._config, self._out, self._progress, self._ranks
        if not resume:
            check_unused(out)
        # The first process may be another host's now, which was not there when the one before was lost.
        stack.enter_context(RunLock(out, progress.warn if ranks.world_size > 1 else None))
        saved = find_checkpoint(config, out, progress) if resume else None
        agent = _make_agent(config, stack, ranks)
        tell_state(ranks, saved)
        # Before the logs are cut back: a checkpoint that does not fit changes nothing.
        restarted: list[int] = restore(saved, "agent", agent) if saved else []
        logs = saved.manifest.logs if saved else {} if resume else None
        run = stack.enter_context(RunDirectory(out, config, wandb_project, logs))
        log = RunLog(config, run, agent.snapshot, progress)
        parts: dict[str, Stateful] = {"agent": agent, "scores": run.scores, "log": log}
        saved_step = saved.manifest.step if saved else None
        saver = Saver(CheckpointStore(out), config, parts, run.logs, progress, saved_step, ranks)
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
        live = LiveView(out, config)
        stack.callback(live.close)

        def observe(episodes: list[Episode], metrics: dict[str, float]) -> None:
            log.add(episodes, metrics, agent.steps_done)
            live.observe(agent)

        try:
            step, is_saved = self._run(agent, saver, observe)
            is_finished = is_saved and step >= config.total_steps
            summary = log.finish(step, finished=is_finished, checkpoint_seconds=saver.seconds)
        except OSError as error:
            raise CoexError(f"{out} cannot be written: {error.strerror or error}; {saver.last_good()}") from error
        if not is_saved:
            raise CoexError(f"the run ended at step {step:,} without a checkpoint of it; {saver.last_good()}")
        return summary

    def follow(self, stack: contextlib.ExitStack) -> dict[str, Any]:
        """Takes part in a run that the first process writes down; returns how far it came."""
        agent = _make_agent(self._config, stack, self._ranks)
        saved_step, state = hear_state(self._ranks)
        parts: dict[str, Stateful] = {"agent": agent}
        if state is not None:
            with loading_errors(saved_step or 0, "this run"):
                agent.load_state_dict(state)
        saver = Saver(CheckpointStore(self._out), self._config, parts, dict, self._progress, saved_step, self._ranks)
        if state is None:
            agent.begin()
            saver.save(0)
        step, is_saved = self._run(agent, saver, lambda episodes, metrics: None)
        return {"step": step, "finished": is_saved and step >= self._config.total_steps}

    def _run(
        self, agent: Agent | ArchiveAgent, saver: Saver, observe: Callable[[list[Episode], dict[str, float]], None]
    ) -> tuple[int, bool]:
        """Iterates until the end, or until one of the processes is asked to stop, and leaves a checkpoint.

        Returns the step, and whether there is a checkpoint of it.
        """
        step = agent.steps_done
        try:
            while step < self._config.total_steps and not self._ranks.any(self._should_stop()):
                guard = self._interrupting if saver.begin_iteration(step) else contextlib.nullcontext
                with guard():
                    episodes, metrics = agent.iterate()
                step = agent.steps_done
                observe(episodes, metrics)
                saver.end_iteration(step)
        except Interrupted:
            self.abandoned = True
        except CoexError as error:
            if isinstance(error, LostError):
                saver.rescue()
            raise CoexError(f"stopped at step {step:,}: {error}; {saver.last_good()}") from error
        return step, saver.save(step, abandoned=self.abandoned)


def _make_agent(config: RunConfig, stack: contextlib.ExitStack, ranks: Ranks) -> Agent | ArchiveAgent:
    """Returns what learns; its environments end with the stack."""
    env_seed, *seeds = split_seed(config.seed)
    device = pick_device(config.device)
    if isinstance(config.learner, ArchiveConfig):
        return ArchiveAgent(config, stack.enter_context(make_pool(config)), seeds, device)
    if ranks.world_size > 1 and config.device == "cuda":
        device = torch.device("cuda", ranks.local_rank % torch.cuda.device_count())
    return Agent(config, stack.enter_context(make_env(config, env_seed, ranks)), seeds, device, ranks)


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
