"""Visit counts: in order, exact, and the same after saving and loading."""

from collections import Counter

import numpy as np
import pytest
import torch

from coex.method.counts import VisitCounts


def test_visits_count_up_in_order() -> None:
    counts = VisitCounts(key_size=4)
    k, other = (1, 2, 3, 400), (1, 2, 3, -400)
    assert counts.visit([k, k]).tolist() == [1, 2]
    assert counts.visit([other, k, other]).tolist() == [1, 3, 2]
    assert len(counts) == 2


def test_lookup_does_not_count() -> None:
    counts = VisitCounts(key_size=2)
    counts.visit([(0, 0), (0, 0), (1, 0)])
    for _ in range(2):
        assert counts.lookup([(0, 0), (1, 0), (0, 1)]).tolist() == [2, 1, 0]
    assert len(counts) == 2


def test_agrees_with_a_counter() -> None:
    rng = np.random.default_rng(0)
    counts, reference = VisitCounts(key_size=3), Counter[tuple[int, ...]]()
    for _ in range(20):
        keys = rng.integers(-3, 3, (80, 3))
        expected = []
        for key in map(tuple, keys.tolist()):
            reference[key] += 1
            expected.append(reference[key])
        assert counts.visit(keys).tolist() == expected
    assert len(counts) == len(reference)


def test_takes_tensors_and_views_of_any_integer_type() -> None:
    counts = VisitCounts(key_size=2)
    keys = torch.tensor([[1, 2], [3, 4]])
    assert counts.visit(keys).tolist() == [1, 1]
    assert counts.visit(keys.int()).tolist() == [2, 2]
    assert counts.visit(np.asfortranarray(keys.numpy())).tolist() == [3, 3]
    assert counts.visit(keys.numpy()[::-1]).tolist() == [4, 4]


def test_no_keys() -> None:
    counts = VisitCounts(key_size=2)
    assert counts.visit(np.zeros((0, 2), np.int64)).tolist() == []
    assert counts.lookup(np.zeros((0, 2), np.int64)).tolist() == []


@pytest.mark.parametrize("high", [100, 30_000, 2**31 - 1, 2**62])
def test_state_round_trip(high: int) -> None:
    keys = np.random.default_rng(0).integers(-high, high, (500, 4))
    counts = VisitCounts(key_size=4)
    counts.visit(keys)
    counts.visit(keys[:100])
    resumed = VisitCounts(key_size=4)
    resumed.load_state_dict(counts.state_dict())
    assert len(resumed) == len(counts)
    assert resumed.visit(keys).tolist() == counts.visit(keys).tolist()


def test_empty_state_round_trip() -> None:
    resumed = VisitCounts(key_size=4)
    resumed.visit([(1, 2, 3, 4)])
    resumed.load_state_dict(VisitCounts(key_size=4).state_dict())
    assert len(resumed) == 0


def test_state_is_compact() -> None:
    counts = VisitCounts(key_size=4)
    cells = np.stack(np.meshgrid(np.arange(9), np.arange(9), np.arange(24), np.arange(0, 800, 100)), -1)
    counts.visit(cells.reshape(-1, 4))
    state = counts.state_dict()
    assert sum(array.nbytes for array in state.values()) == len(counts) * (4 * 2 + 1)


@pytest.mark.parametrize("keys", [[1, 2], [[1, 2, 3]], [[0.5, 1.0]]])
def test_other_keys_are_refused(keys: list[object]) -> None:
    with pytest.raises(ValueError, match=r"keys must be \(M, 2\) integers"):
        VisitCounts(key_size=2).visit(keys)  # type: ignore[arg-type]


def test_a_key_has_at_least_one_number() -> None:
    with pytest.raises(ValueError, match=r"key_size .* 0"):
        VisitCounts(key_size=0)
