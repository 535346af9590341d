"""Clustering against a slow, literal transcription of Algorithm 2."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from coex.config.bonuses import ClusterConfig
from coex.method.rooms import RoomClusters


class Literal:
    """Algorithm 2 line by line: every member is kept, and every centre is the mean of its members."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.clusters: list[list[NDArray[np.int64]]] = []

    def assign(self, embeddings: NDArray[np.int64]) -> list[int]:
        return [self.assign_one(v) for v in embeddings]

    def assign_one(self, v: NDArray[np.int64]) -> int:
        distances = [np.sqrt(((sum(c) / len(c) - v) ** 2).sum()) for c in self.clusters]
        if distances and min(distances) <= self.threshold:
            nearest = distances.index(min(distances))
            self.clusters[nearest].append(v)
            return nearest
        self.clusters.append([v])
        return len(self.clusters) - 1


def frames(count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 84, 84, 3), dtype=torch.uint8, generator=generator)


def within(threshold: float) -> RoomClusters:
    """Clusters whose threshold is in the embeddings' own unit."""
    unit = RoomClusters(ClusterConfig(projection_scale=1.0)).scale
    clusters = RoomClusters(ClusterConfig(threshold=threshold, projection_scale=1 / unit))
    assert clusters.scale == 1.0
    return clusters


def line(*xs: int) -> NDArray[np.int64]:
    """Points on a line in the embedding space."""
    return plane(*((x, 0) for x in xs))


def plane(*points: tuple[int, int]) -> NDArray[np.int64]:
    return np.pad(np.array(points, np.int64), [(0, 0), (0, 62)])


class TestAssign:
    def test_known_answers(self) -> None:
        clusters = within(10)
        assert clusters.assign(line(0, 30, 10, 45)).tolist() == [0, 1, 0, 2]
        assert clusters.centres[:, 0].tolist() == [5.0, 30.0, 45.0]
        # 15 is within 10 of the first centre only because that moved from 0 to 5; it moves on to 25/3.
        assert clusters.assign(line(15)).tolist() == [0]
        assert clusters.centres[0, 0] == 25 / 3

    def test_the_threshold_itself_is_within(self) -> None:
        points = plane((0, 0), (3, 4))  # 5 apart
        for threshold, expected in [(5.0, [0, 0]), (np.nextafter(5.0, 0), [0, 1])]:
            assert within(float(threshold)).assign(points).tolist() == expected

    def test_ties_go_to_the_oldest(self) -> None:
        assert within(1).assign(line(2, 0, 1)).tolist() == [0, 1, 0]

    def test_a_centre_can_leave_the_reach_of_an_embedding_within_one_call(self) -> None:
        walk = line(0, 9, 14, 17, -3)
        assert within(10).assign(walk).tolist() == Literal(10).assign(walk)

    @pytest.mark.parametrize("threshold", [0.3, 1.0, 3.0, 9.0, 30.0])
    @pytest.mark.parametrize("call_size", [1, 7, 80, 1000])
    def test_agrees_with_the_literal_algorithm_on_random_data(self, threshold: float, call_size: int) -> None:
        rng = np.random.default_rng(0)
        data = np.concatenate(
            [
                make_blobs(120, 64, centers=30, cluster_std=0.4, random_state=0)[0],
                np.cumsum(rng.normal(size=(100, 64)) * 0.1, 0),  # centres that follow a walk
                rng.normal(size=(40, 64)),  # distances all alike
                np.repeat(rng.normal(size=(5, 64)), 8, 0),  # exact repeats
            ]
        )
        self.check(np.rint(1_000 * data).astype(np.int64), 1_000 * threshold, call_size)

    @pytest.mark.parametrize("call_size", [1, 13, 300])
    def test_agrees_with_the_literal_algorithm_on_a_lattice_full_of_ties(self, call_size: int) -> None:
        rng = np.random.default_rng(1)
        data = np.zeros((300, 64), np.int64)
        data[:, :2] = rng.integers(0, 6, (300, 2))
        self.check(data, 1.0, call_size)

    def test_far_from_the_origin_too(self) -> None:
        # Where |c|² + |v|² − 2c·v would lose its digits.
        rng = np.random.default_rng(2)
        self.check(2**24 + rng.integers(-2, 3, (200, 64)), 12.0, 50)

    def test_sums_do_not_depend_on_the_order(self) -> None:
        data = np.random.default_rng(3).integers(-(2**24), 2**24, (500, 64))
        forth, back = within(1e9), within(1e9)
        forth.assign(data), back.assign(data[::-1])
        np.testing.assert_array_equal(forth.centres, back.centres)

    def check(self, data: NDArray[np.int64], threshold: float, call_size: int) -> None:
        clusters = within(threshold)
        calls = [clusters.assign(data[i : i + call_size]) for i in range(0, len(data), call_size)]
        literal = Literal(threshold)
        assert np.concatenate(calls).tolist() == literal.assign(data)
        assert len(clusters) == len(literal.clusters)
        means = np.stack([sum(c) / len(c) for c in literal.clusters])
        np.testing.assert_array_equal(clusters.centres, means)

    def test_nothing_to_assign(self) -> None:
        clusters = RoomClusters()
        assert clusters.assign(np.zeros((0, 64), np.int64)).tolist() == []
        assert len(clusters) == 0


