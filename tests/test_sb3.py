"""The bonus in Stable-Baselines3: what is easily got wrong, one by one, on a small world and on Atari."""

import copy
import functools
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import coex  # before torch: `coex` sets how its threads wait before it is loaded

import cv2  # isort: skip
import gymnasium
import numpy as np
import pytest
import sb3_contrib as contrib
import stable_baselines3 as sb3
import torch
from gymnasium import spaces
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecMonitor, VecNormalize

from coex import CoexConfig, UsageError
from coex.bonuses import BonusContext
from coex.core.threads import one_thread
from coex.method.bonus import CoexBonus
from coex.rollouts.rollout import Transitions
from coex.sb3 import CoexCallback, CoexCheckpointCallback, with_frames

SIDE = 40
PPO = {"n_steps": 12, "batch_size": 12, "n_epochs": 1, "seed": 0, "device": "cpu", "gamma": 0.9, "gae_lambda": 0.8}


class Walk(gymnasium.Env[np.ndarray, int]):
    """A walker of two actions on eight places; its games end at the right end, or by the clock after nine steps."""

    observation_space = spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
    action_space = spaces.Discrete(2)
    games = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = self.steps = 0
        self.games += 1
        return self._picture(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.place = max(0, self.place + 2 * int(action) - 1)
        self.steps += 1
        won = self.place == 3
        return self._picture(), 500.0 * won + 1.0, won, self.steps == 9, {}

    def _picture(self) -> np.ndarray:
        picture = np.full((SIDE, SIDE, 3), 20 * (self.games % 3), np.uint8)
        picture[16:24, 5 * self.place : 5 * self.place + 5] = (250, 200, 150)
        return picture


class Squeezed(gymnasium.Wrapper):
    """What a user might do for the policy: nothing of the picture is left, nor of the reward or the reset's info."""

    def __init__(self, env: gymnasium.Env, clip: bool = True) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(-1, 1, (8,), np.float32)
        self._clip = clip

    def _squeeze(self, picture: np.ndarray) -> np.ndarray:
        return (picture[20, ::5, 0] / 128 - 1).astype(np.float32)

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        return self._squeeze(self.env.reset(**kwargs)[0]), {}

    def step(self, action: int) -> Any:
        picture, reward, terminated, truncated, info = self.env.step(action)
        return self._squeeze(picture), np.sign(reward) if self._clip else reward, terminated, truncated, info

    def action_masks(self) -> np.ndarray:
        return np.array([True, True])


class SpyBuffer(RolloutBuffer):
    """Keeps the rewards from which returns are computed."""

    seen: list[np.ndarray]

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: np.ndarray) -> None:
        vars(self).setdefault("seen", []).append(self.rewards.copy())
        self.last = last_values.detach().cpu().numpy().ravel(), np.asarray(dones, float)
        super().compute_returns_and_advantage(last_values, dones)
        names = ("values", "episode_starts", "advantages", "returns")  # a learner flattens them afterwards
        self.then = {name: getattr(self, name).copy() for name in names}


