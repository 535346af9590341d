"""Saved games by cell: which are chosen, and what a checkpoint keeps of them."""

import tracemalloc

import numpy as np
import pytest

from coex.archive.archive import Archive, Cell, Entry, progress_of
from coex.archive.ways import Way, pack_bytes, pack_ways, unpack_bytes, unpack_ways


def fill(visits: dict[Cell, int]) -> Archive:
    archive = Archive()
    for k, (cell, count) in enumerate(visits.items()):
        way = Way(3).then(bytes([k])).then(b"\x01\x02")
        archive.entries[cell] = Entry(way, float(k), b"game %d" % k, is_safe=k % 2 == 0, visits=count)
    return archive


def test_progress_is_the_scores_size_in_bits() -> None:
    assert [progress_of(score) for score in (-5, 0, 0.7, 1, 2, 3, 4, 100, 400, 500, 2500)] == [
        0, 0, 0, 1, 2, 2, 3, 7, 9, 9, 12,
    ]  # fmt: skip


def test_levels_are_drawn_by_their_rank_and_scenes_and_cells_by_their_rarity() -> None:
    visits = {
        Cell(1, 0, 0, 0): 30, Cell(1, 0, 0, 1): 10,  # a scene of 40 visits, cells 1 : 3
        Cell(2, 0, 5, 5): 10,  # a scene of 10 visits: four times as likely
        Cell(2, 7, 5, 5): 1_000,  # the second level: twice as likely as the first
    }  # fmt: skip
    archive = fill(visits)
    draws = archive.choose(40_000, np.random.default_rng(0))
    shares = [draws.count(cell) / len(draws) for cell in visits]
    expected = [0.2 * 0.25 / 3, 0.2 * 0.75 / 3, 0.8 / 3, 2 / 3]
    np.testing.assert_allclose(shares, expected, atol=0.01)


def test_a_checkpoint_keeps_it_whole() -> None:
    archive = fill({Cell(1, 0, 0, 0): 3, Cell(4, 7, 2, 1): 1, Cell(1, 0, 3, 3): 8})
    copy = Archive()
    copy.load_state_dict(archive.state_dict())
    assert list(copy.entries) == list(archive.entries)
    for cell, entry in archive.entries.items():
        other = copy.entries[cell]
        assert (other.way.path(), other.way.number, other.way.length) == (entry.way.path(), 3, 3)
        assert (other.score, other.saved, other.is_safe, other.visits) == (
            entry.score, entry.saved, entry.is_safe, entry.visits,
        )  # fmt: skip
    copy.load_state_dict(Archive().state_dict())
    assert len(copy) == 0


def test_ways_share_what_they_have_in_common() -> None:
    trunk = Way(5).then(bytes(range(100)))
    branches = [trunk.then(bytes([k])) for k in range(20)]
    packed = pack_ways(branches)
    assert len(packed["parents"]) == 22
    assert len(packed["actions"]["joined"]) == 120
    again = unpack_ways(packed)
    assert [way.path() for way in again] == [way.path() for way in branches]
    assert again[0].parent is again[7].parent


@pytest.mark.parametrize("parts", [[], [b""], [b"a", b"", b"bcd"]])
def test_bytes_come_back(parts: list[bytes]) -> None:
    assert unpack_bytes(pack_bytes(parts)) == parts


def test_a_hundred_thousand_cells_and_their_checkpoint_fit_into_two_gigabytes() -> None:
    """As large as games of Montezuma's Revenge are, each with a way that goes on from another's."""
    from coex.envs.pool import Plan, Start
    from tests.envs.test_pool import draw, make

    with make() as pool:
        pool.play([Plan(0, draw(20, 1), Start(1))])
        size = max(len(saved) for saved in pool.fetch([(0, step) for step in range(1, 20)]))
    generator, ways = np.random.default_rng(0), [Way(1)]
    tracemalloc.start()
    try:
        archive = Archive()
        for k in range(100_000):
            ways.append(ways[int(generator.integers(len(ways)))].then(generator.bytes(100)))
            cell = Cell(k // 81, 5, k % 9, k // 9 % 9)
            archive.entries[cell] = Entry(ways[-1], 100.0, generator.bytes(size), is_safe=True, visits=1)
        state = archive.state_dict()
        assert len(archive) == len(state["cells"]) == 100_000
        assert 100_000 * size < tracemalloc.get_traced_memory()[1] < 2e9  # the most there was at any time
    finally:
        tracemalloc.stop()
