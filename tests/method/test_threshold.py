"""τ from the first observations: worlds of each kind, and what happens before it is known."""

import copy
import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from coex.analysis.agreement import agreement, gather
from coex.config.bonuses import ClusterConfig
from coex.config.presets import GAMES, make_config
from coex.envs import VectorEnv, make_game
from coex.envs.game_config import GameConfig
from coex.method.rooms import RoomClusters
from coex.method.threshold import FIRST_OBSERVATIONS, choose_threshold

AUTO = ClusterConfig(threshold=0.0, embedding_size=16)


def room(generator: np.random.Generator, centre: np.ndarray, count: int, spread: float = 0.1) -> np.ndarray:
    """(count, 16) pictures of one room: a player and a monster wander about."""
    return centre + spread * generator.normal(size=(count, 16))


def whole(embeddings: np.ndarray) -> np.ndarray:
    """The same as whole numbers, as clusters have them."""
    return np.rint(embeddings * 1_000).astype(np.int64)


def test_one_room_so_far_is_one_and_another_is_another() -> None:
    generator = np.random.default_rng(0)
    here, there = np.zeros(16), np.full(16, 0.5)
    clusters = RoomClusters(AUTO)
    assert set(clusters.assign(room(generator, here, 3_000))) == {0}
    assert set(clusters.assign(room(generator, there, 500))) == {1}
    assert set(clusters.assign(room(generator, here, 500))) == {0}


@pytest.mark.parametrize("share", [0.5, 0.1, 0.03])
def test_two_rooms_are_told_apart_however_rare_one_is(share: float) -> None:
    generator = np.random.default_rng(0)
    is_other = generator.random(FIRST_OBSERVATIONS) < share
    seen = room(generator, np.zeros(16), FIRST_OBSERVATIONS) + 1.0 * is_other[:, None]
    names = RoomClusters(AUTO).assign(seen)
    assert len(set(names)) == 2
    assert agreement(names, is_other.astype(int))["ari"] == 1.0


def test_few_pictures_that_come_again_are_one_room() -> None:
    generator = np.random.default_rng(0)
    pictures = room(generator, np.zeros(16), 60)
    assert set(RoomClusters(AUTO).assign(pictures[generator.integers(60, size=4_000)])) == {0}


@pytest.mark.parametrize("world", ["FourRooms-v0", "MultiRoom-N4-S5-v1"])
@pytest.mark.parametrize(("levels", "first_level"), [(1, 5), (1, 3), (6, 0)])
def test_a_layout_of_minigrid_is_a_room(world: str, levels: int, first_level: int) -> None:
    """All of it is in one picture, in which a step of the player changes as much as an open door does."""
    pytest.importorskip("minigrid")
    config = GameConfig(frame_skip=1, max_noops=0, levels=levels, first_level=first_level)
    game = make_game(f"gym:MiniGrid-{world}", config, np.random.SeedSequence(0))
    generator = np.random.default_rng(0)
    clusters = RoomClusters(ClusterConfig(threshold=0.0))
    frames = np.zeros((FIRST_OBSERVATIONS, 84, 84, 3), np.uint8)
    for frame, step in zip(frames, range(FIRST_OBSERVATIONS), strict=True):
        if step % 40 == 0:
            game.reset()
        _, terminated, truncated = game.step(int(generator.integers(len(game.action_names))))
        game.paint({"rgb84": frame}, fresh=False)
        if terminated or truncated:
            game.reset()
    game.close()
    embeddings = clusters.embed(torch.from_numpy(frames))
    names = clusters.assign(embeddings)
    assert len(clusters) == levels
    if world == "FourRooms-v0":  # where the paper's makes one cluster of everything
        assert set(RoomClusters().assign(embeddings)) == {0}
    assert len(set(names[-40:])) == 1  # of one episode


def test_layouts_of_many_episodes_are_the_rooms() -> None:
    """Few pictures come again, but in many layouts that lie far apart: a room is a layout."""
    generator = np.random.default_rng(0)
    layouts = 3 * generator.normal(size=(40, 16))
    layout = np.repeat(np.arange(40), 100)
    seen = layouts[layout] + room(generator, np.zeros(16), 20)[generator.integers(20, size=4_000)]
    assert agreement(RoomClusters(AUTO).assign(seen), layout)["ari"] == 1.0


