"""Pseudo-counts of context tree switching (Bellemare et al. 2016; the trees: Veness et al. 2012).

Every pixel has a tree of its own. A node at depth d holds the counts of the pixel's symbols where the first d of its
neighbours were as the path says. Its probability is a mixture of its own estimate, weight `stay`, and of its child's.
"""

import ctypes
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coex.bonuses import Bonus, BonusContext, Rewarded
from coex.bonuses.pseudocount import Floats, count_bonus, pseudo_counts
from coex.config.field import CTSConfig
from coex.core import native
from coex.rollouts.rollout import Transitions

VIEW = "grey42"
_SYMBOLS = 8  # that a node has room for
# As `Node` of native.c.
_NODE = np.dtype(
    [("stay", "f8"), ("total", "u4"), ("spare", "u4"), ("counts", "u4", _SYMBOLS), ("child", "i4", _SYMBOLS)]
)


def neighbours(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(H, W) symbols → (4, H·W) those to the left, above, above left and above right; 0 outside of the frame."""
    padded = np.pad(frame, ((1, 0), (1, 1)))
    return np.stack([padded[1:, :-2], padded[:-1, 1:-1], padded[:-1, :-2], padded[:-1, 2:]]).reshape(4, -1)


class ContextTrees:
    """A density of pictures of H × W symbols: one context tree for each pixel."""

    def __init__(self, height: int, width: int, symbols: int, depth: int) -> None:
        self._size, self._symbols, self._depth = (height, width), symbols, depth
        self._pixels = height * width
        self.time = 0  # frames learned
        self._used = ctypes.c_int(1 + self._pixels)  # node 0 is none, then come the roots
        self._nodes = np.zeros(1 + self._pixels * (1 + 2 * depth), _NODE)
        self._nodes["stay"][: self._used.value] = 0.5
        self._native = native.load()

    def __len__(self) -> int:
        """The number of nodes."""
        return self._used.value - 1

    def learn(self, frames: NDArray[np.uint8]) -> tuple[Floats, Floats]:
        """Takes in (M, H, W) frames one after the other → (M,) log ρ of each before it was learned, and after."""
        frames = np.ascontiguousarray(frames)
        logs = np.zeros((len(frames), 2))
        done = 0
        while done < len(frames):
            if self._used.value + self._depth * self._pixels > len(self._nodes):
                self._nodes = np.concatenate([self._nodes, np.zeros_like(self._nodes)])
            done += self._learn(frames[done:], logs[done:])
        return logs[:, 0], logs[:, 1]

    def _learn(self, frames: NDArray[np.uint8], logs: Floats) -> int:
        """Learns at least one frame and returns how many."""
        if self._native is None:
            logs[0] = self._learn_slowly(frames[0])
            learned = 1
        else:
            learned = self._native.coex_cts(
                *(frames.ctypes.data, len(frames), *self._size, self._depth, self._symbols),
                *(self._nodes.ctypes.data, len(self._nodes), ctypes.byref(self._used), self.time, logs.ctypes.data),
            )
        self.time += learned
        return int(learned)

    def _learn_slowly(self, frame: NDArray[np.uint8]) -> tuple[float, float]:
        """One frame, all pixels at a time: each has a tree of its own, so none of them is in another's way."""
        nodes, symbol, prior = self._nodes, frame.ravel(), 1.0 / self._symbols
        path = [np.arange(1, 1 + self._pixels)]
        for context in neighbours(frame)[: self._depth]:
            child = nodes["child"][path[-1], context]
            missing = child == 0
            first, last = self._used.value, self._used.value + int(missing.sum())
            child[missing] = np.arange(first, last)
            nodes["stay"][first:last] = 0.5
            nodes["child"][path[-1], context] = child
            self._used.value = last
            path.append(child)
        rate, before, after = 1.0 / (self.time + 2.0), np.zeros(0), np.zeros(0)
        for node in reversed(path):  # from the leaves
            own = (nodes["counts"][node, symbol] + prior) / (nodes["total"][node] + 1.0)
            nodes["counts"][node, symbol] += 1
            nodes["total"][node] += 1
            learned = (nodes["counts"][node, symbol] + prior) / (nodes["total"][node] + 1.0)
            if not len(before):
                before, after = own, learned
                continue
            stay, split = own * nodes["stay"][node], before * (1.0 - nodes["stay"][node])
            before = stay + split
            nodes["stay"][node] = ((1.0 - rate) * stay + rate * split) / before
            after = nodes["stay"][node] * learned + (1.0 - nodes["stay"][node]) * after
        return float(np.log(before).sum()), float(np.log(after).sum())

    def state_dict(self) -> dict[str, Any]:
        """Arrays of all nodes; a checkpoint knows no compound ones."""
        nodes = self._nodes[: self._used.value]
        names = ("stay", "total", "counts", "child")
        return {"time": self.time, **{name: np.ascontiguousarray(nodes[name]) for name in names}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.time = state["time"]
        self._used.value = len(state["stay"])
        self._nodes = np.zeros(2 * len(state["stay"]), _NODE)
        for name in ("stay", "total", "counts", "child"):
            self._nodes[name][: len(state["stay"])] = state[name]


class CTSBonus(Bonus):
    """(N̂ + 0.01)^−½ of small grey pictures with few levels."""

    def __init__(self, config: CTSConfig, context: BonusContext) -> None:
        self._step = 256 // config.levels
        self.trees = ContextTrees(42, 42, config.levels, config.depth)

    def reward(self, rollout: Transitions) -> Rewarded:
        logs = [self.trees.learn(part.numpy() // self._step) for part in rollout.next_view_parts(VIEW)]
        before, after = (np.concatenate(part) for part in zip(*logs, strict=True))
        bonus = count_bonus(pseudo_counts(before, after))
        return Rewarded(torch.from_numpy(bonus).float().view(rollout.actions.shape))

    def snapshot(self) -> dict[str, Any]:
        return {"counts/nodes": len(self.trees)}

    def state_dict(self) -> dict[str, Any]:
        return self.trees.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.trees.load_state_dict(state)
