"""`coex rooms`: the exploration behind it, the figures, and what it leaves behind."""

import csv
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coex.analysis.agreement import Reservoirs, RoomTrajectory, agreement, by_cluster, by_room, calibrate, gather
from coex.analysis.explore import Place, SavedPlaces, explore, place_of, save
from coex.cli import main
from coex.config.bonuses import ClusterConfig
from coex.envs import ram
from coex.envs.atari import AtariGame
from coex.envs.game_config import GameConfig
from coex.method.rooms import RoomClusters

RNG = np.random.default_rng


def nothing() -> dict[str, Any]:
    return {}


class TestArchive:
    def test_rare_scenes_and_rare_places_in_them_are_chosen_more_often(self) -> None:
        archive = SavedPlaces()
        visits = {Place(1, 0, 0, 0): 6, Place(1, 0, 1, 0): 2, Place(2, 0, 0, 0): 1, Place(2, 7, 0, 0): 1}
        for place, count in visits.items():
            for _ in range(count):
                archive.visit(place, 0.0, nothing)
        # Scenes (1, 0), (2, 0) and (2, 7) as 1/8 : 1 : 1; within the first 1/6 : 1/2.
        assert list(archive.chances()) == list(visits)
        np.testing.assert_allclose(list(archive.chances().values()), np.array([1 / 4, 3 / 4, 8, 8]) / 17)

    def test_it_chooses_as_often_as_it_says(self) -> None:
        archive, generator = SavedPlaces(), RNG(0)
        for column, count in enumerate((1, 2, 4)):
            for _ in range(count):
                archive.visit(Place(1, 0, column, 0), float(column), nothing)
        chosen = np.bincount([int(archive.choose(generator).score) for _ in range(2_000)]) / 2_000
        np.testing.assert_allclose(chosen, [4 / 7, 2 / 7, 1 / 7], atol=0.03)

    def test_the_first_game_of_a_place_is_kept(self) -> None:
        archive = SavedPlaces()
        archive.visit(Place(1, 0, 0, 0), 5.0, lambda: {"name": "first"})
        archive.visit(Place(1, 0, 0, 0), 6.0, lambda: {"name": "second"})
        assert len(archive) == 1
        assert archive.choose(RNG(0)) == ({"name": "first"}, 5.0)

    def test_a_chosen_game_goes_on_as_it_did(self) -> None:
        emulator = AtariGame("Venture", GameConfig(), np.random.SeedSequence(0))
        emulator.reset()
        views = {"rgb84": np.zeros((84, 84, 3), np.uint8), "ram": np.zeros(128, np.uint8)}
        for action in RNG(0).integers(len(emulator.action_names), size=50).tolist():
            emulator.step(action)
        archive = SavedPlaces()
        archive.visit(Place(8, 0, 0, 0), 0.0, lambda: save(emulator))

        def follow() -> list[bytes]:
            seen = []
            for action in RNG(1).integers(len(emulator.action_names), size=30).tolist():
                emulator.step(action)
                emulator.paint(views, fresh=False)
                seen.append(views["rgb84"].tobytes() + views["ram"].tobytes())
            return seen

        first = follow()
        emulator.load_state_dict(archive.choose(RNG(0)).state)
        assert follow() == first


def test_a_place_is_room_progress_and_eight_pixels() -> None:
    memory = np.zeros(128, np.uint8)
    memory[[3, 57, 42, 43]] = 5, 1, 77, 235  # Montezuma: room 5 of level 1, box at (76, 73)
    assert place_of("MontezumaRevenge", memory, 0.0) == Place(256 + 5, 0, 9, 9)
    assert [place_of("MontezumaRevenge", memory, score).progress for score in (-50.0, 100.0, 400.0)] == [0, 7, 9]


class TestExplore:
    @pytest.mark.parametrize("game", ram.ROOM_GAMES)
    def test_the_seed_decides_everything(self, game: str) -> None:
        def look(seed: int) -> list[bytes]:
            steps = itertools.islice(explore(game, seed), 200)
            return [frame.tobytes() + memory.tobytes() for frame, memory in steps]

        assert look(0) == look(0)
        assert look(0) != look(1)

    def test_it_goes_through_rooms(self) -> None:
        steps = itertools.islice(explore("PrivateEye", 0), 3_000)
        assert len({int(ram.room("PrivateEye", memory)) for _, memory in steps}) >= 4


class TestAgreement:
    def test_known_answers(self) -> None:
        rooms, clusters = np.array([5, 5, 5, 5, 7, 7]), np.array([0, 0, 0, 1, 2, 2])
        figures = agreement(clusters, rooms)
        assert figures["ari"] == round(adjusted_rand_score(rooms, clusters), 4)
        assert (figures["purity"], figures["clusters"], figures["rooms"]) == (1.0, 3, 2)
        assert agreement(np.zeros(6, np.int64), rooms)["purity"] == round(4 / 6, 4)

    def test_ari_equals_the_formula(self) -> None:
        generator = RNG(0)
        rooms = generator.integers(4, size=300)
        clusters = np.where(generator.random(300) < 0.7, rooms, generator.integers(6, size=300))
        pairs = list(itertools.combinations(range(300), 2))
        same_room = np.array([rooms[i] == rooms[j] for i, j in pairs])
        same_cluster = np.array([clusters[i] == clusters[j] for i, j in pairs])
        both, expected = (same_room & same_cluster).sum(), same_room.sum() * same_cluster.sum() / len(pairs)
        ari = (both - expected) / ((same_room.sum() + same_cluster.sum()) / 2 - expected)
        assert agreement(clusters, rooms)["ari"] == round(ari, 4)

    def test_windows_are_averaged(self) -> None:
        rooms = np.repeat([1, 2, 1, 1], 50)
        clusters = np.repeat([0, 1, 0, 1], 50)  # the first hundred right, the second hundred split
        assert agreement(clusters, rooms)["ari_100"] == 0.5
        assert agreement(clusters, rooms)["ari_5000"] == agreement(clusters, rooms)["ari"]  # fewer than a window

    def test_rows_of_clusters_and_rooms(self) -> None:
        rooms, clusters = np.array([5, 5, 5, 7, 5]), np.array([1, 1, 1, 1, 0])
        assert by_cluster(clusters, rooms) == [
            {"cluster": 1, "observations": 4, "room": 5, "share": 0.75},
            {"cluster": 0, "observations": 1, "room": 5, "share": 1.0},
        ]
        assert by_room(clusters, rooms) == [
            {"room": 5, "observations": 4, "cluster": 1, "share": 0.75},
            {"room": 7, "observations": 1, "cluster": 1, "share": 1.0},
        ]


