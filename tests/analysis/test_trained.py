"""A trained agent sees what training would have seen, and changes nothing."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from coex.analysis.trained import TrainedAgent, find_saved, load
from coex.bonuses import Bonus, Inspection
from coex.config.presets import make_config
from coex.envs.views import Views
from coex.method.bonus import CoexBonus
from coex.method.rooms import NEW_ROOM
from coex.report.play import play
from coex.rollouts.rollout import still
from coex.training.loop import train
from coex.training.make import make_bonus
from tests.conftest import VIEW_SHAPES

NUM_ACTIONS = 6


def make_views(picture: int) -> Views:
    generator = np.random.default_rng(picture)
    return {name: generator.integers(0, 256, shape).astype(np.uint8) for name, shape in VIEW_SHAPES.items()}


def make(method: str = "a2c+coex", game: str = "montezuma", **settings: object) -> Bonus:
    torch.manual_seed(0)
    config = make_config(game, method, {"bonus": settings} if settings else {})
    bonus = make_bonus(config, NUM_ACTIONS, np.random.SeedSequence(0), torch.device("cpu"))
    assert bonus is not None
    return bonus


def test_attention_is_smoothed_as_in_training() -> None:
    bonus = make()
    assert isinstance(bonus, CoexBonus)
    assert bonus.encoder.locator is not None
    model, smoothed = bonus.encoder.locator.model, None
    for picture in (1, 2, 3):
        views = make_views(picture)
        with torch.no_grad():
            alpha = model.attend(model.encode(torch.from_numpy(views["rgb160"])[None]))[0].numpy()
        weight = alpha.max()
        smoothed = alpha if smoothed is None else (1 - weight) * smoothed + weight * alpha
        found = bonus.inspect(still(views, 0.0))
        assert found.attention is not None
        np.testing.assert_allclose(found.attention.ravel(), smoothed, rtol=1e-4, atol=1e-6)
        assert found.cell == (smoothed.argmax() % 9, smoothed.argmax() // 9)
    bonus.forget_episodes()
    first = bonus.inspect(still(make_views(1), 0.0)).attention
    assert first is not None
    assert not np.allclose(first.ravel(), smoothed)


def test_a_state_is_looked_up_under_the_key_that_training_counted() -> None:
    bonus = make("a2c+coex-ram")
    assert isinstance(bonus, CoexBonus)
    picture = still(make_views(1), 100.9)
    found = bonus.inspect(picture)
    assert (found.visits, found.bonus) == (0, 1.0)
    assert found.cell is not None
    assert found.room is not None
    bonus.counts.visit([[*found.cell, found.room, 100]] * 3)
    assert (bonus.inspect(picture).visits, bonus.inspect(picture).bonus) == (3, 0.5)
    assert bonus.inspect(still(make_views(1), 101.0)).visits == 0


def test_a_picture_like_no_cluster_is_a_new_room() -> None:
    bonus = make(state="c")
    assert isinstance(bonus, CoexBonus)
    assert bonus.encoder.rooms is not None
    known, new = (np.zeros((84, 84, 3), np.uint8), np.full((84, 84, 3), 255, np.uint8))
    bonus.encoder.rooms.assign(bonus.encoder.rooms.embed(torch.from_numpy(known)[None]))
    assert bonus.inspect(still({"rgb84": known}, 0.0)).room == 0
    for _ in range(2):
        assert bonus.inspect(still({"rgb84": new}, 0.0)).room == NEW_ROOM


@pytest.mark.parametrize(
    ("method", "settings", "visits"), [("a2c+simhash", {}, 0), ("a2c+coex", {"locator": "random"}, None)]
)
def test_methods_without_a_place(method: str, settings: dict[str, str], visits: int | None) -> None:
    assert make(method, "freeway", **settings).inspect(still(make_views(0), 0.0)) == Inspection(visits=visits)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    settings = {"total_steps": 240, "num_envs": 4, "num_workers": 0, "env": {"max_episode_frames": 200, "max_noops": 0}}
    train(make_config("montezuma", "a2c+coex", settings), out)
    return out


def test_playing_repeats_itself_and_leaves_the_checkpoint_as_it_was(run: Path) -> None:
    saved = find_saved(run, None, print)
    before = copy.deepcopy(saved.state["agent"]["bonus"]["counts"])
    first, second = ([next(moments) for _ in range(60)] for moments in (play(saved, 0), play(saved, 0)))
    for one, other in zip(first, second, strict=True):
        assert (one.step, one.action, one.score, one.value) == (other.step, other.action, other.score, other.value)
        np.testing.assert_array_equal(one.picture, other.picture)
    assert first[50].action is None  # 200 frames an episode
    assert (first[51].episode, first[51].step) == (2, 0)
    assert first[0].truth is not None
    assert first[0].truth.room == 1
    assert first[0].picture.shape == (210, 160, 3)
    for name, counted in before.items():
        np.testing.assert_array_equal(saved.state["agent"]["bonus"]["counts"][name], counted)
    other_seed = play(saved, 1)
    assert [next(other_seed).action for _ in range(50)] != [moment.action for moment in first[:50]]


def test_an_agent_is_loaded_acts_and_says_where_it_is(run: Path) -> None:
    state = torch.get_rng_state()
    agent = load(run)
    assert isinstance(agent, TrainedAgent)
    assert torch.equal(torch.get_rng_state(), state)  # nobody else's generator is touched
    observations = torch.zeros((3, 84, 84, 4), dtype=torch.uint8)
    actions = agent.act(observations, torch.Generator().manual_seed(0))
    assert actions.shape == (3,)
    assert actions.max() < agent.num_actions == 18
    found = agent.inspect(make_views(0))
    assert found.cell is not None
    assert found.visits is not None
