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
        self.clusters: list[list[NDArray[np.float64]]] = []

    def assign(self, embeddings: NDArray[np.float64]) -> list[int]:
        return [self.assign_one(v) for v in embeddings]

    def assign_one(self, v: NDArray[np.float64]) -> int:
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


def line(*xs: float) -> NDArray[np.float64]:
    """Points on a line in the embedding space."""
    return np.array(xs)[:, None] * np.eye(64)[0]


class TestAssign:
    def test_known_answers(self) -> None:
        clusters = RoomClusters(ClusterConfig(threshold=1.0))
        assert clusters.assign(line(0, 3, 1, 4.5)).tolist() == [0, 1, 0, 2]
        assert clusters.centres[:, 0].tolist() == [0.5, 3.0, 4.5]
        # 1.5 is within 1 of the first centre only because that moved from 0 to 0.5; it moves on to 5/6.
        assert clusters.assign(line(1.5)).tolist() == [0]
        assert clusters.centres[0, 0] == 2.5 / 3

    def test_the_threshold_itself_is_within(self) -> None:
        point = 3 * np.eye(64)[[0]] + 4 * np.eye(64)[[1]]  # at distance 5 from the origin
        for threshold, expected in [(5.0, [0, 0]), (np.nextafter(5.0, 0), [0, 1])]:
            clusters = RoomClusters(ClusterConfig(threshold=float(threshold)))
            assert clusters.assign(np.concatenate([np.zeros((1, 64)), point])).tolist() == expected

    def test_ties_go_to_the_oldest(self) -> None:
        clusters = RoomClusters(ClusterConfig(threshold=1.0))
        assert clusters.assign(line(2, 0, 1)).tolist() == [0, 1, 0]

    def test_a_centre_can_leave_the_reach_of_an_embedding_within_one_call(self) -> None:
        clusters = RoomClusters(ClusterConfig(threshold=1.0))
        assert clusters.assign(line(0, 0.9, 1.4, 1.7, -0.3)).tolist() == Literal(1.0).assign(
            line(0, 0.9, 1.4, 1.7, -0.3)
        )

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
        self.check(data, threshold, call_size)

    @pytest.mark.parametrize("call_size", [1, 13, 300])
    def test_agrees_with_the_literal_algorithm_on_a_lattice_full_of_ties(self, call_size: int) -> None:
        rng = np.random.default_rng(1)
        data = np.zeros((300, 64))
        data[:, :2] = rng.integers(0, 6, (300, 2))
        self.check(data, 1.0, call_size)

    @pytest.mark.parametrize("offset", [1e3, 1e6])
    def test_far_from_the_origin_too(self, offset: float) -> None:
        # Where |c|² + |v|² − 2c·v would lose all its digits.
        rng = np.random.default_rng(2)
        self.check(offset + rng.normal(size=(200, 64)) * 0.1, 1.0, 50)

    def check(self, data: NDArray[np.float64], threshold: float, call_size: int) -> None:
        clusters = RoomClusters(ClusterConfig(threshold=threshold))
        calls = [clusters.assign(data[i : i + call_size]) for i in range(0, len(data), call_size)]
        literal = Literal(threshold)
        assert np.concatenate(calls).tolist() == literal.assign(data)
        assert len(clusters) == len(literal.clusters)
        means = np.stack([sum(c) / len(c) for c in literal.clusters])
        np.testing.assert_array_equal(clusters.centres, means)

    def test_nothing_to_assign(self) -> None:
        clusters = RoomClusters()
        assert clusters.assign(np.zeros((0, 64))).tolist() == []
        assert len(clusters) == 0


class TestEmbed:
    def test_does_not_depend_on_the_batch(self) -> None:
        clusters, batch = RoomClusters(), frames(80)
        together = clusters.embed(batch)
        alone = np.concatenate([clusters.embed(frame[None]) for frame in batch])
        np.testing.assert_array_equal(together, alone)

    def test_is_a_linear_layer_with_glorot_scale(self) -> None:
        batch = frames(200)
        embeddings = RoomClusters(ClusterConfig(projection_scale=1.0)).embed(batch)
        assert embeddings.shape == (200, 64)
        pixels = batch.flatten(1).double().numpy() / 255
        actual = np.linalg.norm(embeddings[1:] - embeddings[0], axis=1)
        bound = np.sqrt(6 / (84 * 84 * 3 + 64))
        glorot = np.random.default_rng(1).uniform(-bound, bound, (84 * 84 * 3, 64))
        expected = np.linalg.norm((pixels[1:] - pixels[0]) @ glorot, axis=1)
        np.testing.assert_allclose(actual.mean(), expected.mean(), rtol=0.1)

    def test_the_seed_and_the_scale_are_all_that_matters(self) -> None:
        batch = frames(2)
        reference = RoomClusters(ClusterConfig(projection_scale=0.5)).embed(batch)
        again = RoomClusters(ClusterConfig(projection_scale=0.5, threshold=3.0)).embed(batch)
        doubled = RoomClusters(ClusterConfig(projection_scale=1.0)).embed(batch)
        other = RoomClusters(ClusterConfig(projection_scale=0.5, seed=1)).embed(batch)
        np.testing.assert_array_equal(again, reference)
        np.testing.assert_allclose(doubled, 2 * reference)
        assert not np.allclose(other, reference)


def test_state_round_trip_continues_identically() -> None:
    clusters = RoomClusters(ClusterConfig(threshold=1.0, seed=3))
    data = np.random.default_rng(0).normal(size=(200, 64)) * 0.09
    clusters.assign(data[:100])
    state = clusters.state_dict()
    resumed = RoomClusters(ClusterConfig(threshold=1.0, seed=4))
    resumed.load_state_dict(state)
    np.testing.assert_array_equal(resumed.assign(data[100:]), clusters.assign(data[100:]))
    np.testing.assert_array_equal(resumed.centres, clusters.centres)
    np.testing.assert_array_equal(resumed.embed(frames(2)), clusters.embed(frames(2)))
    assert len(state["sizes"]) <= len(clusters)  # and what was saved has not moved since
    assert state["sizes"].sum() == 100


def test_a_state_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="embedding size is 32, not 64"):
        RoomClusters().load_state_dict(RoomClusters(ClusterConfig(embedding_size=32)).state_dict())


@pytest.mark.parametrize("name", ["threshold", "embedding_size", "projection_scale"])
def test_bad_settings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*, not -1"):
        ClusterConfig(**{name: -1})  # type: ignore[arg-type]


def test_find_names_the_cluster_that_assign_would_and_changes_nothing() -> None:
    clusters = RoomClusters(ClusterConfig(threshold=1.0, embedding_size=2))
    assert clusters.find(np.zeros((2, 2))).tolist() == [-1, -1]
    clusters.assign([[0.0, 0.0], [5.0, 0.0]])
    before = clusters.state_dict()
    assert clusters.find([[0.9, 0.0], [4.5, 0.5], [2.5, 0.0], [0.0, 1.0]]).tolist() == [0, 1, -1, 0]
    assert all(np.array_equal(value, before[name]) for name, value in clusters.state_dict().items())
    assert clusters.assign([[4.5, 0.5]]).tolist() == [1]