class TestEmbed:
    def test_does_not_depend_on_the_batch(self) -> None:
        clusters, batch = RoomClusters(), frames(80)
        together = clusters.embed(batch)
        alone = np.concatenate([clusters.embed(frame[None]) for frame in batch])
        np.testing.assert_array_equal(together, alone)

    def test_is_a_linear_layer_with_glorot_scale(self) -> None:
        batch = frames(200)
        clusters = RoomClusters(ClusterConfig(projection_scale=1.0))
        embeddings = clusters.embed(batch)
        assert (embeddings.shape, embeddings.dtype) == ((200, 64), np.int64)
        pixels = batch.flatten(1).double().numpy() / 255
        actual = np.linalg.norm(embeddings[1:] - embeddings[0], axis=1) * clusters.scale
        bound = np.sqrt(6 / (84 * 84 * 3 + 64))
        glorot = np.random.default_rng(1).uniform(-bound, bound, (84 * 84 * 3, 64))
        expected = np.linalg.norm((pixels[1:] - pixels[0]) @ glorot, axis=1)
        np.testing.assert_allclose(actual.mean(), expected.mean(), rtol=0.1)

    def test_only_the_seed_matters_and_the_threshold_is_in_units_of_the_scale(self) -> None:
        batch = frames(2)
        reference = RoomClusters(ClusterConfig(projection_scale=0.5))
        doubled = RoomClusters(ClusterConfig(projection_scale=1.0, threshold=3.0))
        other = RoomClusters(ClusterConfig(projection_scale=0.5, seed=1))
        np.testing.assert_array_equal(doubled.embed(batch), reference.embed(batch))
        assert doubled.scale == 2 * reference.scale
        assert not np.array_equal(other.embed(batch), reference.embed(batch))
        near, far = (RoomClusters(ClusterConfig(threshold=t * other.scale, projection_scale=0.5)) for t in (11, 9))
        assert near.assign(line(0, 10)).tolist() == [0, 0]
        assert far.assign(line(0, 10)).tolist() == [0, 1]


def test_state_round_trip_continues_identically() -> None:
    clusters = RoomClusters(ClusterConfig(threshold=1.0, seed=3))
    data = np.rint(np.random.default_rng(0).normal(size=(200, 64)) * 0.09 / clusters.scale).astype(np.int64)
    clusters.assign(data[:100])
    state = clusters.state_dict()
    resumed = RoomClusters(ClusterConfig(threshold=1.0, seed=4))
    resumed.load_state_dict(state)
    np.testing.assert_array_equal(resumed.assign(data[100:]), clusters.assign(data[100:]))
    np.testing.assert_array_equal(resumed.centres, clusters.centres)
    np.testing.assert_array_equal(resumed.embed(frames(2)), clusters.embed(frames(2)))
    assert len(state["sizes"]) <= len(clusters)  # and what was saved has not moved since
    assert state["sizes"].sum() == 100


def test_sums_that_an_earlier_version_scaled_are_read() -> None:
    clusters = RoomClusters()
    clusters.assign(clusters.embed(frames(50)))
    state = clusters.state_dict()
    earlier = RoomClusters()
    earlier.load_state_dict(state | {"sums": state["sums"] * clusters.scale})
    assert all(np.array_equal(value, state[name]) for name, value in earlier.state_dict().items())


def test_a_state_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="embedding size is 32, not 64"):
        RoomClusters().load_state_dict(RoomClusters(ClusterConfig(embedding_size=32)).state_dict())


@pytest.mark.parametrize("name", ["threshold", "embedding_size", "projection_scale"])
def test_bad_settings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} .* -1"):
        ClusterConfig(**{name: -1})  # type: ignore[arg-type]


def test_find_names_the_cluster_that_assign_would_and_changes_nothing() -> None:
    clusters = within(10)
    assert clusters.find(line(0, 0)).tolist() == [-1, -1]
    clusters.assign(line(0, 50))
    before = clusters.state_dict()
    assert clusters.find(plane((9, 0), (45, 5), (25, 0), (0, 10))).tolist() == [0, 1, -1, 0]
    assert all(np.array_equal(value, before[name]) for name, value in clusters.state_dict().items())
    assert clusters.assign(plane((45, 5))).tolist() == [1]