class Recorder(BaseCallback):
    """Writes down, by its own way through the wrappers, what a rollout was."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        names = ("infos", "dones", "actions", "log_probs", "rewards")
        self.rows.append({name: np.copy(self.locals[name]) for name in names if name != "log_probs"})
        self.rows[-1]["log_probs"] = self.locals["log_probs"].cpu().numpy().copy()
        env = self.training_env.unwrapped
        self.rows[-1]["now"] = [frames.coex_now()["views"] for frames in env.envs]
        return True


def make_env(num_envs: int = 2, **kwargs: Any) -> Any:
    return make_vec_env(Walk, num_envs, wrapper_class=with_frames(Squeezed), **kwargs)


def callback(**kwargs: Any) -> CoexCallback:
    return CoexCallback(**({"config": {"adm": {"found_by": 0}}} | kwargs))


def rebuild(first: list[dict[str, np.ndarray]], rows: list[dict[str, Any]]) -> Transitions:
    """The rollout as `coex train` would have recorded it."""
    final = [(t, n) for t, row in enumerate(rows) for n in np.flatnonzero(row["dones"])]
    return Transitions(
        views={
            name: torch.from_numpy(np.stack([[v[name] for v in views] for views in [first, *(r["now"] for r in rows)]]))
            for name in ("rgb160", "rgb84")
        },
        actions=torch.from_numpy(np.stack([row["actions"].ravel() for row in rows])),
        log_probs=torch.from_numpy(np.stack([row["log_probs"] for row in rows])),
        scores=torch.tensor([[info["coex"]["score"] for info in row["infos"]] for row in rows], dtype=torch.float64),
        final_index=torch.tensor(final, dtype=torch.int64).reshape(-1, 2),
        final_views={
            name: torch.from_numpy(np.stack([rows[t]["infos"][n]["coex"]["views"][name] for t, n in final]))
            for name in ("rgb160", "rgb84")
        },
    )


def gae(rewards: np.ndarray, values: np.ndarray, starts: np.ndarray, last: Any, gamma: float, lam: float) -> np.ndarray:
    """Generalised advantage estimation in its textbook form, one environment at a time."""
    last_values, dones = last
    advantages = np.zeros_like(rewards, dtype=np.float64)
    for n in range(rewards.shape[1]):
        following, ends = [*values[1:, n], last_values[n]], [*starts[1:, n], dones[n]]
        deltas = [rewards[t, n] + gamma * following[t] * (1 - ends[t]) - values[t, n] for t in range(len(rewards))]
        for t in range(len(rewards)):
            weight = 1.0
            for k in range(t, len(rewards)):
                advantages[t, n] += weight * deltas[k]
                weight *= gamma * lam * (1 - ends[k])
    return advantages


def test_numbers_are_those_of_the_librarys_bonus_and_returns_contain_them() -> None:
    """The first rollouts of a PPO: pictures after the actions, true last ones, time-major order, each step once."""
    recorder, ours = Recorder(), callback(bonus_weight=0.5, seed=4)
    model = sb3.PPO("MlpPolicy", make_env(), rollout_buffer_class=SpyBuffer, **PPO)
    context = BonusContext("", 2, np.random.SeedSequence(4), torch.device("cpu"))
    model.learn(0)  # resets the environments
    first = [frames.coex_now()["views"] for frames in model.get_env().unwrapped.envs]
    theirs = None
    for _ in range(3):
        model.learn(24, callback=[recorder, ours], reset_num_timesteps=False)
        rows, recorder.rows = recorder.rows, []
        if theirs is None:
            torch.manual_seed(4)
            theirs = CoexBonus(ours.explorer.config, context)
        theirs.forget_episodes()  # every `learn` begins anew
        rollout = rebuild(first, rows)
        assert len(rollout.final_index) > 1
        with one_thread():  # as the explorer does
            rewarded = theirs.reward(rollout)
            theirs.update(rollout, rewarded)
        buffer = model.rollout_buffer
        timeouts = np.array([[info["TimeLimit.truncated"] for info in row["infos"]] for row in rows])
        plain = np.stack([row["rewards"] for row in rows])
        added = buffer.seen[-1] - plain
        np.testing.assert_allclose(added[~timeouts], 0.5 * rewarded.bonus.numpy()[~timeouts], atol=1e-6)
        then = buffer.then
        expected = gae(buffer.seen[-1], then["values"], then["episode_starts"], buffer.last, 0.9, 0.8)
        np.testing.assert_allclose(then["advantages"], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(then["returns"], expected + then["values"], rtol=1e-4, atol=1e-5)
        first = rows[-1]["now"]
    assert theirs is not None
    ours_state, theirs_state = ours.explorer.method.state_dict(), theirs.state_dict()
    for name in ("counts", "clusters"):
        assert all(np.array_equal(ours_state[name][key], theirs_state[name][key]) for key in theirs_state[name])
    weights = ours_state["locator"]["model"]
    assert all(torch.equal(weights[name], value) for name, value in theirs_state["locator"]["model"].items())


def test_last_and_first_pictures_are_of_their_own_games() -> None:
    """Three shades of wall, one a game: no pair of the model's crosses a game's end."""
    model, ours = sb3.PPO("MlpPolicy", make_env(), **PPO), callback()
    rollouts = []

    class Keep(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            rollouts.append(copy.deepcopy(ours.explorer._rollout()))

    model.learn(24, callback=[Keep(), ours])
    [rollout] = rollouts
    shades = rollout.views["rgb160"][:, :, 0, 0, 0]  # (T + 1, N)
    reached = rollout.next_view("rgb160")[:, :, 0, 0, 0]
    assert torch.equal(shades[:-1], reached)
    ends = rollout.final_index
    assert len(ends) > 1
    assert (shades[ends[:, 0] + 1, ends[:, 1]] != reached[ends[:, 0], ends[:, 1]]).all()
    assert (rollout.views["rgb160"][ends[:, 0] + 1, ends[:, 1], 80, 10, 0] == 250).all()  # at the left again


def test_the_score_is_the_games_own_and_rewards_are_left_alone_but_for_the_bonus() -> None:
    """Clipped and normalised rewards: R counts what the game gave, and the bonus comes on top, as it is."""
    recorder, ours = Recorder(), callback(bonus_weight=2.0)
    env = VecNormalize(VecMonitor(make_env()), gamma=0.9)
    model = sb3.PPO("MlpPolicy", env, rollout_buffer_class=SpyBuffer, **PPO)
    bonuses: list[np.ndarray] = []
    states: list[Any] = []
    add = ours._add_bonus
    ours._add_bonus = lambda: (bonuses.append(ours.explorer.bonus()), states.append(ours.explorer.states()), add())[-1]  # type: ignore
    model.learn(24, callback=[recorder, ours])
    timeouts = np.array([[info["TimeLimit.truncated"] for info in row["infos"]] for row in recorder.rows])
    plain = np.stack([row["rewards"] for row in recorder.rows])
    added = model.rollout_buffer.seen[0] - plain
    np.testing.assert_allclose(added[~timeouts], 2 * bonuses[0][~timeouts], atol=1e-5)
    assert states[0]["R"].max() >= 503  # 500 for the goal and 1 a step, though the learner saw signs
    assert np.abs(plain).max() <= 10
    assert timeouts.any()  # there the learner adds a value of its own to the rewards: R knows nothing of it
    assert (states[0]["R"][timeouts] == 9).all()


@pytest.mark.parametrize("learner", ["PPO", "A2C", "RecurrentPPO", "MaskablePPO"])
def test_learners(learner: str) -> None:
    kind = getattr(sb3, learner, None) or getattr(contrib, learner)
    settings = {"n_steps": 8, "seed": 0, "device": "cpu"} | (
        {} if learner == "A2C" else {"batch_size": 8, "n_epochs": 1}
    )
    policy = "MlpLstmPolicy" if learner == "RecurrentPPO" else "MlpPolicy"
    model, ours = kind(policy, make_env(), **settings), callback(bonus_weight=3.0, seed=1)
    rewards: list[np.ndarray] = []
    add = ours._add_bonus

    def spy() -> None:
        rewards.append(model.rollout_buffer.rewards.copy())
        add()
        rewards.append(model.rollout_buffer.rewards.copy())
        rewards.append(ours.explorer.bonus())

    ours._add_bonus = spy  # type: ignore[method-assign]
    model.learn(48, callback=ours)
    assert len(rewards) == 9
    for before, after, bonus in zip(*[iter(rewards)] * 3, strict=True):
        np.testing.assert_allclose(after - before, 3 * bonus, atol=1e-4)
        assert (bonus > 0).all()
    assert ours.explorer.steps_done == 48
    assert "compute_returns_and_advantage" not in vars(model.rollout_buffer)  # the learner is as it was


def test_worker_processes_send_each_first_picture_once() -> None:
    threads = cv2.getNumThreads()
    cv2.setNumThreads(0)  # a fork, which is quick, has none of OpenCV's threads
    env = make_env(vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "fork"})
    here = make_env()
    try:
        sizes: list[int] = []

        class Size(BaseCallback):
            def _on_step(self) -> bool:
                infos, dones = self.training_env.unwrapped.reset_infos, self.locals["dones"]
                sizes.extend("coex" in info for info, done in zip(infos, dones, strict=True) if not done)
                return True

        ours, theirs = callback(), callback()
        sb3.PPO("MlpPolicy", env, **PPO).learn(48, callback=[ours, Size()])
        sb3.PPO("MlpPolicy", here, **PPO).learn(48, callback=theirs)
        assert not any(sizes)
        assert ours.explorer.method.snapshot() == theirs.explorer.method.snapshot()
        keys = theirs.explorer.method.counts.state_dict()
        assert all(np.array_equal(ours.explorer.method.counts.state_dict()[name], part) for name, part in keys.items())
    finally:
        env.close()
        cv2.setNumThreads(threads)


def atari(game: str, num_envs: int = 1, **kwargs: Any) -> Any:
    return make_vec_env(
        f"ALE/{game}-v5",
        num_envs,
        seed=0,
        env_kwargs={"frameskip": 1},
        wrapper_class=with_frames(AtariWrapper),
        **kwargs,
    )


def test_atari_through_its_usual_wrappers() -> None:
    """Colour and score from inside; a lost life is a boundary, and the score goes on over it."""
    env = atari("Seaquest")
    env.reset()
    tap = env.envs[0].get_wrapper_attr("_tap")
    lives, scores, ends = [], [], []
    for step in range(700):
        raw_before = tap.score
        _, reward, done, [info] = env.step(np.array([step % 18]))
        shown = info["coex"]
        assert abs(reward[0]) <= 1
        if done[0]:
            assert "coex" in env.reset_infos[0]
        else:
            np.testing.assert_array_equal(shown["views"]["rgb160"], env.envs[0].coex_now()["views"]["rgb160"])
        assert shown["score"] >= raw_before
        lives.append(info["lives"])
        scores.append(shown["score"])
        ends.append(bool(done[0]))
    game_overs = [t for t in range(700) if ends[t] and lives[t] == 0]
    lost_lives = [t for t in range(699) if ends[t] and lives[t] > 0]
    assert game_overs
    assert lost_lives
    assert all(scores[t + 1] >= scores[t] for t in lost_lives)
    assert all(scores[t + 1] < scores[t] or scores[t] == 0 for t in game_overs if t + 1 < 700)
    assert max(scores) >= 20  # unclipped: 20 a fish


def test_an_atari_picture_is_the_brighter_of_the_last_two_frames() -> None:
    env = gymnasium.make("ALE/Seaquest-v5", frameskip=1)
    wrapped = with_frames(AtariWrapper)(env)
    wrapped.reset(seed=0)
    tap = wrapped.get_wrapper_attr("_tap")
    shown: list[np.ndarray] = []
    step = tap.env.step

    def spy(action: Any) -> Any:
        answer = step(action)
        shown.append(answer[0])
        return answer

    tap.env.step = spy
    for _ in range(150):
        *_, terminated, truncated, info = wrapped.step(1)
        brighter = np.maximum(*shown[-2:])
        expected = cv2.resize(brighter, (160, 160), interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(info["coex"]["views"]["rgb160"], expected)
        if terminated or truncated:
            break
    env.close()


def test_evaluation_is_not_counted() -> None:
    model, ours = sb3.PPO("MlpPolicy", make_env(), **PPO), callback()
    evaluate = EvalCallback(make_env(1), eval_freq=4, n_eval_episodes=2, verbose=0)
    model.learn(48, callback=[evaluate, ours])
    assert ours.explorer.steps_done == 48
    assert int(ours.explorer.method.counts.state_dict()["counts"].sum()) == 48


def test_a_second_learn_goes_on_and_one_without_the_callback_is_plain() -> None:
    model, ours = sb3.PPO("MlpPolicy", make_env(), rollout_buffer_class=SpyBuffer, **PPO), callback()
    model.learn(24, callback=ours)
    model.learn(24, callback=ours, reset_num_timesteps=False)
    assert ours.explorer.steps_done == 48
    recorder = Recorder()
    model.learn(24, callback=recorder, reset_num_timesteps=False)
    timeouts = np.array([[info["TimeLimit.truncated"] for info in row["infos"]] for row in recorder.rows])
    plain = np.stack([row["rewards"] for row in recorder.rows])
    np.testing.assert_array_equal(model.rollout_buffer.seen[-1][~timeouts], plain[~timeouts])
    assert ours.explorer.steps_done == 48


def test_checkpoints_hold_model_and_explorer_and_go_on(tmp_path: Path) -> None:
    model, ours = sb3.PPO("MlpPolicy", make_env(), **PPO), callback(bonus_weight=0.7)
    model.learn(48, callback=[ours, CoexCheckpointCallback(ours, 12, str(tmp_path), name_prefix="walk")])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "walk_24_steps.zip", "walk_48_steps.zip", "walk_coex_24_steps", "walk_coex_48_steps",
    ]  # fmt: skip
    # A checkpoint comes before its rollout is counted, as it comes before the model learns from it.
    restored = CoexCallback.load(tmp_path / "walk_coex_48_steps", bonus_weight=0.7)
    assert restored.explorer.method.snapshot()["counts/states"] > 0
    assert int(restored.explorer.method.counts.state_dict()["counts"].sum()) == 24
    resumed = sb3.PPO.load(tmp_path / "walk_48_steps.zip", env=make_env(), device="cpu")
    resumed.learn(24, callback=restored, reset_num_timesteps=False)
    assert int(restored.explorer.method.counts.state_dict()["counts"].sum()) == 48
    ours.save(tmp_path / "end")
    again = CoexCallback.load(tmp_path / "end")
    assert again.explorer.method.snapshot() == ours.explorer.method.snapshot()


def test_nothing_is_added_before_the_player_is_found() -> None:
    model = sb3.PPO("MlpPolicy", make_env(), rollout_buffer_class=SpyBuffer, **PPO)
    waiting = CoexCallback(config={"adm": {"found_at": 99.0, "found_by": 48}}, bonus_weight=1.0)
    recorder = Recorder()
    model.learn(72, callback=[recorder, waiting])
    timeouts = np.array([[info["TimeLimit.truncated"] for info in row["infos"]] for row in recorder.rows])
    plain = np.stack([row["rewards"] for row in recorder.rows])
    added = (np.concatenate(model.rollout_buffer.seen) - plain) * ~timeouts
    assert (added[:24] == 0).all()
    assert (added[24:][~timeouts[24:]] > 0).all()


def test_memory_is_used_again() -> None:
    model, ours = sb3.PPO("MlpPolicy", make_env(), **PPO), callback()
    model.learn(24, callback=ours)
    first = {name: rows.ctypes.data for name, rows in ours.explorer._rows.items()}
    model.learn(72, callback=ours)
    assert {name: rows.ctypes.data for name, rows in ours.explorer._rows.items()} == first
    pictures = sum(rows[0, 0].nbytes for rows in ours.explorer._rows.values())
    assert pictures == 160 * 160 * 3 + 84 * 84 * 3
    assert sum(rows.nbytes for rows in ours.explorer._rows.values()) <= 2 * (12 + 1) * 2 * pictures


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="DQN has no rollouts"):
        sb3.DQN("MlpPolicy", make_env(1), device="cpu", buffer_size=100).learn(1, callback=callback())
    pendulum = sb3.PPO("MlpPolicy", make_vec_env("Pendulum-v1", 2, wrapper_class=with_frames()), **PPO)
    with pytest.raises(UsageError, match="only discrete"):
        pendulum.learn(1, callback=callback())
    with pytest.raises(UsageError, match="with_frames"):
        sb3.PPO("MlpPolicy", make_vec_env(Walk, 2, wrapper_class=Squeezed), **PPO).learn(1, callback=callback())
    with pytest.raises(UsageError, match="frameskip=1"):
        make_vec_env("ALE/Freeway-v5", 1, wrapper_class=with_frames(AtariWrapper))
    with pytest.raises(UsageError, match="no RGB picture"):
        make_vec_env("CartPole-v1", 1, wrapper_class=with_frames(), env_kwargs={"render_mode": None})
    with pytest.raises(UsageError, match="for 2 environments of 2 actions, not 3 of 2"):
        sb3.PPO("MlpPolicy", make_env(3), **PPO).learn(1, callback=callback(explorer=coex.Explorer(2, 2)))
    with pytest.raises(UsageError, match="memory"):
        make_vec_env(Walk, 1, wrapper_class=with_frames(config=Ram()))
    for weight in (-1.0, float("nan")):
        with pytest.raises(UsageError, match="negative"):
            CoexCallback(bonus_weight=weight)
    with pytest.raises(UsageError, match="config takes"):
        with_frames(config=3)
    with pytest.raises(UsageError, match="no explorer yet"):
        callback().save(tmp_path / "a")
    with pytest.raises(UsageError, match="no explorer yet"):  # the callback itself was forgotten
        sb3.PPO("MlpPolicy", make_env(), **PPO).learn(24, CoexCheckpointCallback(callback(), 2, str(tmp_path)))
    with pytest.raises(UsageError, match="looks at grey52"):  # pictures for another bonus
        sb3.PPO("MlpPolicy", make_env(), **PPO).learn(24, callback=CoexCallback("simhash"))


def test_a_policy_that_waits_is_held() -> None:
    """All advantages are 0 until the player is found; returns, from which values learn, are as ever."""
    model = sb3.PPO("MlpPolicy", make_env(), rollout_buffer_class=SpyBuffer, **PPO)
    waiting = CoexCallback(config={"adm": {"found_at": 99.0, "found_by": 48}})
    model.learn(24, callback=waiting)
    buffer = model.rollout_buffer
    assert (buffer.advantages == 0).all()
    assert (buffer.then["advantages"] != 0).any()
    np.testing.assert_array_equal(buffer.returns.ravel(), buffer.then["returns"].swapaxes(0, 1).ravel())
    model.learn(48, callback=waiting, reset_num_timesteps=False)
    np.testing.assert_array_equal(buffer.advantages.ravel(), buffer.then["advantages"].swapaxes(0, 1).ravel())


@pytest.mark.parametrize("scale", [2.0**-9, 1.0, 2.0**9])
def test_the_bonus_weighs_as_much_whatever_the_scale_of_rewards(scale: float, tmp_path: Path) -> None:
    """Its unit is the largest reward so far, as the learner sees it, and is saved."""

    class Scaled(Squeezed):
        def step(self, action: int) -> Any:
            observation, reward, *rest = super().step(action)
            return observation, scale * reward, *rest

    env = make_vec_env(Walk, 2, wrapper_class=with_frames(functools.partial(Scaled, clip=False)))
    recorder, ours = Recorder(), callback(bonus_weight=0.5)
    model = sb3.PPO("MlpPolicy", env, rollout_buffer_class=SpyBuffer, **PPO)
    bonuses: list[np.ndarray] = []
    add = ours._add_bonus
    ours._add_bonus = lambda: (bonuses.append(ours.explorer.bonus()), add())[-1]  # type: ignore[method-assign]
    largest = 0.0
    for _ in range(4):
        model.learn(24, callback=[recorder, ours], reset_num_timesteps=False)
        plain = np.stack([row["rewards"] for row in recorder.rows])
        timeouts = np.array([[info["TimeLimit.truncated"] for info in row["infos"]] for row in recorder.rows])
        recorder.rows = []
        largest = max(largest, plain.max())
        added = model.rollout_buffer.seen[-1] - plain
        np.testing.assert_allclose(
            added[~timeouts] / scale, 0.5 * (largest / scale) * bonuses[-1][~timeouts], rtol=1e-3, atol=1e-3
        )
    assert largest == 501 * scale
    ours.save(tmp_path / "ours")
    assert CoexCallback.load(tmp_path / "ours").explorer.reward_unit([0.0]) == largest


class Ram(CoexConfig):
    def views(self, game: str) -> dict[str, tuple[int, ...]]:
        return {"ram": (128,)}


def test_other_bonuses_and_rendered_pictures() -> None:
    env = make_vec_env("CartPole-v1", 2, wrapper_class=with_frames(bonus="simhash"))
    ours = CoexCallback("simhash")
    sb3.A2C("MlpPolicy", VecMonitor(env), n_steps=4, device="cpu").learn(16, callback=ours)
    assert ours.explorer.steps_done == 16
    assert 0 < ours.explorer.method.snapshot()["counts/states"] <= 16
    env.close()


def test_minigrid_keeps_its_own_observations() -> None:
    pytest.importorskip("minigrid")
    from minigrid.wrappers import FlatObsWrapper

    env = make_vec_env("MiniGrid-Empty-5x5-v0", 2, wrapper_class=with_frames(FlatObsWrapper))
    observation = env.reset()
    assert observation.shape[1] > 100
    assert observation.std() > 0
    _, _, _, infos = env.step(np.array([0, 2]))
    assert (infos[0]["coex"]["views"]["rgb160"] != infos[1]["coex"]["views"]["rgb160"]).any()


def test_the_pages_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parent.parent / "docs" / "own-trainer.md"
    code = "".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[:2])
    monkeypatch.chdir(tmp_path)
    shorter = {"1_000_000": "64", "n_envs=8": "n_envs=2", "n_steps=128": "n_steps=16", "12_500": "16", "100000": "32"}
    for long, short in (shorter | {"900_000": "32"}).items():
        assert long in code, long
        code = code.replace(long, short)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, str(page), "exec"), names)
    assert names["model"].num_timesteps == 64
    assert names["coex"].explorer.method.counts.state_dict()["counts"].sum() == 32  # the first 32 were in a rollout


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "coex.sb3")
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.callbacks", None)
    with pytest.raises(ImportError, match=r"coex-rl\[sb3\]"):
        importlib.import_module("coex.sb3")
