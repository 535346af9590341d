"""Collecting: what is recorded, and what happens at an episode's end."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from coex.rollouts.collector import Collector


class Countdown:
    """A stand-in for the vector: environment n ends an episode every n + 2 steps; its picture is the step number."""

    num_envs = 2
    in_process = False
    groups = (slice(0, 1), slice(1, 2))
    lengths = (2, 3)

    def __init__(self) -> None:
        self.views = {"policy": np.zeros((2, 84, 84, 4), np.uint8), "ram": np.zeros((2, 128), np.uint8)}
        self.final_views = {name: np.zeros_like(view) for name, view in self.views.items()}
        self.actions: list[list[int]] = [[], []]

    def reset(self) -> None:
        self._age = [0, 0]

    def send(self, group: int, actions: np.ndarray) -> None:
        self.actions[group] += actions.tolist()

    def receive(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        terminated, truncated = np.zeros((2, 1), bool)
        self._age[n] += 1
        if self._age[n] == self.lengths[n]:
            (terminated, truncated)[n][0] = True  # the first one dies, the second is cut off
            for view in self.final_views.values():
                view[n] = 100 + self.lengths[n]
            self._age[n] = 0
        for view in self.views.values():
            view[n] = self._age[n]
        return np.array([(1.0, -2.5)[n]]), terminated, truncated


class FirstPixel:
    """Values are the pictures' shade; actions tell the draws."""

    def act(self, observations: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (draws * 1e6).long(), -draws, self.value(observations)

    def value(self, observations: Tensor) -> Tensor:
        return observations[:, 0, 0, 0].float()


def collect(times: int = 1) -> tuple[list[Any], Collector, Any]:
    env: Any = Countdown()
    collector = Collector(env, 4, torch.Generator().manual_seed(5), torch.device("cpu"))
    collector.reset()
    policy = FirstPixel()
    return [collector.collect(policy) for _ in range(times)], collector, env


def test_steps_are_recorded_in_time_major_order() -> None:
    (rollout,), collector, env = collect()
    draws = torch.rand((4, 2), generator=torch.Generator().manual_seed(5))
    assert rollout.actions.tolist() == (draws * 1e6).long().tolist()
    assert env.actions == rollout.actions.T.tolist()
    assert rollout.views["ram"][:, :, 0].tolist() == [[0, 0], [1, 1], [0, 2], [1, 0], [0, 1]]
    assert rollout.values.tolist() == [[0, 0], [1, 1], [0, 2], [1, 0]]
    assert rollout.last_values.tolist() == [0, 1]
    assert torch.equal(rollout.log_probs, -draws)
    assert collector.steps_done == rollout.num_transitions == 8


def test_an_episodes_end_shows_its_true_last_picture() -> None:
    (rollout,), _, _ = collect()
    assert rollout.terminated.nonzero().tolist() == [[1, 0], [3, 0]]
    assert rollout.truncated.nonzero().tolist() == [[2, 1]]
    assert rollout.final_index.tolist() == [[1, 0], [2, 1], [3, 0]]
    assert rollout.final_values.tolist() == [102, 103, 102]
    assert rollout.next_view("ram")[:, :, 0].tolist() == [[1, 1], [102, 2], [1, 103], [102, 1]]
    assert rollout.next_view("ram", slice(1, 3))[:, :, 0].tolist() == [[102, 2], [1, 103]]
    assert rollout.views["ram"][2, 0, 0] == 0  # the record itself still shows the next episode
    assert rollout.next_values_at_end().tolist() == [[0, 0], [102, 0], [0, 103], [102, 0]]


def test_pictures_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coex.rollouts.rollout._PART_SIZE", 6)  # 3 steps of 2 environments
    (rollout,), _, _ = collect()
    parts = list(rollout.next_view_parts("ram"))
    assert [len(part) for part in parts] == [6, 2]
    assert torch.equal(torch.cat(parts), rollout.next_view("ram").flatten(0, 1))


def test_scores_are_unclipped_and_start_again_with_an_episode() -> None:
    (first, second), _, _ = collect(times=2)
    assert first.scores.tolist() == [[1, -2.5], [2, -5], [1, -7.5], [2, -2.5]]
    assert [(e.env, e.step, e.score, e.length, e.truncated) for e in first.episodes] == [
        (0, 4, 2.0, 2, False),
        (1, 6, -7.5, 3, True),
        (0, 8, 2.0, 2, False),
    ]
    assert second.scores[0].tolist() == [1, -5]  # the second environment's episode goes on


def test_its_state_round_trips() -> None:
    _, collector, _ = collect()
    other = collect()[1]
    other.load_state_dict(collector.state_dict())
    assert other.steps_done == 8
    assert other.state_dict()["scores"].tolist() == collector.state_dict()["scores"].tolist() == [0.0, -2.5]
