"""What the agents saw and did: T steps of N environments."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from coex.envs.views import Views

_PART_SIZE = 1_024  # transitions


@dataclass(frozen=True)
class Episode:
    """One finished episode: its unclipped score and its length in agent steps."""

    env: int
    step: int  # agent steps of all environments when it ended
    score: float
    length: int
    truncated: bool


@dataclass
class Transitions:
    """T steps of N environments, as a bonus sees them.

    `views[name][t]` is what the agents saw at t; row T is what they see next. Where step t ended an episode,
    row t + 1 already shows the next one, and the true last picture is in `final_views` (see `next_view`).
    """

    views: dict[str, Tensor]  # (T + 1, N, …) uint8
    actions: Tensor  # (T, N) int64
    log_probs: Tensor  # (T, N) of those actions
    scores: Tensor  # (T, N) float64, unclipped score of the episode so far, this step's reward included
    final_index: Tensor  # (K, 2) (t, n) of the steps that ended an episode, in time-major order
    final_views: dict[str, Tensor]  # (K, …)
    valid: Tensor | None = field(default=None, kw_only=True)  # (T, N) bool, False where no action led to the picture

    @property
    def num_transitions(self) -> int:
        return self.actions.numel()

    def next_view(self, name: str, steps: slice = slice(None)) -> Tensor:
        """(T, N, …) the picture each of `steps` led to: the final one where it ended the episode."""
        following = self.views[name][1:][steps]
        first, end, _ = steps.indices(len(self.actions))
        within = (self.final_index[:, 0] >= first) & (self.final_index[:, 0] < end)  # (K,)
        if not within.any():
            return following
        following = following.clone()
        following[self.final_index[within, 0] - first, self.final_index[within, 1]] = self.final_views[name][within]
        return following

    def next_view_parts(self, name: str) -> Iterator[Tensor]:
        """`next_view` as (M, …), time-major, part by part: a large rollout does not fit memory as floats."""
        length = max(1, _PART_SIZE // self.actions.shape[1])
        for first in range(0, len(self.actions), length):
            yield self.next_view(name, slice(first, first + length)).flatten(0, 1)


def still(views: Views, score: float) -> Transitions:
    """Returns one picture as a step that led to it from itself, for those who look at pictures one at a time."""
    frames = {name: torch.from_numpy(view.copy())[None, None] for name, view in views.items()}  # (1, 1, …)
    return Transitions(
        views={name: torch.cat([frame, frame]) for name, frame in frames.items()},
        actions=torch.zeros((1, 1), dtype=torch.int64),
        log_probs=torch.zeros((1, 1)),
        scores=torch.full((1, 1), score, dtype=torch.float64),
        final_index=torch.zeros((0, 2), dtype=torch.int64),
        final_views={name: frame[0, :0] for name, frame in frames.items()},
    )


@dataclass
class Rollout(Transitions):
    """T steps of N environments, as a learner sees them."""

    values: Tensor  # (T, N) V(s_t)
    rewards: Tensor  # (T, N) unclipped
    terminated: Tensor  # (T, N) bool
    truncated: Tensor  # (T, N) bool
    last_values: Tensor  # (N,) V(s_T)
    final_values: Tensor  # (K,) V of the final pictures
    episodes: list[Episode] = field(default_factory=list)

    @property
    def ended(self) -> Tensor:
        """(T, N) whether the step was its episode's last."""
        return self.terminated | self.truncated

    def next_values_at_end(self) -> Tensor:
        """(T, N) V of the final picture where a step ended an episode, 0 elsewhere."""
        values = torch.zeros_like(self.values)
        if len(self.final_index):
            values[self.final_index[:, 0], self.final_index[:, 1]] = self.final_values
        return values
