"""When a run is saved, and what of it."""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import torch

from coex.config.run import RunConfig
from coex.core.ranks import Ranks
from coex.runs.checkpoints import CheckpointStore, Saved
from coex.runs.checkpoints.tree import Snapshot, take_snapshot
from coex.runs.progress import Progress
from coex.runs.resume import loading_errors

_LONG_SECONDS = 3.0  # an iteration that takes longer is not waited for when a signal asks to stop


class Stateful(Protocol):
    """A part of a run that changes as it goes on."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> Any: ...


class GlobalGenerators:
    """The generators that torch, NumPy and Python share among all their users."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._device = device
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - nothing of ours draws from it, but a library may
        random.seed(seed)

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "torch": torch.get_rng_state(),
            "numpy": np.random.get_state(legacy=False),  # noqa: NPY002
            "python": random.getstate(),
        }
        return state | ({"cuda": torch.cuda.get_rng_state(self._device)} if self._device.type == "cuda" else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        torch.set_rng_state(state["torch"])
        np.random.set_state(state["numpy"])  # noqa: NPY002
        random.setstate(state["python"])
        if self._device.type == "cuda" and "cuda" in state:
            torch.cuda.set_rng_state(state["cuda"], self._device)


@contextlib.contextmanager
def preserved_generators() -> Iterator[None]:
    """Leaves the generators of the program that trains as they were: a run seeds them for itself."""
    states = torch.get_rng_state(), np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        random.setstate(states[2])


def restore(saved: Saved, name: str, part: Stateful) -> Any:
    """Puts what was saved under that name into a part, and returns what it has to say to that."""
    with loading_errors(saved.manifest.step, "this run"):
        return part.load_state_dict(saved.state[name])


class Saver:
    """Saves a run's parts when it is due. One that cannot be written is said, and training goes on.

    Where several processes share a run, all of them save at the same time, by the first one's clock, and it writes.
    """

    def __init__(
        self,
        store: CheckpointStore,
        config: RunConfig,
        parts: Mapping[str, Stateful],
        logs: Callable[[], dict[str, int]],
        progress: Progress,
        saved_step: int | None,
        ranks: Ranks = Ranks(),
    ) -> None:
        self.saved_step = saved_step  # of the newest checkpoint
        self.seconds = 0.0  # spent on saving by this process
        self._store = store
        self._config = config
        self._parts = parts
        self._logs = logs
        self._progress = progress
        self._ranks = ranks
        self._tried_step, self._tried_at = saved_step or 0, self._now()
        self._began_at, self._iteration_seconds = 0.0, 0.0
        self._held: Snapshot | None = None
        self._held_step = 0

    def begin_iteration(self, step: int) -> bool:
        """Whether the coming iteration may be abandoned: its beginning is on the disk, or held in memory."""
        self._held = None
        if step != self.saved_step and self._iteration_seconds > _LONG_SECONDS:
            self._held, self._held_step = self._take(), step
        self._began_at = self._now()
        return step == self.saved_step or self._held is not None

    def end_iteration(self, step: int) -> None:
        """Saves if it is due."""
        self._held = None
        now, config = self._now(), self._config.checkpoint
        self._iteration_seconds = now - self._began_at
        by_time = config.every_minutes and now - self._tried_at >= config.every_minutes * 60
        by_steps = config.every_steps and step // config.every_steps > self._tried_step // config.every_steps
        if (by_time or by_steps) and step < self._config.total_steps:  # the last one comes with the end
            self._tried_step, self._tried_at = step, now
            self.save(step)

    def save(self, step: int, *, abandoned: bool = False) -> bool:
        """Whether there is a checkpoint of this step now; of an abandoned iteration, what was held is written."""
        if step == self.saved_step:
            return True
        began = time.monotonic()
        snapshot = self._held if abandoned and self._held else self._take()
        is_written = self._write(step, snapshot) if self._ranks.is_first else True
        if not abandoned:  # otherwise, the others may have gone
            is_written = bool(self._ranks.decide(is_written))
        if is_written:
            self.saved_step = step
        self.seconds += time.monotonic() - began
        return is_written

    def _write(self, step: int, snapshot: Snapshot) -> bool:
        try:
            self._store.write(step, self._config.to_dict(), self._logs(), snapshot)
        except OSError as error:
            self._progress.warn(
                f"the checkpoint of step {step:,} could not be written: {error.strerror}; {self.last_good()}"
            )
            return False
        with contextlib.suppress(OSError):  # an old one that cannot be removed does no harm
            self._store.prune(self._config.checkpoint)
        return True

    def _now(self) -> float:
        return self._ranks.decide(time.monotonic())

    def rescue(self) -> None:
        """Writes what was held of an iteration that cannot come to its end, if it can be done alone."""
        if self._held is not None:
            self.save(self._held_step, abandoned=True)

    def last_good(self) -> str:
        """For messages."""
        if self.saved_step is None:
            return "there is no checkpoint yet"
        return f"the last good checkpoint is {self._store.path_of(self.saved_step)}"

    def _take(self) -> Snapshot:
        return take_snapshot({name: part.state_dict() for name, part in self._parts.items()})
