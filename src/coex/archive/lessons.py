"""What the policy imitates: stretches of play that end with a reward."""

import zlib
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.archive.ways import pack_bytes, unpack_bytes

STACK = 4


class Segment(NamedTuple):
    """Steps that ended with a reward: what was seen before each of them, and what was done."""

    frames: NDArray[np.uint8]  # (L + 3, 84, 84): the policy saw frames t to t + 3 before step t
    actions: bytes  # (L,)
    cells: NDArray[np.int64]  # (L, 3) before each step
    prints: NDArray[np.uint8]  # (L, 196) before each step
    score: float  # before the reward

    def __len__(self) -> int:
        return len(self.actions)


class Lessons:
    """Segments, the oldest of which go when there are too many steps in them."""

    def __init__(self, capacity: int) -> None:
        self.segments: list[Segment] = []
        self._capacity = capacity
        self._packed: dict[int, bytes] = {}  # the frames of a segment, by its identity: they never change
        self._steps = np.zeros((0, 2), np.int64)  # (M, 2) segment, step

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, segment: Segment) -> None:
        """Takes it in, and lets the oldest go that there is no room for."""
        self.segments.append(segment)
        while len(self.segments) > 1 and sum(map(len, self.segments)) > self._capacity:
            self._packed.pop(id(self.segments.pop(0)), None)
        self._index()

    def guides(self, score: float, most: int = 24) -> list[Segment]:
        """Returns the newest segments that began with that score."""
        return [segment for segment in self.segments if segment.score == score][-most:]

    def batch(self, size: int, gamma: float, generator: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Draws observations (B, 84, 84, 4), actions (B,) and the discounted reward that the segment ends with (B,)."""
        picks = self._steps[generator.integers(len(self._steps), size=size)]
        observations = np.empty((size, 84, 84, STACK), np.uint8)
        actions, left = np.empty(size, np.int64), np.empty(size)
        for b, (k, t) in enumerate(picks.tolist()):
            segment = self.segments[k]
            observations[b] = np.moveaxis(segment.frames[t : t + STACK], 0, -1)
            actions[b], left[b] = segment.actions[t], len(segment) - 1 - t
        values = torch.from_numpy(gamma**left).float()
        return torch.from_numpy(observations), torch.from_numpy(actions), values

    def _index(self) -> None:
        parts = [np.stack([np.full(len(s), k), np.arange(len(s))], axis=-1) for k, s in enumerate(self.segments)]
        self._steps = np.concatenate([np.zeros((0, 2), np.int64), *parts])

    def state_dict(self) -> dict[str, Any]:
        for segment in self.segments:
            if id(segment) not in self._packed:
                self._packed[id(segment)] = zlib.compress(segment.frames.tobytes(), 1)
        cells = [segment.cells for segment in self.segments]
        prints = [segment.prints for segment in self.segments]
        return {
            "frames": pack_bytes(self._packed[id(segment)] for segment in self.segments),
            "actions": pack_bytes(segment.actions for segment in self.segments),
            "cells": np.concatenate([np.zeros((0, 3), np.int64), *cells]),
            "prints": np.concatenate([np.zeros((0, 196), np.uint8), *prints]),
            "scores": np.array([segment.score for segment in self.segments], float),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.segments, self._packed, end = [], {}, 0
        columns = unpack_bytes(state["frames"]), unpack_bytes(state["actions"]), state["scores"].tolist()
        for packed, actions, score in zip(*columns, strict=True):
            first, end = end, end + len(actions)
            frames = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(-1, 84, 84)
            segment = Segment(frames, actions, state["cells"][first:end], state["prints"][first:end], score)
            self.segments.append(segment)
            self._packed[id(segment)] = packed
        self._index()
