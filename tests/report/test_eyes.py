"""Looking sees what training would have seen, and changes nothing."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from coex.analysis.evaluation import find_saved
from coex.config.presets import make_config
from coex.envs import VIEW_SHAPES
from coex.envs.views import Views
from coex.method.bonus import CoexBonus
from coex.report.eyes import NEW_ROOM, CoexEyes, Sight, open_eyes
from coex.report.play import play

NUM_ACTIONS = 6


def make_views(picture: int) -> Views:
    generator = np.random.default_rng(picture)
    return {name: generator.integers(0, 256, shape).astype(np.uint8) for name, shape in VIEW_SHAPES.items()}


def make_state(method: str = "a2c+coex", **settings: object) -> tuple[CoexBonus, CoexEyes]:
    torch.manual_seed(0)
    config = make_config("montezuma", method, {"bonus": settings})
    from coex.training.make import make_bonus

    bonus = make_bonus(config, NUM_ACTIONS, np.random.SeedSequence(0), torch.device("cpu"))
    assert isinstance(bonus, CoexBonus)
    eyes = open_eyes(config, bonus.state_dict(), NUM_ACTIONS)
    assert isinstance(eyes, CoexEyes)
    return bonus, eyes


def test_attention_is_smoothed_as_in_training() -> None:
    _, eyes = make_state()
    assert eyes._model is not None
    smoothed = None
    for picture in (1, 2, 3):
        views = make_views(picture)
        with torch.no_grad():
            alpha = eyes._model.attend(eyes._model.encode(torch.from_numpy(views["adm"])[None]))[0].numpy()
        weight = alpha.max()
        smoothed = alpha if smoothed is None else (1 - weight) * smoothed + weight * alpha
        sight = eyes.look(views, 0.0)
        assert sight.attention is not None
        np.testing.assert_allclose(sight.attention.ravel(), smoothed, rtol=1e-5)
        assert sight.cell == (smoothed.argmax() % 9, smoothed.argmax() // 9)
    eyes.begin_episode()
    first = eyes.look(make_views(1), 0.0).attention
    assert first is not None
    assert not np.allclose(first.ravel(), smoothed)


def test_a_state_is_looked_up_under_the_key_that_training_counted() -> None:
    bonus, eyes = make_state("a2c+coex-ram")
    views = make_views(1)
    sight = eyes.look(views, 100.9)
    assert sight.visits == 0
    assert sight.bonus == 1.0
    assert sight.cell is not None
    assert sight.room is not None
    bonus._counts.visit([[*sight.cell, sight.room, 100]] * 3)
    config = make_config("montezuma", "a2c+coex-ram")
    again = open_eyes(config, bonus.state_dict(), NUM_ACTIONS)
    assert again.look(views, 100.9).visits == 3
    assert again.look(views, 100.9).bonus == 0.5
    assert again.look(views, 101.0).visits == 0


def test_a_picture_like_no_cluster_is_a_new_room() -> None:
    bonus, _ = make_state(state="c")
    assert bonus._clusters is not None
    known, new = (np.zeros((84, 84, 3), np.uint8), np.full((84, 84, 3), 255, np.uint8))
    bonus._clusters.assign(bonus._clusters.embed(torch.from_numpy(known)[None]))
    eyes = open_eyes(make_config("montezuma", "a2c+coex", {"bonus": {"state": "c"}}), bonus.state_dict(), NUM_ACTIONS)
    assert eyes.look({"context": known}, 0.0).room == 0
    assert eyes.look({"context": new}, 0.0).room == NEW_ROOM
    assert eyes.look({"context": new}, 0.0).room == NEW_ROOM


@pytest.mark.parametrize(
    ("method", "settings", "visits"),
    [("a2c", {}, None), ("a2c+simhash", {}, 0), ("a2c+coex", {"locator": "random"}, None)],
)
def test_methods_without_a_place(method: str, settings: dict[str, str], visits: int | None) -> None:
    from coex.training.make import make_bonus

    config = make_config("freeway", method, {"bonus": settings} if settings else {})
    bonus = make_bonus(config, NUM_ACTIONS, np.random.SeedSequence(0), torch.device("cpu"))
    eyes = open_eyes(config, bonus.state_dict() if bonus else None, NUM_ACTIONS)
    eyes.begin_episode()
    assert eyes.look(make_views(0), 0.0) == Sight(visits=visits)


def test_playing_repeats_itself_and_leaves_the_checkpoint_as_it_was(coex_run: Path) -> None:
    saved = find_saved(coex_run, None, print)
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
