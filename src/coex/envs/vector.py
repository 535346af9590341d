"""Many environments at once, in worker processes that write their views into shared memory."""

import contextlib
import ctypes
import itertools
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawArray
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coex.envs.game import is_atari
from coex.envs.game_config import GameConfig
from coex.envs.views import Shape, check_view
from coex.envs.worker import Assignment, SharedArrays, serve
from coex.errors import CoexError, UsageError

_CLOSE_SECONDS = 5.0
_GROUP_SIZE = 8  # environments: choosing actions for fewer at a time takes almost as long
_Worker = tuple[Any, Connection]  # its process, and our end of the pipe


@dataclass(frozen=True)
class SharedMemory:
    """Shared buffers and the arrays laid over them; only the buffers travel to a worker, never a frame."""

    num_envs: int
    views: dict[str, Shape]
    buffers: dict[str, Any]

    @classmethod
    def allocate(cls, num_envs: int, views: Mapping[str, Shape]) -> "SharedMemory":
        # RawArray's file is unlinked as soon as it is made: nothing is left behind, however the run ends.
        sizes = {"actions": 8, "rewards": 8, "terminated": 1, "truncated": 1}
        for name, shape in views.items():
            sizes[f"now/{name}"] = sizes[f"final/{name}"] = int(np.prod(shape))
        buffers = {name: RawArray(ctypes.c_uint8, size * num_envs) for name, size in sizes.items()}
        return cls(num_envs, dict(views), buffers)

    def arrays(self) -> SharedArrays:
        def lay(name: str, dtype: type, *shape: int) -> np.ndarray:
            return np.frombuffer(self.buffers[name], dtype).reshape(self.num_envs, *shape)

        return SharedArrays(
            actions=lay("actions", np.int64),
            rewards=lay("rewards", np.float64),
            terminated=lay("terminated", np.bool_),
            truncated=lay("truncated", np.bool_),
            views={name: lay(f"now/{name}", np.uint8, *shape) for name, shape in self.views.items()},
            final_views={name: lay(f"final/{name}", np.uint8, *shape) for name, shape in self.views.items()},
        )


