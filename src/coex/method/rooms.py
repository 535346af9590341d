"""Which room is this? Online clustering of randomly projected frames (appendix D, Algorithm 2)."""

from math import sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coex.config.bonuses import ClusterConfig
from coex.method.threshold import FIRST_OBSERVATIONS, choose_threshold

NUM_PIXELS = 84 * 84 * 3

# The projection's weights are whole numbers from −3 to 3. Every sum of pixels it makes is then a whole number
# below 2²⁴, which float32 holds exactly: an observation has one embedding, whatever the batch or the machine.
# Embeddings stay whole numbers, and so do clusters' sums: the order in which members were added does not matter.
_MAX_WEIGHT = 3
assert NUM_PIXELS * 255 * _MAX_WEIGHT < 2**24

NEW_ROOM = -1  # of a picture that would found a cluster
_BLOCK = 128  # embeddings whose candidate clusters are looked up together


class RoomClusters:
    """Names observations by the nearest cluster within τ; one that has none founds its own.

    Embeddings and centres are in units of `scale`: times it, they are what a Glorot layer gives of pixels in [0, 1],
    and what τ is measured in.
    """

    def __init__(self, config: ClusterConfig = ClusterConfig()) -> None:
        self.config = config
        rng = np.random.default_rng(config.seed)
        weights = rng.integers(-_MAX_WEIGHT, _MAX_WEIGHT + 1, (NUM_PIXELS, config.embedding_size))
        self._weights = torch.from_numpy(weights).float()  # fixed: it is not trained
        glorot_std = sqrt(2 / (NUM_PIXELS + config.embedding_size))
        weights_std = sqrt(_MAX_WEIGHT * (_MAX_WEIGHT + 1) / 3)  # of whole numbers drawn uniformly from ±3
        self.scale = config.projection_scale * glorot_std / weights_std / 255
        self._sums = np.zeros((0, config.embedding_size), np.int64)  # (C, E) of the members' embeddings
        self._sizes = np.zeros(0, np.int64)  # (C,)
        self.threshold = config.threshold  # τ; 0: not chosen yet
        self._first = np.zeros((0, config.embedding_size), np.int64)  # what it will be chosen from

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def centres(self) -> NDArray[np.float64]:
        """(C, E)."""
        return self._sums / self._sizes[:, None]

    @property
    def _reach(self) -> float:
        """τ in units of the embeddings, which are whole numbers."""
        return self.threshold / self.scale

    def embed(self, frames: Tensor) -> NDArray[np.int64]:
        """(M, 84, 84, 3) uint8 → (M, E) whole numbers."""
        return (frames.reshape(len(frames), NUM_PIXELS).float() @ self._weights).numpy().astype(np.int64)

    def assign(self, embeddings: NDArray[np.int64]) -> NDArray[np.int64]:
        """Algorithm 2 on (M, E) embeddings, in order → (M,) cluster names 0, 1, … by age; centres follow."""
        if not self.threshold:
            return self._assign_first(embeddings)
        blocks = [embeddings[i : i + _BLOCK] for i in range(0, len(embeddings), _BLOCK)]
        return np.concatenate([np.zeros(0, np.int64), *(self._assign_block(block) for block in blocks)])

    def _assign_first(self, embeddings: NDArray[np.int64]) -> NDArray[np.int64]:
        """Assigns before τ is known: everything is in room 0, until there is enough to choose it from."""
        self._first = np.concatenate([self._first, embeddings])
        if len(self._first) < FIRST_OBSERVATIONS:
            return np.zeros(len(embeddings), np.int64)
        self.threshold = choose_threshold(self._first[:FIRST_OBSERVATIONS].astype(np.float64) * self.scale)
        names = self.assign(self._first)[len(self._first) - len(embeddings) :]
        self._first = self._first[:0]
        return names

    def find(self, embeddings: NDArray[np.int64]) -> NDArray[np.int64]:
        """(M, E) → (M,) the cluster that each would join now, −1 where it would found one; nothing changes."""
        if not len(self):
            return np.full(len(embeddings), NEW_ROOM if self.threshold else 0)
        distances = np.linalg.norm(self.centres[:, None] - embeddings, axis=-1)  # (C, M)
        nearest = distances.argmin(0)
        return np.where(distances.min(0) <= self._reach, nearest, NEW_ROOM)

    def _assign_block(self, embeddings: NDArray[np.int64]) -> NDArray[np.int64]:
        # A cluster farther than τ from all the embeddings cannot be chosen, so it stays where it is: only the
        # near ones and the new ones take part in the sequential loop, however many clusters there are.
        points = embeddings.astype(np.float64)
        names = _near(self.centres, points, self._reach)  # (W,)
        old = size = len(names)
        names = np.concatenate([names, len(self) + np.arange(len(embeddings))])  # (W + B,), if all are new
        sums = np.concatenate([self._sums[names[:old]], np.zeros_like(embeddings)])  # (W + B, E)
        sizes = np.concatenate([self._sizes[names[:old]], np.zeros(len(embeddings), np.int64)])
        centres = sums / np.maximum(sizes, 1)[:, None]
        chosen = np.zeros(len(embeddings), np.int64)  # (B,)
        for i, point in enumerate(points):
            differences = centres[:size] - point
            squares = (differences * differences).sum(1)  # (W,)
            nearest = int(squares.argmin()) if size else 0
            if not size or sqrt(squares[nearest]) > self._reach:
                nearest, size = size, size + 1
            sums[nearest] += embeddings[i]
            sizes[nearest] += 1
            centres[nearest] = sums[nearest] / sizes[nearest]
            chosen[i] = nearest
        self._sums[names[:old]], self._sizes[names[:old]] = sums[:old], sizes[:old]
        self._sums = np.concatenate([self._sums, sums[old:size]])
        self._sizes = np.concatenate([self._sizes, sizes[old:size]])
        return names[chosen]

    def state_dict(self) -> dict[str, Any]:
        weights = self._weights.numpy().astype(np.int8)
        state = {"weights": weights, "sums": self._sums.copy(), "sizes": self._sizes.copy()}
        if not self.config.threshold:
            state |= {"threshold": self.threshold, "first": self._first.copy()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["weights"].shape != self._weights.shape:
            raise ValueError(f"the state's embedding size is {state['weights'].shape[1]}, not {self._weights.shape[1]}")
        self._weights = torch.from_numpy(state["weights"]).float()
        self._sums, self._sizes = state["sums"].copy(), state["sizes"].copy()
        if self._sums.dtype != np.int64:  # an earlier version's, which were scaled
            self._sums = np.rint(self._sums / self.scale).astype(np.int64)
        if not self.config.threshold:
            self.threshold, self._first = state["threshold"], state["first"].copy()


def _near(centres: NDArray[np.float64], embeddings: NDArray[np.float64], reach: float) -> NDArray[np.int64]:
    """Which of (C, E) centres are within reach of one of (B, E) embeddings; rounding may add some."""
    if not len(centres):
        return np.zeros(0, np.int64)
    # |c − v|² ≤ τ² as a product, which is fast but rounds: c·v − |v|²/2 ≥ (|c|² − τ²)/2.
    half_norms, centre_half_norms = (embeddings**2).sum(1) / 2, (centres**2).sum(1) / 2
    # By torch, as NumPy's own threads would fight with torch's for the cores, and take 20 times as long.
    products = (torch.from_numpy(embeddings) @ torch.from_numpy(centres).T).numpy()  # (B, C)
    closeness = (products - half_norms[:, None]).max(0)  # (C,)
    margin = 1e-12 * (half_norms.max() + centre_half_norms.max())  # hundreds of times the rounding
    return np.flatnonzero(closeness >= centre_half_norms - reach**2 / 2 - margin)
