"""The tree of ways names the room that each room was reached from."""

import numpy as np

from coex.archive.tree import describe_ways
from coex.archive.ways import Way, pack_ways


def describe(*saved: tuple[int, float, Way]) -> list[dict[str, object]]:
    packed = pack_ways([way for _, _, way in saved])
    cells = np.array([(room, 0, i, 0) for i, (room, _, _) in enumerate(saved)], np.int64).reshape(-1, 4)
    scores = np.array([score for _, score, _ in saved], float)
    return describe_ways(cells, scores, packed["index"], packed["parents"], packed["actions"]["lengths"])


def test_rooms_hang_on_the_rooms_they_were_reached_from() -> None:
    start = Way(7)
    first = start.then(b"12")
    second = first.then(b"345")
    third = second.then(b"6")
    back = third.then(b"7")  # in the second room again: no parent of its own
    tree = describe((1, 0.0, first), (2, 100.0, second), (9, 400.0, third), (2, 500.0, back))
    assert tree == [
        {"name": 1, "parent": None, "steps": 2, "score": 0.0, "cells": 1},
        {"name": 2, "parent": 1, "steps": 5, "score": 500.0, "cells": 2},
        {"name": 9, "parent": 2, "steps": 6, "score": 400.0, "cells": 1},
    ]


def test_a_way_whose_last_saved_game_is_there_is_surer_than_a_shorter_one() -> None:
    first = Way(7).then(b"1")
    second = first.then(b"2")
    replaced = first.then(b"3")  # was in the second room; another game has its cell now
    tree = describe((1, 0.0, first), (2, 0.0, second), (3, 0.0, replaced.then(b"4")), (3, 0.0, second.then(b"55555")))
    assert [node["parent"] for node in tree] == [None, 1, 2]
    tree = describe((1, 0.0, first), (2, 0.0, second), (3, 0.0, replaced.then(b"4")))
    assert [node["parent"] for node in tree] == [None, 1, 1]


def test_an_empty_archive_has_no_tree() -> None:
    assert describe() == []
    assert describe((4, 0.0, Way(0)))[0]["parent"] is None
