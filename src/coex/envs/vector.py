"""Many environments at once, in worker processes that write their views into shared memory."""

import ctypes
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawArray
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coex.envs.game import is_atari
from coex.envs.game_config import GameConfig
from coex.envs.processes import Channel, InProcess, close_workers, count_workers, split_evenly, start_worker
from coex.envs.views import Shape, check_view
from coex.envs.worker import Assignment, SharedArrays, Worker
from coex.errors import UsageError


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

    They form groups that can be stepped apart (`send`, `receive`), so that one group's actions are chosen while another
    group's emulators run. The groups, and so all numbers, do not depend on how many workers run the environments.
    """

    def __init__(
        self,
        game: str,
        config: GameConfig,
        *,
        num_envs: int,
        num_workers: int = -1,
        views: Mapping[str, Shape],
        seed: np.random.SeedSequence,
        group_size: int = 8,
        first_env: int = 0,
        num_blocks: int = 1,
    ) -> None:
        """`num_workers` −1: as many processes as there are cores; 0: none, the environments run in this one.

        `group_size`: choosing actions for fewer environments at a time takes almost as long. `first_env`: the number of
        the first of them among those of all processes. `num_blocks`: into which they fall; no group has parts of two.
        """
        _check_views(game, views)
        memory = SharedMemory.allocate(num_envs, views)
        self._arrays = memory.arrays()
        self.num_envs = num_envs
        self.in_process = num_workers == 0
        self.views = self._arrays.views  # (N, …) what the agents see now
        self.final_views = self._arrays.final_views  # (N, …) valid where the last step ended an episode
        self.groups = _make_groups(num_envs, num_blocks, group_size)
        self._workers: list[list[Channel]] = []  # one channel for each group that a worker has a share in
        shares = split_evenly(num_envs, count_workers(num_workers))
        seeds = seed.spawn(first_env + num_envs)[first_env:]
        try:
            for share in shares:
                assignment = Assignment(game, config, share.start, seeds[share])
                members = [both for group in self.groups if (both := _common(share, group))]
                if self.in_process:
                    worker = Worker(assignment, self._arrays)
                    self._workers.append([Channel(part, InProcess(worker, part)) for part in members])
                    self.action_names: list[str] = worker.action_names
                else:
                    self._workers.append(start_worker(functools.partial(_make_worker, assignment, memory), members))
            if not self.in_process:
                self.action_names, *_ = [channels[0].receive() for channels in self._workers]
        except BaseException:
            self.close()
            raise
        channels = [channel for worker in self._workers for channel in worker]
        self._channels = [[c for c in channels if _common(c.members, group)] for group in self.groups]

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
        for channel in self._channels[group]:
            channel.send("step")

    def receive(self, group: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Waits for that step: rewards, terminated, truncated of the group's environments."""
        for channel in self._channels[group]:
            channel.receive()
        members, arrays = self.groups[group], self._arrays
        return arrays.rewards[members], arrays.terminated[members], arrays.truncated[members]

    def reseed(self, seeds: Sequence[np.random.SeedSequence | None]) -> None:
        """Makes each environment anew with its seed, where there is one; `reset` begins its episodes."""
        self._ask("seed", [list(seeds[worker[0].members.start : worker[-1].members.stop]) for worker in self._workers])

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
        shares = [state["envs"][worker[0].members.start : worker[-1].members.stop] for worker in self._workers]
        return [exact for share in self._ask("load", shares) for exact in share]

    def close(self) -> None:
        """Ends the workers; calling it again does nothing."""
        workers, self._workers = self._workers, []
        close_workers(workers)

    def __enter__(self) -> "VectorEnv":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, request: str, payloads: Sequence[Any] | None = None) -> list[Any]:
        for index, channels in enumerate(self._workers):
            channels[0].send(request, payloads[index] if payloads else None)
        return [channels[0].receive() for channels in self._workers]


def _make_worker(assignment: Assignment, memory: SharedMemory) -> Worker:
    return Worker(assignment, memory.arrays())


def _check_views(game: str, views: Mapping[str, Shape]) -> None:
    for name, shape in views.items():
        check_view(name, shape)
    if "ram" in views and not is_atari(game):
        raise UsageError(f"{game} has no RAM to look at: only Atari games do")


def _make_groups(num_envs: int, num_blocks: int, group_size: int) -> list[slice]:
    size = num_envs // num_blocks
    groups = split_evenly(size, max(1, size // group_size))
    firsts = range(0, num_envs, size)
    return [slice(first + group.start, first + group.stop) for first in firsts for group in groups]


def _common(one: slice, other: slice) -> slice | None:
    """Returns what two ranges share."""
    start, stop = max(one.start, other.start), min(one.stop, other.stop)
    return slice(start, stop) if start < stop else None