class VectorEnv:
    """`num_envs` environments of one game; the answers of `step` are valid until the next call.

    The workers form groups that can be stepped apart (`send`, `receive`), so that one group's actions are chosen
    while another group's emulators run.
    """

    def __init__(
        self,
        game: str,
        config: GameConfig,
        *,
        num_envs: int,
        num_workers: int = 0,
        views: Mapping[str, Shape],
        seed: np.random.SeedSequence,
    ) -> None:
        """`num_workers` 0: as many as there are cores."""
        _check_views(game, views)
        memory = SharedMemory.allocate(num_envs, views)
        self._arrays = memory.arrays()
        self.num_envs = num_envs
        self.views = self._arrays.views  # (N, …) what the agents see now
        self.final_views = self._arrays.final_views  # (N, …) valid where the last step ended an episode
        self._workers: list[_Worker] = []
        shares = _shares(seed.spawn(num_envs), num_workers or os.cpu_count() or 1)
        self.groups, self._group_workers = _groups([len(share) for share in shares])
        # A fresh interpreter for each: a fork would copy torch's locks and threads.
        context = multiprocessing.get_context("spawn")
        first = 0
        try:
            for share in shares:
                ours, theirs = context.Pipe()
                assignment = Assignment(game, config, first, share)
                process = context.Process(target=serve, args=(theirs, assignment, memory.arrays), daemon=True)
                process.start()
                theirs.close()
                self._workers.append((process, ours))
                first += len(share)
            self.action_names: list[str] = self._receive(self._workers)[0]
        except BaseException:
            self.close()
            raise

    @property
    def num_actions(self) -> int:
        return len(self.action_names)

    def reset(self) -> None:
        """Begins a new episode everywhere."""
        self._ask("reset")

    def step(self, actions: NDArray[np.int64]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(N,) rewards, terminated, truncated. Where an episode ended, `views` already shows the next one."""
        for group, members in enumerate(self.groups):
            self.send(group, actions[members])
        for group in range(len(self.groups)):
            self.receive(group)
        return self._arrays.rewards, self._arrays.terminated, self._arrays.truncated

    def send(self, group: int, actions: NDArray[np.int64]) -> None:
        """Lets the environments `groups[group]` take a step; until `receive`, nothing of theirs may be read."""
        self._arrays.actions[self.groups[group]] = actions
        self._send(self._workers[self._group_workers[group]], "step")

    def receive(self, group: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Waits for that step: rewards, terminated, truncated of the group's environments."""
        self._receive(self._workers[self._group_workers[group]])
        members, arrays = self.groups[group], self._arrays
        return arrays.rewards[members], arrays.terminated[members], arrays.truncated[members]

    def state_dict(self) -> dict[str, Any]:
        """Every environment's state (`envs`) and the pictures they show (`views`)."""
        envs = [state for share in self._ask("state") for state in share]
        return {"envs": envs, "views": {name: view.copy() for name, view in self.views.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> list[bool]:
        """Continues from `state`, whatever the number of workers; says which environments did so exactly."""
        if len(state["envs"]) != self.num_envs:
            raise UsageError(f"the saved state holds {len(state['envs'])} environments, not {self.num_envs}")
        for name, view in self.views.items():
            view[...] = state["views"][name]
        shares = _shares(state["envs"], len(self._workers))
        return [exact for share in self._ask("load", shares) for exact in share]

    def close(self) -> None:
        """Ends the workers; calling it again does nothing."""
        workers, self._workers = self._workers, []
        for _, connection in workers:
            with contextlib.suppress(OSError):  # that worker may have ended already
                connection.send(("close", None))
        for process, connection in workers:
            process.join(_CLOSE_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
            connection.close()

    def __enter__(self) -> "VectorEnv":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, request: str, payloads: Sequence[Any] | None = None) -> list[Any]:
        self._send(self._workers, request, payloads)
        return self._receive(self._workers)

    def _send(self, workers: Sequence[_Worker], request: str, payloads: Sequence[Any] | None = None) -> None:
        for index, (process, connection) in enumerate(workers):
            try:
                connection.send((request, payloads[index] if payloads else None))
            except (BrokenPipeError, ConnectionResetError):
                raise CoexError(_epitaph(process)) from None

    def _receive(self, workers: Sequence[_Worker]) -> list[Any]:
        answers = []
        for process, connection in workers:
            try:
                kind, answer = connection.recv()
            except (EOFError, ConnectionResetError):
                raise CoexError(_epitaph(process)) from None
            if kind == "failed":
                raise answer
            answers.append(answer)
        return answers


def _check_views(game: str, views: Mapping[str, Shape]) -> None:
    for name, shape in views.items():
        check_view(name, shape)
    if "ram" in views and not is_atari(game):
        raise UsageError(f"{game} has no RAM to look at: only Atari games do")


def _shares(items: Sequence[Any], count: int) -> list[list[Any]]:
    """`items` in order, split as evenly as can be."""
    count = min(count, len(items))
    edges = [len(items) * k // count for k in range(count + 1)]
    return [list(items[start:end]) for start, end in itertools.pairwise(edges)]


def _groups(shares: Sequence[int]) -> tuple[list[slice], list[slice]]:
    """The environments of each group of workers, and the workers, for workers with that many environments each."""
    count = max(1, sum(shares) // _GROUP_SIZE)
    parts = _shares(list(range(len(shares))), count)
    workers = [slice(part[0], part[-1] + 1) for part in parts]
    edges = [0, *itertools.accumulate(sum(shares[part]) for part in workers)]
    return [slice(start, end) for start, end in itertools.pairwise(edges)], workers


def _epitaph(process: Any) -> str:
    process.join(_CLOSE_SECONDS)
    code = process.exitcode
    cause = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    return f"an environment worker (process {process.pid}) {cause}; the run cannot go on"
