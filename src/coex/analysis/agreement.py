"""`coex rooms`: clusters of observations against the rooms in RAM, on trajectories through many rooms."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from coex.analysis.explore import explore
from coex.config.bonuses import ClusterConfig
from coex.envs import RAM_SHAPE, ram
from coex.envs.views import Frame
from coex.errors import UsageError
from coex.method.rooms import RoomClusters
from coex.training.evidence import ARI_WINDOW, LONG_ARI_WINDOW

BATCH = 500  # observations embedded together
SAMPLES = 3  # pictures kept of each cluster, as in the paper's figure
SCALES = (0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0, 1.2)  # of the projection, in its calibration

Ints = NDArray[np.int64]


def require_rooms(game: str) -> None:
    if game not in ram.ROOM_GAMES:
        raise UsageError(f"{game} has no rooms in RAM; these games have them: {', '.join(ram.ROOM_GAMES)}")


class Reservoirs:
    """`keep` random pictures of each cluster, every member as likely as any other (reservoir sampling)."""

    def __init__(self, keep: int, seed: int) -> None:
        self._keep = keep
        self._generator = np.random.default_rng(seed)
        self.sizes = Counter[int]()  # of the clusters
        self.frames: dict[int, list[Frame]] = defaultdict(list)

    def add(self, clusters: Ints, frames: Frame) -> None:
        for cluster, frame in zip(clusters.tolist(), frames, strict=True):
            self.sizes[cluster] += 1
            kept = self.frames[cluster]
            place = len(kept) if len(kept) < self._keep else int(self._generator.integers(self.sizes[cluster]))
            if place < self._keep:
                kept[place : place + 1] = [frame.copy()]


@dataclasses.dataclass(frozen=True)
class RoomTrajectory:
    """What was seen in M steps, in order."""

    embeddings: Ints  # (M, E)
    clusters: Ints  # (M,)
    rooms: Ints  # (M,) the truth
    samples: dict[int, list[Frame]]
    threshold: float  # τ, if it was chosen: the one that was


def gather(
    game: str, config: ClusterConfig, steps: int, seed: int, on_batch: Callable[[int, int], None] = lambda *_: None
) -> RoomTrajectory:
    """Explores for so many steps, and clusters what it sees; `on_batch` hears of the steps and rooms so far."""
    require_rooms(game)
    observed, samples = RoomClusters(config), Reservoirs(SAMPLES, seed)
    embeddings: list[Ints] = []
    clusters: list[Ints] = []
    rooms: list[Ints] = []
    for frames, memory in _batches(game, steps, seed):
        embeddings.append(observed.embed(torch.from_numpy(frames)))  # (B, E)
        clusters.append(observed.assign(embeddings[-1]))
        rooms.append(ram.room(game, memory))
        samples.add(clusters[-1], frames)
        on_batch(sum(map(len, rooms)), len(np.unique(np.concatenate(rooms))))
    return RoomTrajectory(
        np.concatenate(embeddings), np.concatenate(clusters), np.concatenate(rooms), samples.frames, observed.threshold
    )


def _batches(game: str, steps: int, seed: int) -> Iterator[tuple[Frame, NDArray[np.uint8]]]:
    """(B, 84, 84, 3) frames and (B, 128) RAM, `steps` in all."""
    observations = explore(game, seed)
    for done in range(0, steps, BATCH):
        size = min(BATCH, steps - done)
        frames, memory = (np.zeros((size, *shape), np.uint8) for shape in ((84, 84, 3), RAM_SHAPE))
        for i, (frame, bytes_) in zip(range(size), observations, strict=False):
            frames[i], memory[i] = frame, bytes_
        yield frames, memory


def agreement(clusters: Ints, rooms: Ints) -> dict[str, Any]:
    """How well (M,) clusters name (M,) rooms. The windows' ARI is the mean over consecutive ones."""

    def windowed(size: int) -> float:
        starts = range(0, max(len(rooms) - size, 0) + 1, size)
        return float(np.mean([adjusted_rand_score(rooms[i : i + size], clusters[i : i + size]) for i in starts]))

    table = contingency_matrix(rooms, clusters)  # (rooms, clusters)
    return {
        "ari": round(float(adjusted_rand_score(rooms, clusters)), 4),
        f"ari_{ARI_WINDOW}": round(windowed(ARI_WINDOW), 4),
        f"ari_{LONG_ARI_WINDOW}": round(windowed(LONG_ARI_WINDOW), 4),
        "purity": round(float(table.max(0).sum() / len(rooms)), 4),  # of the observations, in their cluster's main room
        "clusters": table.shape[1],
        "rooms": table.shape[0],
    }


def by_cluster(clusters: Ints, rooms: Ints) -> list[dict[str, Any]]:
    """Each cluster's size, main room, and how much of it that room is, largest first."""
    rows = []
    for cluster in np.unique(clusters).tolist():
        names, sizes = np.unique(rooms[clusters == cluster], return_counts=True)
        main, size = int(sizes.argmax()), int(sizes.sum())
        share = round(float(sizes[main] / size), 4)
        rows.append({"cluster": cluster, "observations": size, "room": int(names[main]), "share": share})
    return sorted(rows, key=lambda row: -row["observations"])


def by_room(clusters: Ints, rooms: Ints) -> list[dict[str, Any]]:
    """Each room's observations, its main cluster, and how much of the room that cluster holds, most seen first."""
    return [
        {"room": row["cluster"], "observations": row["observations"], "cluster": row["room"], "share": row["share"]}
        for row in by_cluster(rooms, clusters)
    ]


def calibrate(
    trajectory: RoomTrajectory, config: ClusterConfig, scales: Sequence[float] = SCALES
) -> list[dict[str, Any]]:
    """Returns the agreement for each scale of the projection; embeddings are in units of it."""
    rows = []
    for scale in scales:
        observed = RoomClusters(dataclasses.replace(config, projection_scale=scale))
        clusters = observed.assign(trajectory.embeddings)
        rows.append({"projection_scale": scale} | agreement(clusters, trajectory.rooms))
    return rows
