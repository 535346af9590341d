"""How far apart are two pictures of one room? τ, chosen from the first observations where nobody has set it.

Two kinds of worlds are told apart by the distances between embeddings. Where these fall into two groups, near and far,
the near ones are those within a room. Otherwise everything so far was one room, as on a grid that is seen whole: a
step of the player changes the picture as much as anything does. τ leaves room for twice what is usual within a room.
"""

import numpy as np
from numpy.typing import NDArray

FIRST_OBSERVATIONS = 2_000  # that τ is chosen from
_FALLBACK = 0.7  # the paper's, for a picture that never changes
_SAMPLE = 500  # observations whose distances are looked at
_APART = 1.5  # far distances are at least so many times the near ones
_FEWEST_NEAR = 0.01  # share of the distances
_MARGIN = 2.0  # τ in units of the usual distance between two pictures of a room


def choose_threshold(embeddings: NDArray[np.float64]) -> float:
    """Returns τ for (M, E) embeddings of what was seen first."""
    distances = _distances(embeddings)
    if not len(distances):
        return _FALLBACK
    near, far = _split(distances)
    usual = _MARGIN * float(np.median(near))
    return min(usual, float(np.sqrt(near.max() * far.min()))) if len(far) else usual


def _distances(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """(D,) the distances of some of the points from each other, in order; those of equal points are left out."""
    some = points[np.random.default_rng(0).permutation(len(points))[:_SAMPLE]]
    squares = (some**2).sum(1)
    all_pairs = squares[:, None] + squares - 2 * some @ some.T
    distances = np.sqrt(np.maximum(all_pairs[np.triu_indices(len(some), 1)], 0))
    distinct = distances[distances > 1e-6 * np.sqrt(squares.max())]  # the product rounds
    return np.sort(distinct)


def _split(distances: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the near and the far ones, if there are two groups; the far ones are none otherwise."""
    logs = np.log(distances)
    count = np.arange(1, len(logs))
    sums = np.cumsum(logs)[:-1]
    # Otsu's criterion: the split with the most variance between the groups.
    between = (sums / count - (logs.sum() - sums) / (len(logs) - count)) ** 2 * count * (len(logs) - count)
    place = int(between.argmax()) + 1 if len(between) else len(distances)
    near, far = distances[:place], distances[place:]
    if len(near) < _FEWEST_NEAR * len(distances) or not len(far):
        return distances, far[:0]
    is_apart = np.quantile(far, 0.05) >= _APART * np.quantile(near, 0.95)
    return (near, far) if is_apart else (distances, far[:0])
