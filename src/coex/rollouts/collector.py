"""Collecting rollouts: the environments are stepped with a policy, and everything is written down."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from coex.core.ranks import Ranks, Shards
from coex.envs import VectorEnv
from coex.rollouts.rollout import Episode, Rollout


class Policy(Protocol):
    """What acting needs: observations are the (N, 84, 84, 4) uint8 policy view, draws (N,) uniform on [0, 1)."""

    def act(self, observations: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...  # actions, log π, values
    def value(self, observations: Tensor) -> Tensor: ...


class Collector:
    """Steps the environments with a policy. The rollout's view buffers are reused by the next `collect`.

    Each group of environments has a thread that chooses its actions and waits for its emulators; groups do not wait
    for each other before the rollout's end. What is recorded does not depend on which of them is faster.

    Where several processes share a run, each has an `env` with its own columns of the rollout. At the end all of them
    know the whole of it but for the pictures, which only the first gets, if they are wanted there.
    """

    def __init__(
        self,
        env: VectorEnv,
        num_steps: int,
        generator: torch.Generator,
        device: torch.device,
        shards: Shards = Shards(),
        *,
        gathers_pictures: bool = True,
    ) -> None:
        self._env = env
        self._num_steps = num_steps
        self._shards = shards
        self._gathers_pictures = gathers_pictures
        self._num_envs = env.num_envs * shards.ranks.world_size
        self._first = shards.ranks.columns(self._num_envs).start
        self._generator = generator
        self._device = device
        self._views = {
            name: torch.zeros((num_steps + 1, self._num_envs, *view.shape[1:]), dtype=torch.uint8)
            for name, view in env.views.items()
        }
        self.steps_done = 0
        self._scores = np.zeros(self._num_envs)
        self._lengths = np.zeros(self._num_envs, np.int64)
        self._abandoned = False
        # The groups share the cores: within one of them, torch works on as many as are left.
        threads = max(1, torch.get_num_threads() // len(env.groups))
        self._pool = ThreadPoolExecutor(len(env.groups), initializer=torch.set_num_threads, initargs=(threads,))

    def reset(self) -> None:
        self._env.reset()

    def collect(self, policy: Policy) -> Rollout:
        """T steps of every environment."""
        record = _Record(self._num_steps, self._num_envs, self._generator)
        try:
            groups = range(len(self._env.groups))
            if self._env.in_process:  # nothing is gained by threads, and a debugger likes one better
                found = [self._collect_group(policy, record, group) for group in groups]
            else:
                parts = [self._pool.submit(self._collect_group, policy, record, group) for group in groups]
                found = [part.result() for part in parts]
            ends = sorted(end for part in found for end in part)  # time-major
        except BaseException:
            self._abandoned = True  # no group goes on alone for the rest of a long rollout
            self._pool.shutdown()
            raise
        self._value_finals(policy, record, ends)
        self._shards.ranks.fill(record.parts())
        ended = record.terminated | record.truncated
        self._scores[...] = torch.where(ended[-1], 0.0, record.scores[-1]).numpy()
        self._lengths[...] = torch.where(ended[-1], 0, record.lengths[-1]).numpy()
        final_index = ended.nonzero()  # time-major
        episodes = [self._episode(record, t, n) for t, n in final_index.tolist()]
        self.steps_done += record.actions.numel()
        final_views = _stack_finals(ends, final_index, self._views)
        if self._gathers_pictures:
            gather_pictures(self._shards.ranks, self._views, final_index, final_views)
        return Rollout(
            views=self._views,
            actions=record.actions,
            log_probs=record.log_probs,
            values=record.values,
            rewards=record.rewards.float(),
            terminated=record.terminated,
            truncated=record.truncated,
            scores=record.scores,
            final_index=final_index,
            final_views=final_views,
            last_values=record.last_values,
            final_values=record.end_values[ended],
            episodes=episodes,
        )

    def _collect_group(self, policy: Policy, record: "_Record", group: int) -> list["_End"]:
        """T steps of one group's environments; returns the episodes that ended."""
        members = self._env.groups[group]
        columns = slice(self._first + members.start, self._first + members.stop)
        ends: list[_End] = []
        for t in range(self._num_steps):
            if self._abandoned:
                return ends
            self._see(t, members, columns)
            observations = self._views["policy"][t, columns].to(self._device)
            actions, log_probs, values = policy.act(observations, record.draws[t, columns])
            self._env.send(group, actions.numpy())
            record.actions[t, columns], record.log_probs[t, columns], record.values[t, columns] = (
                actions,
                log_probs,
                values,
            )
            reward, terminated, truncated = self._env.receive(group)
            self._scores[columns] += reward
            self._lengths[columns] += 1
            record.rewards[t, columns] = torch.from_numpy(reward)
            record.scores[t, columns] = torch.from_numpy(self._scores[columns])
            record.lengths[t, columns] = torch.from_numpy(self._lengths[columns])
            record.terminated[t, columns] = torch.from_numpy(terminated)
            record.truncated[t, columns] = torch.from_numpy(truncated)
            for n in np.flatnonzero(terminated | truncated).tolist():
                ends.append(self._finish_episode(t, members.start + n))
        self._see(self._num_steps, members, columns)
        record.last_values[columns] = policy.value(self._views["policy"][self._num_steps, columns].to(self._device))
        return ends

    def _value_finals(self, policy: Policy, record: "_Record", ends: Sequence["_End"]) -> None:
        """Notes the values of the last pictures, shard by shard: in another batch they might be rounded otherwise."""
        for shard in self._shards.own(self._num_envs):
            members = [end for end in ends if shard.start <= end.n < shard.stop]
            if members:
                pictures = torch.stack([end.pictures["policy"] for end in members]).to(self._device)
                t, n = torch.tensor([(end.t, end.n) for end in members]).unbind(1)
                record.end_values[t, n] = policy.value(pictures).cpu()

    def state_dict(self) -> dict[str, Any]:
        return {
            "steps_done": self.steps_done,
            "scores": self._scores.copy(),
            "lengths": self._lengths.copy(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps_done = state["steps_done"]
        self._scores[...] = state["scores"]
        self._lengths[...] = state["lengths"]
        self._generator.set_state(state["generator"])

    def restart_episodes(self, envs: Sequence[int]) -> None:
        """These environments have begun new episodes since the state was saved."""
        self._scores[envs] = 0.0
        self._lengths[envs] = 0

    def _see(self, t: int, members: slice, columns: slice) -> None:
        for name, view in self._env.views.items():
            self._views[name][t, columns] = torch.from_numpy(view[members])

    def _finish_episode(self, t: int, member: int) -> "_End":
        n = self._first + member
        self._scores[n] = 0.0
        self._lengths[n] = 0
        pictures = {name: torch.from_numpy(view[member].copy()) for name, view in self._env.final_views.items()}
        return _End(t, n, pictures)

    def _episode(self, record: "_Record", t: int, n: int) -> Episode:
        score, length, truncated = (part[t, n].item() for part in (record.scores, record.lengths, record.truncated))
        return Episode(n, self.steps_done + (t + 1) * self._num_envs, score, int(length), bool(truncated))


class _Record:
    """What a rollout writes down while it is collected; every group writes its own environments' columns."""

    def __init__(self, steps: int, envs: int, generator: torch.Generator) -> None:
        # Drawn here for all, so that actions do not depend on which group is faster, or on their number.
        self.draws = torch.rand((steps, envs), generator=generator)
        self.actions = torch.zeros((steps, envs), dtype=torch.int64)
        self.lengths = torch.zeros((steps, envs), dtype=torch.int64)
        self.log_probs, self.values, self.end_values = torch.zeros((3, steps, envs))
        self.last_values = torch.zeros(envs)
        self.rewards, self.scores = torch.zeros((2, steps, envs), dtype=torch.float64)
        self.terminated, self.truncated = torch.zeros((2, steps, envs), dtype=torch.bool)

    def parts(self) -> list[Tensor]:
        """Returns what every process has to know of every environment: 46 bytes a step, and 4 at the end."""
        whole = [self.actions, self.lengths, self.log_probs, self.values, self.end_values, self.rewards, self.scores]
        return [*whole, self.terminated, self.truncated, self.last_values[None]]


@dataclass(frozen=True, order=True)
class _End:
    """An episode's end at step t in environment n, with its true last pictures."""

    t: int
    n: int
    pictures: dict[str, Tensor] = field(compare=False)


def _stack_finals(ends: Sequence[_End], index: Tensor, like: dict[str, Tensor]) -> dict[str, Tensor]:
    """The last pictures at the (K, 2) places of `index`; black where they are another process's."""
    if len(ends) == len(index) > 0:
        return {name: torch.stack([end.pictures[name] for end in ends]) for name in like}
    places = {place: k for k, place in enumerate(map(tuple, index.tolist()))}
    finals = {name: view.new_zeros((len(index), *view.shape[2:])) for name, view in like.items()}
    for end in ends:
        for name, final in finals.items():
            final[places[end.t, end.n]] = end.pictures[name]
    return finals


def gather_pictures(
    ranks: Ranks, views: dict[str, Tensor], final_index: Tensor, final_views: dict[str, Tensor]
) -> None:
    """Puts the pictures of all ranks into the first one's (T + 1, N, …) views and (K, …) last pictures."""
    if ranks.world_size == 1:
        return
    own, everybody = ranks.columns(views["policy"].shape[1]), range(ranks.world_size)
    owners = final_index[:, 1] // (own.stop - own.start)  # (K,)
    for name, view in views.items():
        mine = view[:, own].contiguous()
        for rank, part in enumerate(ranks.gather(mine, [mine.shape for _ in everybody])):
            view[:, ranks.columns(view.shape[1], rank)] = part
        finals = final_views[name]
        shapes = [(int((owners == rank).sum()), *finals.shape[1:]) for rank in everybody]
        for rank, part in enumerate(ranks.gather(finals[owners == ranks.rank], shapes)):
            finals[owners == rank] = part
