"""Ways from a real start: what was done, shared with the ways that it branched off from."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Way:
    """Actions after those of another way, or after a real start."""

    __slots__ = ("actions", "length", "number", "parent")

    def __init__(self, number: int, parent: "Way | None" = None, actions: bytes = b"") -> None:
        self.number = number  # of the real start
        self.parent = parent
        self.actions = actions
        self.length: int = len(actions) + (parent.length if parent else 0)

    def path(self) -> bytes:
        """Returns all actions since the real start."""
        parts, way = [], self
        while way.parent is not None:
            parts.append(way.actions)
            way = way.parent
        return b"".join([way.actions, *reversed(parts)])

    def then(self, actions: bytes) -> "Way":
        """Returns the way that goes on with these actions."""
        return Way(self.number, self, actions)


def pack_ways(ways: Sequence[Way]) -> dict[str, Any]:
    """Returns ways, and those that they branched off from, as arrays; `ways[i]` is number `index[i]` of them."""
    numbers: dict[int, int] = {}
    order: list[Way] = []
    for way in ways:
        chain: list[Way] = []
        node: Way | None = way
        while node is not None and id(node) not in numbers:
            chain.append(node)
            node = node.parent
        for node in reversed(chain):
            numbers[id(node)] = len(order)
            order.append(node)
    return {
        "index": np.array([numbers[id(way)] for way in ways], np.int64),
        "parents": np.array([numbers[id(way.parent)] if way.parent else -1 for way in order], np.int64),
        "starts": np.array([way.number for way in order], np.int64),
        "actions": pack_bytes([way.actions for way in order]),
    }


def unpack_ways(packed: dict[str, Any]) -> list[Way]:
    """Returns what `pack_ways` was given."""
    order: list[Way] = []
    actions = unpack_bytes(packed["actions"])
    for number, parent, part in zip(packed["starts"].tolist(), packed["parents"].tolist(), actions, strict=True):
        order.append(Way(number, order[parent] if parent >= 0 else None, part))
    return [order[index] for index in packed["index"].tolist()]


def pack_bytes(parts: Iterable[bytes]) -> dict[str, Any]:
    """Returns many strings of bytes as two arrays: checkpoints hold few large arrays well."""
    parts = list(parts)
    joined = np.frombuffer(bytearray().join(parts), np.uint8)  # which may be written to, as loaded ones may
    return {"joined": joined, "lengths": np.array([len(part) for part in parts], np.int64)}


def unpack_bytes(packed: dict[str, Any]) -> list[bytes]:
    """Returns what `pack_bytes` was given."""
    joined, ends = packed["joined"].tobytes(), np.cumsum(packed["lengths"]).tolist()
    return [joined[end - length : end] for end, length in zip(ends, packed["lengths"].tolist(), strict=True)]
