"""Collecting what the agents see and do, T steps of N environments at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from coex.envs import VIEW_SHAPES, VectorEnv


@dataclass(frozen=True)
class Episode:
    """One finished episode: its unclipped score and its length in agent steps."""

    env: int
    step: int  # agent steps of all environments when it ended
    score: float
    length: int
    truncated: bool


@dataclass
class Rollout:
    """T steps of N environments. Where a step ended an episode, the true last picture is in `final_views`.

    `views[name][t]` is what the agents saw at t; row T is what they see next. Where step t ended an episode,
    row t + 1 already shows the next one, so the transition's second picture is the final one (see `next_view`).
    """

    views: dict[str, Tensor]  # (T + 1, N, …) uint8
    actions: Tensor  # (T, N) int64
    log_probs: Tensor  # (T, N) of those actions
    values: Tensor  # (T, N) V(s_t)
    rewards: Tensor  # (T, N) unclipped
    terminated: Tensor  # (T, N) bool
    truncated: Tensor  # (T, N) bool
    scores: Tensor  # (T, N) float64, unclipped score of the episode so far, this step's reward included
    final_index: Tensor  # (K, 2) (t, n) of the steps that ended an episode, in time-major order
    final_views: dict[str, Tensor]  # (K, …)
    last_values: Tensor  # (N,) V(s_T)
    final_values: Tensor  # (K,) V of the final pictures
    episodes: list[Episode] = field(default_factory=list)

    @property
    def ended(self) -> Tensor:
        """(T, N) whether the step was its episode's last."""
        return self.terminated | self.truncated

    @property
    def num_transitions(self) -> int:
        return self.actions.numel()

    def next_view(self, name: str) -> Tensor:
        """(T, N, …) the picture each step led to: the final one where it ended the episode."""
        following = self.views[name][1:]
        if not len(self.final_index):
            return following
        following = following.clone()
        following[self.final_index[:, 0], self.final_index[:, 1]] = self.final_views[name]
        return following

    def next_values_at_end(self) -> Tensor:
        """(T, N) V of the final picture where a step ended an episode, 0 elsewhere."""
        values = torch.zeros_like(self.values)
        if len(self.final_index):
            values[self.final_index[:, 0], self.final_index[:, 1]] = self.final_values
        return values


class Policy(Protocol):
    """What acting needs: observations are the (N, 84, 84, 4) uint8 policy view."""

    def act(self, observations: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...  # actions, log-probabilities, values
    def value(self, observations: Tensor) -> Tensor: ...


class Collector:
    """Steps the environments with a policy. The rollout's view buffers are reused by the next `collect`."""

    def __init__(self, env: VectorEnv, num_steps: int, device: torch.device) -> None:
        self._env = env
        self._num_steps = num_steps
        self._device = device
        self._views = {
            name: torch.zeros((num_steps + 1, env.num_envs, *VIEW_SHAPES[name]), dtype=torch.uint8)
            for name in env.views
        }
        self.steps_done = 0
        self._scores = np.zeros(env.num_envs)
        self._lengths = np.zeros(env.num_envs, np.int64)

    def reset(self) -> None:
        self._env.reset()

    def collect(self, policy: Policy) -> Rollout:
        steps, envs = self._num_steps, self._env.num_envs
        actions = torch.zeros((steps, envs), dtype=torch.int64)
        log_probs, values = torch.zeros((2, steps, envs))
        rewards, scores = torch.zeros((2, steps, envs), dtype=torch.float64)
        ended = torch.zeros((2, steps, envs), dtype=torch.bool)  # terminated, truncated
        finals: list[tuple[int, int, dict[str, Tensor]]] = []
        episodes: list[Episode] = []
        for t in range(steps):
            self._see(t)
            actions[t], log_probs[t], values[t] = policy.act(self._views["policy"][t].to(self._device))
            reward, terminated, truncated = self._env.step(actions[t].numpy())
            self._scores += reward
            self._lengths += 1
            self.steps_done += envs
            rewards[t], scores[t] = torch.from_numpy(reward), torch.from_numpy(self._scores)
            ended[0, t], ended[1, t] = torch.from_numpy(terminated), torch.from_numpy(truncated)
            for n in np.flatnonzero(terminated | truncated).tolist():
                finals.append((t, n, self._final_pictures(n)))
                episodes.append(self._finish_episode(n, bool(truncated[n])))
        self._see(steps)
        final_index, final_views = _stack_finals(finals, self._views)
        return Rollout(
            views=self._views,
            actions=actions,
            log_probs=log_probs,
            values=values,
            rewards=rewards.float(),
            terminated=ended[0],
            truncated=ended[1],
            scores=scores,
            final_index=final_index,
            final_views=final_views,
            last_values=policy.value(self._views["policy"][steps].to(self._device)).cpu(),
            final_values=policy.value(final_views["policy"].to(self._device)).cpu() if finals else torch.zeros(0),
            episodes=episodes,
        )

    def state_dict(self) -> dict[str, Any]:
        return {"steps_done": self.steps_done, "scores": self._scores.copy(), "lengths": self._lengths.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps_done = state["steps_done"]
        self._scores[...] = state["scores"]
        self._lengths[...] = state["lengths"]

    def _see(self, t: int) -> None:
        for name, view in self._env.views.items():
            self._views[name][t] = torch.from_numpy(view)

    def _final_pictures(self, n: int) -> dict[str, Tensor]:
        return {name: torch.from_numpy(view[n].copy()) for name, view in self._env.final_views.items()}

    def _finish_episode(self, n: int, truncated: bool) -> Episode:
        episode = Episode(n, self.steps_done, float(self._scores[n]), int(self._lengths[n]), truncated)
        self._scores[n] = 0.0
        self._lengths[n] = 0
        return episode


def _stack_finals(
    finals: Sequence[tuple[int, int, dict[str, Tensor]]], like: dict[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    index = torch.tensor([(t, n) for t, n, _ in finals], dtype=torch.int64).reshape(-1, 2)  # (K, 2)
    if not finals:
        return index, {name: view.new_zeros((0, *view.shape[2:])) for name, view in like.items()}
    return index, {name: torch.stack([pictures[name] for _, _, pictures in finals]) for name in like}
