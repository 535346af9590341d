"""Settings by name, and the paper's presets."""

import dataclasses
import itertools
import json
from pathlib import Path

import pytest

from coex.config.presets import ARCHIVES, BONUSES, METHODS, PRESETS, make_config
from coex.config.settings import load_config, parse_assignments, parse_int
from coex.errors import UsageError

LEARNT = [method for method in METHODS if method not in ARCHIVES]  # by the paper's learners


def configure(*assignments: str, game: str = "montezuma", method: str = "a2c") -> object:
    return make_config(game, method, parse_assignments(list(assignments)))


def test_the_papers_preset_is_the_papers() -> None:
    config = make_config("montezuma", "a2c", preset="paper")
    assert (config.num_envs, config.learner.num_steps, config.learner.learning_rate) == (16, 5, 7e-4)
    assert (config.learner.gamma, config.learner.entropy_weight, config.learner.max_grad_norm) == (
        0.99,
        0.01,
        0.5,
    )
    assert config.reward.extrinsic_weight == 10  # β₁ of plain A2C on this game
    assert (config.env.frame_skip, config.env.sticky, config.env.max_noops) == (4, 0.0, 30)
    assert (config.learner.centre_observations, config.env.stagger) == (False, 0)
    assert (config.learner.optimizer, config.learner.gae_lambda, config.learner.normalise_advantages) == (
        "rmsprop",
        1.0,
        False,
    )
    assert make_config("hero", "a2c", preset="paper").reward.extrinsic_weight == 1
    adm = make_config("hero", "a2c+coex", preset="paper").bonus.adm
    assert (adm.found_by, adm.joystick) == (0, False)  # the policy learns from the start
    assert make_config("hero", "a2c+coex").bonus.adm.joystick
    assert not make_config("gym:MiniGrid-DoorKey-6x6-v0", "a2c+coex").bonus.adm.joystick


@pytest.mark.parametrize("game", ["montezuma", "hero", "gym:MiniGrid-DoorKey-6x6-v0"])
@pytest.mark.parametrize("method", LEARNT)
def test_by_default_a_bonus_weighs_what_was_published_or_a_tenth_of_a_reward(game: str, method: str) -> None:
    if game.startswith("gym:") and method.endswith("-ram"):
        pytest.skip("there is no RAM to look at")
    reward = make_config(game, method).reward
    published = BONUSES[bonus].weight if (bonus := method.partition("+")[2]) else 0.0
    own = 0.05 if game.startswith("gym:") and method.startswith("ppo") else 0.1  # PPO's settings for MiniGrid
    weight = own if published is None else published
    assert reward.bonus_weight == pytest.approx(reward.extrinsic_weight * weight)


def test_ppos_preset_is_the_papers() -> None:
    config = make_config("montezuma", "ppo+coex", preset="paper")
    learner = config.learner
    assert (config.num_envs, learner.num_steps, learner.num_minibatches, learner.num_epochs) == (128, 128, 4, 4)
    assert (learner.gamma, learner.gae_lambda, learner.learning_rate, learner.entropy_weight) == (
        0.99,
        0.95,
        1e-5,
        0.01,
    )
    assert (learner.clip_range, learner.normalise_rewards, learner.normalise_advantages) == (0.1, True, True)
    assert not learner.two_value_heads
    assert (config.reward.extrinsic_weight, config.reward.bonus_weight) == (2, 1)
    assert (config.env.sticky, config.env.max_noops, config.env.max_episode_frames) == (0.25, 0, 18_000)
    assert make_config("venture", "ppo+coex", preset="paper").reward == config.reward  # whatever the game
    assert make_config("privateeye", "ppo+coex").bonus.clusters.threshold == 0.55  # τ and ψ are A2C's
    assert make_config("seaquest", "ppo+coex").bonus.state == "xyR"


@pytest.mark.parametrize("game", ["montezuma", "gym:MiniGrid-Empty-5x5-v0"])
@pytest.mark.parametrize("method", ["a2c+coex", "ppo+coex"])
def test_presets_differ_in_the_learner_and_its_units_not_in_what_is_counted(game: str, method: str) -> None:
    paper, default = (make_config(game, method, preset=preset) for preset in ("paper", "default"))
    assert default == make_config(game, method)
    assert default.learner.centre_observations == (game == "montezuma" or method == "a2c+coex")
    assert default.env == dataclasses.replace(paper.env, stagger=default.env.stagger)
    assert (default.bonus.state, default.bonus.clusters) == (paper.bonus.state, paper.bonus.clusters)


