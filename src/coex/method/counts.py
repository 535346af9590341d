"""How often was each state visited? Exact counts of integer keys, such as ψ(s) = (x, y, c, R)."""

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from coex.rollouts.rollout import Transitions


class VisitCounts:
    """A dictionary from key to count. A call costs the same whether ten states are known or millions."""

    def __init__(self, key_size: int) -> None:
        if key_size < 1:
            raise ValueError(f"key_size must be at least 1, not {key_size}")
        self.key_size = key_size
        self._counts: dict[bytes, int] = {}  # a key is the bytes of its int64 numbers

    def __len__(self) -> int:
        """The number of distinct states visited."""
        return len(self._counts)

    def visit(self, keys: ArrayLike) -> NDArray[np.int64]:
        """Counts (M, d) keys in order → (M,) each one's count so far, this visit included."""
        visits = []
        for key in self._pack(keys):
            self._counts[key] = count = self._counts.get(key, 0) + 1
            visits.append(count)
        return np.array(visits, np.int64)

    def lookup(self, keys: ArrayLike) -> NDArray[np.int64]:
        """(M, d) keys → (M,) counts so far, 0 where never visited; counts nothing."""
        return np.array([self._counts.get(key, 0) for key in self._pack(keys)], np.int64)

    def state_dict(self) -> dict[str, Any]:
        """Keys (S, d) and counts (S,), in the smallest integers that hold them."""
        keys = np.frombuffer(b"".join(self._counts), np.int64).reshape(-1, self.key_size)
        counts = np.fromiter(self._counts.values(), np.int64, len(self._counts))
        return {"keys": _shrink(keys), "counts": _shrink(counts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._counts = dict(zip(self._pack(state["keys"]), state["counts"].tolist(), strict=True))

    def _pack(self, keys: ArrayLike) -> list[bytes]:
        array = np.ascontiguousarray(keys)
        if array.ndim != 2 or array.shape[1] != self.key_size or array.dtype.kind not in "iu":
            raise ValueError(f"keys must be (M, {self.key_size}) integers, not {array.shape} {array.dtype}")
        packed: list[bytes] = array.astype(np.int64).view(f"V{8 * self.key_size}").ravel().tolist()
        return packed


def count_visits(counts: VisitCounts, keys: NDArray[np.int64], rollout: Transitions) -> NDArray[np.int64]:
    """Counts the (T·N, d) keys of a rollout's steps in order → (T, N) N so far; a step that is not valid has 0."""
    valid = slice(None) if rollout.valid is None else rollout.valid.flatten().numpy()
    visits = np.zeros(len(keys), np.int64)
    visits[valid] = counts.visit(keys[valid])
    return visits.reshape(tuple(rollout.actions.shape))


def rarity(visits: NDArray[np.int64]) -> Tensor:
    """Returns 1/√N of counts, and 0 where there is none."""
    counted = torch.from_numpy(visits).double()
    return torch.where(counted > 0, counted.clamp(min=1).rsqrt(), 0.0).float()


def _shrink(numbers: NDArray[np.int64]) -> NDArray[Any]:
    low, high = (numbers.min(), numbers.max()) if numbers.size else (0, 0)
    fits = (t for t in (np.int8, np.int16, np.int32) if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
    return numbers.astype(next(fits, np.int64))
