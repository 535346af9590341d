"""The example in one file against the library, on the same rollouts and with the same weights."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from coex.bonuses import BonusContext  # before torch: `coex` sets how its threads wait before it is loaded
from coex.config.bonuses import ADMConfig, ClusterConfig, CoexConfig
from coex.config.learners import A2CConfig, RewardConfig
from coex.config.presets import make_config
from coex.config.run import RunConfig
from coex.envs.atari import AtariGame
from coex.envs.game_config import GameConfig
from coex.learners.a2c import A2C, a2c_loss
from coex.learners.batch import make_batch, make_rewards
from coex.learners.networks import ActorCritic
from coex.learners.returns import rollout_returns
from coex.method.adm import adm_losses, changed_cells, propensity_weights
from coex.method.bonus import CoexBonus
from coex.method.rooms import RoomClusters
from coex.rollouts.rollout import Rollout

import torch  # isort: skip

FILE = Path(__file__).parent.parent / "examples" / "coex_a2c.py"
ACTIONS, TOTAL_STEPS = 18, 1_000
MakeRollout = Callable[..., Rollout]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coex_a2c", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return make_config("montezuma", "a2c+coex", {"total_steps": TOTAL_STEPS})


def make_explorers(example: ModuleType, config: RunConfig) -> tuple[Any, CoexBonus]:
    """With the same ADM: sharper attention than at the start, so that not all cells have some."""
    torch.manual_seed(0)
    context = BonusContext(config.game, ACTIONS, np.random.SeedSequence(0), torch.device("cpu"))
    theirs, ours = CoexBonus(config.bonus, context), example.Explorer(ACTIONS)
    assert theirs.encoder.locator is not None
    model = theirs.encoder.locator.model
    with torch.no_grad():
        model.attention_head[-1].weight.mul_(10)
    ours.adm.load_state_dict(model.state_dict())
    return ours, theirs


def make_learners(example: ModuleType, config: RunConfig) -> tuple[Any, A2C]:
    torch.manual_seed(1)
    assert isinstance(config.learner, A2CConfig)
    network = ActorCritic(ACTIONS, centred=config.learner.centre_observations)
    with torch.no_grad():
        network.policy.weight.mul_(30)  # not the uniform policy of the start
    ours, theirs = example.A2C(ACTIONS, TOTAL_STEPS), A2C(network, config.learner, config.schedule_steps)
    ours.network.load_state_dict({k: v for k, v in network.state_dict().items() if k != "frames_seen"})
    return ours, theirs


def assert_same_gradients(ours: torch.nn.Module, theirs: torch.nn.Module, precision: float) -> None:
    gradients = {name: parameter.grad for name, parameter in ours.named_parameters()}
    expected = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    assert gradients.keys() == expected.keys()
    largest = max(gradient.abs().max().item() for gradient in expected.values())
    for name, gradient in expected.items():
        # To the rounding of what was added up; the attention's last bias, which changes nothing, has nothing else.
        atol = precision * (gradient.abs().max().item() + 0.01 * largest)
        torch.testing.assert_close(gradients[name], gradient, rtol=precision, atol=atol, msg=name)


@pytest.fixture
def _double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_it_is_short_and_stands_alone() -> None:
    text = FILE.read_text()
    assert len(text.splitlines()) <= 400
    assert "import coex" not in text
    assert "from coex" not in text


def test_its_settings_are_the_defaults(example: ModuleType, config: RunConfig) -> None:
    assert config.num_envs == example.NUM_ENVS
    assert config.reward == RewardConfig(example.EXTRINSIC_WEIGHT, example.BONUS_WEIGHT)
    assert config.env == GameConfig(
        frame_skip=example.FRAME_SKIP,
        max_noops=example.MAX_NOOPS,
        max_episode_frames=example.MAX_FRAMES,
        stagger=example.STAGGER,
    )
    assert config.learner == A2CConfig(
        num_steps=example.NUM_STEPS,
        gamma=example.GAMMA,
        gae_lambda=example.LAMBDA,
        optimizer="adam",
        learning_rate=example.LEARNING_RATE,
        adam_epsilon=example.ADAM_EPSILON,
        entropy_weight=example.ENTROPY_WEIGHT,
        log_entropy=True,
        value_weight=example.VALUE_WEIGHT,
        max_grad_norm=example.MAX_GRAD_NORM,
        normalise_rewards=True,
        normalise_advantages=True,
        centre_observations=True,
    )
    adm = ADMConfig(
        entropy_weight=example.ADM_ENTROPY_WEIGHT,
        learning_rate=example.ADM_LEARNING_RATE,
        joystick=True,
        propensity_clip=example.PROPENSITY_CLIP,
        min_policy_entropy=example.MIN_POLICY_ENTROPY,
        contrast=example.CONTRAST,
        leak=example.LEAK,
        found_at=example.FOUND_AT,
        found_by=example.FOUND_BY,
        pixel_mean=example.PIXEL_MEAN,
        pixel_std=example.PIXEL_STD,
    )
    clusters = ClusterConfig(example.TAU, example.EMBEDDING, example.PROJECTION_SCALE)
    assert config.bonus == CoexConfig(state="xycR", adm=adm, clusters=clusters)


def test_the_game_looks_and_plays_alike(example: ModuleType, config: RunConfig) -> None:
    theirs = AtariGame("Breakout", config.env, np.random.SeedSequence(5))
    ours = example.Game("breakout", np.random.SeedSequence(5))
    assert len(theirs.action_names) == len(ours.actions)
    views = {name: np.zeros(picture.shape, np.uint8) for name, picture in ours.pictures.items()}
    generator, fresh, num_ends = np.random.default_rng(0), True, 0
    theirs.reset()
    for _ in range(600):
        theirs.paint(views, fresh)
        for name, view in views.items():
            assert np.abs(view.astype(int) - ours.pictures[name].numpy()).max() <= 1, name  # rounding
        action = int(generator.integers(len(ours.actions)))
        reward, _, terminated, ended = ours.step(action)
        assert theirs.step(action) == (reward, terminated, ended and not terminated)
        fresh = ended
        if ended:
            num_ends += 1
            ours.reset()
            theirs.reset()
    assert num_ends >= 2


def test_bonuses_are_the_librarys(example: ModuleType, config: RunConfig, make_rollout: MakeRollout) -> None:
    ours, theirs = make_explorers(example, config)
    ends = 0
    for seed in range(4):
        rollout = make_rollout(seed, actions=ACTIONS)
        ends += len(rollout.final_index)
        bonus, states = ours.reward(rollout)
        rewarded = theirs.reward(rollout)
        expected = np.stack([rewarded.states[letter].ravel() for letter in "xycR"], axis=-1)
        assert np.array_equal(np.array(states), expected)
        torch.testing.assert_close(bonus, rewarded.bonus)
        torch.testing.assert_close(ours.looked[2], rewarded.memo.attention, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(ours.carried, theirs.encoder.locator._carried, rtol=1e-4, atol=1e-5)
        assert (rewarded.memo.attention == 0).any()
    assert ends
    rooms = theirs.encoder.rooms
    assert rooms is not None
    assert len(rooms) == len(ours.rooms.sizes) > 1
    assert np.array_equal(rooms._sizes, ours.rooms.sizes)
    assert np.array_equal(rooms._sums, ours.rooms.sums)
    keys = np.array(list(ours.visits))
    assert len(theirs.counts) == len(keys) < 60
    assert np.array_equal(theirs.counts.lookup(keys), list(ours.visits.values()))


@pytest.mark.usefixtures("_double")  # differences are made 300 times as large: so is their rounding
def test_the_adms_losses_are_the_librarys(example: ModuleType, config: RunConfig, make_rollout: MakeRollout) -> None:
    ours, theirs = make_explorers(example, config)
    locator = theirs.encoder.locator
    assert locator is not None
    for seed in range(3):
        rollout = make_rollout(seed, actions=ACTIONS)
        rollout.log_probs *= 1.6  # some of the weights are cut
        ours.reward(rollout)
        rewarded = theirs.reward(rollout)
        memo = rewarded.memo
        cells = changed_cells(memo.previous, memo.current)
        assert cells.any()
        assert not cells.all()
        logits = locator.model.cell_logits(memo.previous, memo.current)
        weights = propensity_weights(rollout.log_probs, ACTIONS, config.bonus.adm.propensity_clip)
        losses = adm_losses(logits, memo.attention, rollout.actions, config.bonus.adm, weights, cells=cells)
        torch.testing.assert_close(ours.adm.loss(*ours.looked, rollout)[0], losses.total)
        loss, metrics = ours.learn(rollout), theirs.update(rollout, rewarded)
        assert loss == pytest.approx(metrics["adm/loss"])
        assert ours.skill == pytest.approx(metrics["adm/skill"])
        assert metrics["adm/learns"]
        assert_same_gradients(ours.adm, locator.model, 1e-6)
        assert not ours.has_found
        assert not theirs.ready


def test_the_adm_waits_as_the_librarys(example: ModuleType, config: RunConfig, make_rollout: MakeRollout) -> None:
    """A policy that is sure of its actions teaches nothing; one that waits begins once the player is found."""
    ours, theirs = make_explorers(example, config)
    locator = theirs.encoder.locator
    assert locator is not None
    before = [parameter.clone() for parameter in ours.adm.parameters()]
    rollout = make_rollout(0, actions=ACTIONS)
    rollout.log_probs *= 0.1
    for skill in (1.2, 1.6):
        ours.skill = locator._skill = skill
        ours.reward(rollout)
        ours.learn(rollout)
        assert not theirs.update(rollout, theirs.reward(rollout))["adm/learns"]
        assert all(map(torch.equal, before, ours.adm.parameters()))
        assert ours.has_found == theirs.ready == (skill > example.FOUND_AT)


def test_rooms_are_the_librarys(example: ModuleType) -> None:
    """Pictures about τ apart: near ones join a cluster, which moves, and others found one."""
    generator = torch.Generator().manual_seed(0)
    wall, other = torch.randint(256, (2, 84, 84, 3), generator=generator)
    shares = torch.rand((200, 1, 1, 1), generator=generator)
    frames = (wall + shares * (other - wall)).to(torch.uint8)  # (200, 84, 84, 3)
    ours, theirs = example.Rooms(), RoomClusters()
    names = theirs.assign(theirs.embed(frames))
    assert ours.assign(frames) == names.tolist()
    assert 2 <= names.max() < 50
    assert np.array_equal(ours.sums / ours.sizes[:, None], theirs.centres)


def test_returns_and_loss_are_the_librarys(example: ModuleType, config: RunConfig, make_rollout: MakeRollout) -> None:
    ours, theirs = make_learners(example, config)
    learner = config.learner
    assert isinstance(learner, A2CConfig)
    rollout = make_rollout(3, actions=ACTIONS)
    assert rollout.terminated.any()
    assert rollout.truncated.any()
    returns = rollout_returns(rollout, rollout.rewards, learner.gamma, learner.gae_lambda)
    torch.testing.assert_close(example.lambda_returns(rollout, rollout.rewards), returns)
    advantages = returns - rollout.values
    loss = example.a2c_loss(ours.network, rollout, returns, advantages)
    expected, _ = a2c_loss(theirs.network, make_batch(rollout, returns[..., None], advantages), learner)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    assert_same_gradients(ours.network, theirs.network, 1e-4)


def test_updates_are_the_librarys(example: ModuleType, config: RunConfig, make_rollout: MakeRollout) -> None:
    """Clipping and scaling of rewards and advantages, the mean picture, the held policy, the falling rate."""
    ours, theirs = make_learners(example, config)
    for index in range(4):
        rollout = make_rollout(index, actions=ACTIONS)
        bonus = torch.rand(rollout.actions.shape, generator=torch.Generator().manual_seed(index))
        rewards = make_rewards(rollout.rewards, bonus, config.reward)
        # Adam's steps have the size of the rate wherever a gradient is nothing but rounding: start alike every time.
        ours.network.load_state_dict({k: v for k, v in theirs.network.state_dict().items() if k != "frames_seen"})
        steps_done = index * rollout.num_transitions
        loss = ours.update(rollout, bonus, hold_policy=index == 2)
        metrics = theirs.update(rollout, rewards, steps_done, hold_policy=index == 2)
        theirs.network.update_mean_frame(rollout.views["policy"][:-1])
        entropy = torch.tensor(metrics["entropy"])
        most = float(np.log(ACTIONS))
        expected = metrics["policy_loss"] + config.learner.value_weight * metrics["value_loss"]
        expected -= config.learner.entropy_weight * most**2 / float(np.log(3)) * (entropy / most).log().item()
        assert loss == pytest.approx(expected, rel=1e-4)
        assert_same_gradients(ours.network, theirs.network, 1e-4)
        assert ours.optimizer.param_groups[0]["lr"] == pytest.approx(metrics["learning_rate"])
        torch.testing.assert_close(ours.network.mean, theirs.network.mean)
    for parameter, expected in zip(ours.network.parameters(), theirs.network.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected, rtol=1e-3, atol=1e-4)


def test_it_runs() -> None:
    command = [sys.executable, str(FILE), "--steps", "400"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "step 400: " in result.stdout
