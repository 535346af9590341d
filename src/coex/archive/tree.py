"""The tree of ways: from which room an archive reached each of its rooms."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def describe_ways(
    cells: Ints, scores: NDArray[np.float64], index: Ints, parents: Ints, lengths: Ints
) -> list[dict[str, Any]]:
    """Returns the rooms in the order in which they were reached, each with the room that it was reached from.

    `cells` (S, 4) and `scores` (S,) are those of the saved games, `index` (S,) the numbers of their ways; `parents`
    (W,) are the ways that ways branched off from, −1 for none, and `lengths` (W,) the steps from there. Where the saved
    game that a way branched off from has been replaced, the nearest one before it is taken, if no surer way is known.
    """
    above, totals = parents.tolist(), lengths.tolist()
    for way, parent in enumerate(above):  # parents come first
        totals[way] += totals[parent] if parent >= 0 else 0
    rooms = cells[:, 0].tolist()
    room_of = dict(zip(index.tolist(), rooms, strict=True))
    found: dict[int, dict[str, Any]] = {}
    surest: dict[int, tuple[int, int]] = {}
    for room, score in zip(rooms, scores.tolist(), strict=True):
        node = found.setdefault(room, {"name": room, "parent": None, "steps": None, "score": score, "cells": 0})
        node["score"], node["cells"] = max(node["score"], score), node["cells"] + 1
    ranks = {room: rank for rank, room in enumerate(found)}
    for room, way in zip(rooms, index.tolist(), strict=True):
        node, steps = found[room], totals[way]
        node["steps"] = steps if node["steps"] is None else min(node["steps"], steps)
        ancestor, gap = above[way], 0
        while ancestor >= 0 and ancestor not in room_of:
            ancestor, gap = above[ancestor], gap + 1
        origin = room_of.get(ancestor)
        if origin is not None and ranks[origin] < ranks[room] and (gap, steps) < surest.get(room, (gap + 1, 0)):
            node["parent"], surest[room] = origin, (gap, steps)
    return list(found.values())