def test_noise_and_a_picture_that_never_changes_do_no_harm() -> None:
    generator = np.random.default_rng(0)
    clusters = RoomClusters(AUTO)
    clusters.assign(generator.normal(size=(6_000, 16)))
    assert len(clusters) <= 3
    still = RoomClusters(AUTO)
    assert set(still.assign(np.ones((6_000, 16)))) == {0}
    assert still.threshold == ClusterConfig().threshold
    assert set(RoomClusters(AUTO).assign(np.zeros((6_000, 16)))) == {0}


def test_it_is_chosen_in_the_pictures_own_units() -> None:
    seen = room(np.random.default_rng(0), np.zeros(16), 2_000)
    assert choose_threshold(50 * seen) == pytest.approx(50 * choose_threshold(seen))


def test_everything_is_one_room_until_it_is_known() -> None:
    generator = np.random.default_rng(0)
    seen = whole(room(generator, np.zeros(16), 2_400) + (np.arange(2_400) % 3 == 0)[:, None])
    clusters, at_once = RoomClusters(AUTO), RoomClusters(AUTO)
    names = np.concatenate([clusters.assign(part) for part in np.split(seen, 8)])
    assert set(names[:1_800]) == {0}
    assert np.array_equal(names[1_800:], at_once.assign(seen)[1_800:])
    assert set(names[1_800:]) == {0, 1}
    assert clusters.threshold == at_once.threshold
    assert set(RoomClusters(AUTO).find(seen)) == {0}


@pytest.mark.parametrize("before", [900, 2_100])
def test_a_restored_choice_goes_on_identically(before: int) -> None:
    seen = whole(room(np.random.default_rng(0), np.zeros(16), 4_000) + (np.arange(4_000) % 3 == 0)[:, None])
    original, restored = RoomClusters(AUTO), RoomClusters(AUTO)
    original.assign(seen[:before])
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    assert np.array_equal(restored.assign(seen[before:]), original.assign(seen[before:]))
    assert restored.threshold == original.threshold > 0


def test_games_of_the_paper_keep_theirs() -> None:
    for game, row in GAMES.items():
        assert make_config(game, "a2c+coex").bonus.clusters.threshold == row.threshold
    assert make_config("gym:MiniGrid-Empty-5x5-v0", "a2c+coex").bonus.clusters.threshold == 0
    assert make_config("Pitfall", "ppo+coex").bonus.clusters.threshold == 0
    assert make_config("Pitfall", "ppo+coex", preset="paper").bonus.clusters.threshold == 0


def chosen_in_training(game: str, seed: int) -> float:
    """What a run chooses: from its environments, at the hands of a policy that is still random."""
    config, generator = make_config(game, "a2c+coex"), np.random.default_rng(seed)
    clusters = RoomClusters(ClusterConfig(threshold=0.0))
    sequence = np.random.SeedSequence(seed)
    with VectorEnv(game, config.env, num_envs=16, num_workers=0, views={"rgb84": (84, 84, 3)}, seed=sequence) as env:
        env.reset()
        while not clusters.threshold:
            env.step(generator.integers(env.num_actions, size=16))
            clusters.assign(clusters.embed(torch.from_numpy(env.views["rgb84"])))
    return clusters.threshold


@pytest.mark.parametrize("game", ["MontezumaRevenge", "Hero"])
def test_it_names_rooms_as_well_as_the_papers(game: str) -> None:
    """By the sweep over 100,000 observations: a scale of the projection is a τ that is as much smaller."""
    with (Path(__file__).parents[2] / "results" / "rooms" / "calibration.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["game"] == game]
    papers = GAMES[game].threshold
    ari = {
        papers * ClusterConfig().projection_scale / float(row["projection_scale"]): float(row["ari"]) for row in rows
    }
    chosen = chosen_in_training(game, seed=0)
    around = [max(tau for tau in ari if tau <= chosen), min(tau for tau in ari if tau >= chosen)]
    assert min(ari[tau] for tau in around) >= ari[papers] - 0.03


@pytest.mark.slow
def test_it_names_ventures_rooms_as_well_as_the_papers() -> None:
    seen = gather("Venture", ClusterConfig(), 6_000, seed=0)
    papers = agreement(seen.clusters, seen.rooms)
    assert papers["rooms"] > 1
    for threshold in (
        chosen_in_training("Venture", seed=0),
        choose_threshold(seen.embeddings[:2_000] * RoomClusters().scale),
    ):
        names = RoomClusters(ClusterConfig(threshold=threshold)).assign(seen.embeddings)
        assert agreement(names, seen.rooms)["ari"] >= papers["ari"] - 0.03
