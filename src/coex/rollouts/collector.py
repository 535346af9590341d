"""Collecting rollouts: the environments are stepped with a policy, and everything is written down."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

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
    """

    def __init__(self, env: VectorEnv, num_steps: int, generator: torch.Generator, device: torch.device) -> None:
        self._env = env
        self._num_steps = num_steps
        self._generator = generator
        self._device = device
        self._views = {
            name: torch.zeros((num_steps + 1, *view.shape), dtype=torch.uint8) for name, view in env.views.items()
        }
        self.steps_done = 0
        self._scores = np.zeros(env.num_envs)
        self._lengths = np.zeros(env.num_envs, np.int64)
        self._abandoned = False
        # The groups share the cores: within one of them, torch works on as many as are left.
        threads = max(1, torch.get_num_threads() // len(env.groups))
        self._pool = ThreadPoolExecutor(len(env.groups), initializer=torch.set_num_threads, initargs=(threads,))

    def reset(self) -> None:
        self._env.reset()

    def collect(self, policy: Policy) -> Rollout:
        """T steps of every environment."""
        record = _Record(self._num_steps, self._env.num_envs, self._generator)
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
        self.steps_done += record.actions.numel()
        final_index, final_views = _stack_finals(ends, self._views)
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
            final_values=policy.value(final_views["policy"].to(self._device)).cpu(),
            episodes=[end.episode for end in ends],
        )

    def _collect_group(self, policy: Policy, record: "_Record", group: int) -> list["_End"]:
        """T steps of one group's environments; returns the episodes that ended."""
        members = self._env.groups[group]
        ends: list[_End] = []
        for t in range(self._num_steps):
            if self._abandoned:
                return ends
            self._see(t, members)
            observations = self._views["policy"][t, members].to(self._device)
            actions, log_probs, values = policy.act(observations, record.draws[t, members])
            self._env.send(group, actions.numpy())
            record.actions[t, members], record.log_probs[t, members], record.values[t, members] = (
                actions,
                log_probs,
                values,
            )
            reward, terminated, truncated = self._env.receive(group)
            self._scores[members] += reward
            self._lengths[members] += 1
            record.rewards[t, members] = torch.from_numpy(reward)
            record.scores[t, members] = torch.from_numpy(self._scores[members])
            record.terminated[t, members] = torch.from_numpy(terminated)
            record.truncated[t, members] = torch.from_numpy(truncated)
            for n in np.flatnonzero(terminated | truncated).tolist():
                ends.append(self._finish_episode(t, members.start + n, bool(truncated[n])))
        self._see(self._num_steps, members)
        record.last_values[members] = policy.value(self._views["policy"][self._num_steps, members].to(self._device))
        return ends

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

    def _see(self, t: int, members: slice) -> None:
        for name, view in self._env.views.items():
            self._views[name][t, members] = torch.from_numpy(view[members])

    def _finish_episode(self, t: int, n: int, truncated: bool) -> "_End":
        steps_done = self.steps_done + (t + 1) * self._env.num_envs
        episode = Episode(n, steps_done, float(self._scores[n]), int(self._lengths[n]), truncated)
        self._scores[n] = 0.0
        self._lengths[n] = 0
        pictures = {name: torch.from_numpy(view[n].copy()) for name, view in self._env.final_views.items()}
        return _End(t, n, episode, pictures)


class _Record:
    """What a rollout writes down while it is collected; every group writes its own environments' columns."""

    def __init__(self, steps: int, envs: int, generator: torch.Generator) -> None:
        # Drawn here for all, so that actions do not depend on which group is faster, or on their number.
        self.draws = torch.rand((steps, envs), generator=generator)
        self.actions = torch.zeros((steps, envs), dtype=torch.int64)
        self.log_probs, self.values = torch.zeros((2, steps, envs))
        self.last_values = torch.zeros(envs)
        self.rewards, self.scores = torch.zeros((2, steps, envs), dtype=torch.float64)
        self.terminated, self.truncated = torch.zeros((2, steps, envs), dtype=torch.bool)


@dataclass(frozen=True, order=True)
class _End:
    """An episode's end at step t in environment n, with its true last pictures."""

    t: int
    n: int
    episode: Episode = field(compare=False)
    pictures: dict[str, Tensor] = field(compare=False)


def _stack_finals(ends: Sequence[_End], like: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    index = torch.tensor([(end.t, end.n) for end in ends], dtype=torch.int64).reshape(-1, 2)  # (K, 2)
    if not ends:
        return index, {name: view.new_zeros((0, *view.shape[2:])) for name, view in like.items()}
    return index, {name: torch.stack([end.pictures[name] for end in ends]) for name in like}