def test_samples_are_members_each_as_likely_as_any_other() -> None:
    frames = np.arange(20, dtype=np.uint8)[:, None, None, None] * np.ones((1, 84, 84, 3), np.uint8)
    kept = np.zeros(20)
    for seed in range(500):
        samples = Reservoirs(3, seed)
        for half in (slice(0, 10), slice(10, 20)):
            samples.add(np.arange(20)[half] % 2, frames[half])
        assert all(frame[0, 0, 0] % 2 == cluster for cluster, some in samples.frames.items() for frame in some)
        kept += np.bincount([frame[0, 0, 0] for some in samples.frames.values() for frame in some], minlength=20)
    np.testing.assert_allclose(kept / 500, 3 / 10, atol=0.08)


def test_the_calibration_is_what_clusters_of_that_scale_give() -> None:
    game, config = "PrivateEye", ClusterConfig(threshold=0.55)
    trajectory = gather(game, config, 1_200, seed=0)
    assert trajectory.embeddings.shape == (1_200, 64)
    again = gather(game, ClusterConfig(threshold=0.55, projection_scale=1.0), 1_200, seed=0)
    (row,) = calibrate(trajectory, config, scales=[1.0])
    assert row == {"projection_scale": 1.0} | agreement(again.clusters, again.rooms)
    assert row["clusters"] > agreement(trajectory.clusters, trajectory.rooms)["clusters"]


def test_calibration_of_two_points() -> None:
    unit = RoomClusters(ClusterConfig(projection_scale=1.0)).scale
    embeddings = np.rint(np.eye(64)[[0, 0, 1]] / unit).astype(np.int64)
    trajectory = RoomTrajectory(embeddings, RoomClusters().assign(embeddings), np.array([3, 3, 4]), {}, 0.7)
    rows = calibrate(trajectory, ClusterConfig(threshold=1.0, projection_scale=1.0), scales=[0.5, 1.0])
    assert [(row["clusters"], row["ari"]) for row in rows] == [(1, 0.0), (2, 1.0)]  # √2 apart, or half of it


def test_it_writes_figures_tables_and_sheets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"rooms private-eye --steps 1500 --seed 3 --calibrate --out {tmp_path}".split()) == 0
    result = json.loads((tmp_path / "PrivateEye-s3.json").read_text())
    assert (result["steps"], result["clustering"]["threshold"]) == (1500, 0.55)  # the paper's τ for the game
    assert result["threshold"] == 0.55
    assert result["rooms"] > 1
    with (tmp_path / "PrivateEye-s3-rooms.csv").open() as file:
        assert sum(int(row["observations"]) for row in csv.DictReader(file)) == 1500
    with (tmp_path / "PrivateEye-s3-clusters.csv").open() as file:
        assert len(list(csv.DictReader(file))) == result["clusters"]
    with (tmp_path / "calibration.csv").open() as file:
        assert {row["game"] for row in csv.DictReader(file)} == {"PrivateEye"}
    for name in ("PrivateEye-s3.png", "calibration.png"):
        assert 5_000 < (tmp_path / name).stat().st_size < 300_000
    assert "PrivateEye" in capsys.readouterr().out


def test_a_threshold_that_was_chosen_is_written(tmp_path: Path) -> None:
    assert main(f"rooms venture --steps 2500 --set threshold=0 --out {tmp_path}".split()) == 0
    result = json.loads((tmp_path / "Venture-s0.json").read_text())
    assert result["clustering"]["threshold"] == 0.0
    assert result["threshold"] == pytest.approx(0.4, abs=0.35)


def test_other_games_take_the_default_threshold(tmp_path: Path) -> None:
    assert main(f"rooms pitfall --steps 1000 --out {tmp_path}".split()) == 0
    result = json.loads((tmp_path / "Pitfall-s0.json").read_text())
    assert result["clustering"]["threshold"] == 0.7
    assert result["rooms"] > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("rooms hero freeway", "Hero, MontezumaRevenge"),
        ("rooms gym:CartPole-v1", "gym:CartPole-v1"),
        ("rooms hero --steps few", "whole numbers"),
        ("rooms hero --steps 10", "at least 1000"),
        ("rooms hero --set threshold=-1", "threshold"),
        ("rooms hero --set tau=1", "no setting 'tau'"),
        ("rooms hero --set seed=-1", "seed"),
    ],
)
def test_bad_input_is_said(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == 2
    assert message in capsys.readouterr().err