def test_a_preset_may_be_among_the_settings() -> None:
    assert make_config("hero", "a2c", {"preset": "paper"}) == make_config("hero", "a2c", preset="paper")
    assert make_config("hero", "a2c", preset="paper").preset == "paper"


def test_schedules_follow_the_number_of_steps_unless_set() -> None:
    assert make_config("hero", "a2c", {"total_steps": 500}).schedule_steps == 500
    assert make_config("hero", "a2c", {"total_steps": 500, "schedule_steps": 900}).schedule_steps == 900


def test_any_field_can_be_set_by_name() -> None:
    config = make_config("hero", "a2c", parse_assignments(["learner.gamma=0.9", "env.sticky=0.25", "total_steps=2e5"]))
    assert (config.learner.gamma, config.env.sticky, config.total_steps) == (0.9, 0.25, 200_000)


@pytest.mark.parametrize(
    ("method", "preset"), [*itertools.product(LEARNT, PRESETS), *((method, "default") for method in ARCHIVES)]
)
def test_a_configuration_round_trips_through_json(method: str, preset: str, tmp_path: Path) -> None:
    config = make_config("hero", method, {"seed": 3, "learner": {"gamma": 0.9}}, preset)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_dict()))
    settings = load_config(path)
    assert make_config(settings.pop("game"), settings.pop("method"), settings) == config


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("nosuch=1", "'nosuch'"),
        ("learner.gama=1", "closest: learner.gamma"),
        ("learner.gamma=much", "learner.gamma .*'much'"),
        ("seed=1.5", "seed .*'1.5'"),
        ("learner=3", "learner.*learner.gamma"),
        ("env.sticky=2", "env.sticky .* 2"),
        ("gamma", "--set"),
        ("=1", "--set"),
    ],
)
@pytest.mark.parametrize("method", ["a2c", "ppo"])
def test_bad_settings_are_said_by_name(method: str, assignment: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        configure(assignment, method=method)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "assignment", "message"),
    [
        ("a2c", "learner.clip_range=0.2", "'learner.clip_range'"),
        ("ppo", "learner.rmsprop_alpha=0.9", "'learner.rmsprop_alpha'"),
        ("ppo", "learner.gae_lambda=2", "learner.gae_lambda .*2"),
        ("ppo", "learner.num_minibatches=99999", "num_minibatches.* 1024 "),
        ("ppo", "learner.two_value_heads=true", "two_value_heads.* ppo "),
        ("ppo", "learner.two_value_heads=maybe", "two_value_heads .*true"),
        ("ppo+coex", "bonus.adm.minibatch=0", "bonus.adm.minibatch .*0"),
        ("a2c+rnd", "bonus.predictor.keep=2", "bonus.predictor.keep .*2"),
        ("a2c+icm", "bonus.forward_share=-1", "bonus.forward_share .*-1"),
        ("a2c+curiosity", "bonus.features=learned", "bonus.features .*inverse, random"),
        ("a2c+noveld", "bonus.bits=100", "bonus.bits .*64.*100"),
        ("a2c+e3b", "bonus.ridge=0", "bonus.ridge .*0"),
        ("a2c+coex-e3b", "bonus.e3b.ridge=nan", "bonus.e3b.ridge .*nan"),
        ("a2c+phi-eb", "bonus.tiles=5", "bonus.tiles .*84.*5"),
        ("a2c+cts", "bonus.levels=3", "bonus.levels .*3"),
        ("a2c+ae-simhash", "bonus.code=100", "bonus.code .*64.*100"),
        ("a2c+ae-simhash", "bonus.minibatch=1", "bonus.minibatch .*2.*1"),  # it is normalised over
        ("a2c+pixelcnn", "bonus.chunk=0", "bonus.chunk .*0"),
    ],
)
def test_each_learner_and_bonus_has_settings_of_its_own(method: str, assignment: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        configure(assignment, method=method)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "number"), [("200000", 200_000), ("200_000", 200_000), ("2e5", 200_000), (7, 7)])
def test_whole_numbers_are_read_as_people_write_them(text: object, number: int) -> None:
    assert parse_int(text) == number


@pytest.mark.parametrize("text", ["1.5", "x", "", True, None, "nan", "inf"])
def test_other_things_are_no_whole_numbers(text: object) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        parse_int(text)


@pytest.mark.parametrize(
    ("content", "message"), [("{", "not JSON"), ("[]", "not a run's"), ('{"game": 1}', "not a run's")]
)
def test_a_file_that_is_no_configuration_is_said(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(UsageError, match=message):
        load_config(tmp_path / "config.json")
    with pytest.raises(UsageError, match="cannot read"):
        load_config(tmp_path / "none.json")
