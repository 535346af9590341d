"""CoEX inside Stable-Baselines3: what it costs, whether it leaves four rooms, and how well it locates.

    python -m benchmarks.plugin overhead                    # steps/s with and without, about 10 minutes
    python -m benchmarks.plugin rooms --seeds 3             # MiniGrid's four rooms, 200,000 steps a run
    python -m benchmarks.plugin location                    # Montezuma's Revenge, 100,000 steps

Each writes `results/plugin/NAME.json`.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ale_py
import gymnasium
import minigrid
import numpy as np
import torch
from gymnasium import spaces
from minigrid.core.constants import OBJECT_TO_IDX, STATE_TO_IDX
from stable_baselines3 import PPO
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecNormalize

from benchmarks.machine import facts
from coex.sb3 import CoexCallback, with_frames
from coex.training.evidence import location_errors

GAME = "MontezumaRevenge"
FOUR_ROOMS, LAYOUT = "MiniGrid-MultiRoom-N4-S5-v1", 5
NUM_THINGS, NUM_STATES = len(OBJECT_TO_IDX), len(STATE_TO_IDX)  # what a square holds; how a door stands
ROOMS_WEIGHT = 0.5  # of the bonus beside a reward that VecNormalize has scaled
NUM_ENVS, NUM_STEPS = 8, 128
OUT = Path("results") / "plugin"


class OneLayout(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Episodes of one layout, of which the policy sees MiniGrid's own observation: the 7×7 squares before it."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(0, 1, (7 * 7 * (NUM_THINGS + NUM_STATES),), np.float32)

    def _observe(self, observation: dict[str, Any]) -> np.ndarray:
        things, _, states = np.moveaxis(observation["image"], -1, 0)
        kinds = [np.eye(NUM_THINGS)[things], np.eye(NUM_STATES)[states]]  # (7, 7, …) each
        return np.concatenate(kinds, axis=-1, dtype=np.float32).ravel()

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        observation, info = self.env.reset(**(kwargs | {"seed": LAYOUT}))
        return self._observe(observation), info

    def step(self, action: Any) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._observe(observation), reward, terminated, truncated, info


def atari(*, with_pictures: bool) -> VecEnv:
    gymnasium.register_envs(ale_py)
    wrapper = with_frames(AtariWrapper) if with_pictures else AtariWrapper
    env = make_vec_env(f"ALE/{GAME}-v5", NUM_ENVS, seed=0, env_kwargs={"frameskip": 1}, wrapper_class=wrapper)
    return VecFrameStack(env, 4)


def four_rooms(seed: int) -> VecEnv:
    gymnasium.register_envs(minigrid)
    env = make_vec_env(FOUR_ROOMS, NUM_ENVS, seed=seed, wrapper_class=with_frames(OneLayout))
    return VecNormalize(env, norm_obs=False)


def make_ppo(env: VecEnv, seed: int, policy: str = "CnnPolicy", **others: Any) -> PPO:
    settings: dict[str, Any] = {"n_steps": NUM_STEPS, "batch_size": 256, "n_epochs": 4, "ent_coef": 0.01, **others}
    return PPO(policy, env, seed=seed, device="cpu", **settings)


def measure_overhead(repeats: int, rollouts: int) -> dict[str, Any]:
    """Returns steps/s with and without the bonus, by turns, by the clock and by the processor's time."""
    rates: dict[str, list[dict[str, float]]] = {"plain": [], "coex": []}
    steps = rollouts * NUM_ENVS * NUM_STEPS
    for _ in range(repeats):
        for name, found in rates.items():
            env = atari(with_pictures=name == "coex")
            model = make_ppo(env, seed=0)
            callback = CoexCallback() if name == "coex" else None
            model.learn(NUM_ENVS * NUM_STEPS, callback=callback)  # the first is slower
            clock, processor = time.perf_counter(), time.process_time()
            model.learn(steps, callback=callback, reset_num_timesteps=False)
            found.append(
                {
                    "clock": steps / (time.perf_counter() - clock),
                    "processor": steps / (time.process_time() - processor),
                }
            )
            env.close()
            print(name, found[-1], flush=True)
    medians = {
        f"{name}_{kind}": float(np.median([rate[kind] for rate in found]))
        for name, found in rates.items()
        for kind in ("clock", "processor")
    }
    ratios = {f"ratio_{kind}": medians[f"coex_{kind}"] / medians[f"plain_{kind}"] for kind in ("clock", "processor")}
    return {"repeats": repeats, "steps": steps, **medians, **ratios}


class Goals(BaseCallback):
    """Writes down when episodes ended, and with what return."""

    def __init__(self) -> None:
        super().__init__()
        self.episodes: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.episodes.append((self.num_timesteps, float(info["episode"]["r"])))
        return True


def falling_rate(rest: float) -> float:
    """Returns the learning rate for the share of the run that is left: as `coex train` has it outside Atari."""
    return 1e-3 * rest


def leave_four_rooms(seeds: range, steps: int, write: Callable[[dict[str, Any]], None]) -> None:
    """Writes, after every run, how often the goal was reached in the last tenth of its steps and on the way there."""
    rows: list[dict[str, Any]] = []
    for seed in seeds:
        for name in ("coex", "plain"):
            env, goals = four_rooms(seed), Goals()
            coex = (
                [CoexCallback(config={"state": "xy"}, bonus_weight=ROOMS_WEIGHT, seed=seed)] if name == "coex" else []
            )
            model = make_ppo(env, seed, "MlpPolicy", learning_rate=falling_rate, target_kl=0.03)
            model.learn(steps, callback=[goals, *coex])
            env.close()
            bins = np.linspace(0, steps, 21)[1:]
            ends = np.array([step for step, _ in goals.episodes])
            reached = np.array([score > 0 for _, score in goals.episodes])
            parts = [reached[(ends > last - steps / 20) & (ends <= last)] for last in bins]
            row = {
                "learner": name,
                "seed": seed,
                "reached": float(reached[ends > 0.9 * steps].mean() if (ends > 0.9 * steps).any() else 0),
                "first_goal": int(ends[reached][0]) if reached.any() else None,
                "goals": int(reached.sum()),
                "curve": [round(float(part.mean()), 3) if len(part) else None for part in parts],
                "found": coex[0].explorer.method.snapshot() if coex else {},
            }
            rows.append(row)
            print(row, flush=True)
            write({"steps": steps, "rows": rows})


class Errors(CoexCallback):
    """Also measures where the player is found, by the console's memory."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.points: list[dict[str, float]] = []
        self._memory: list[np.ndarray] = []
        self._ended: list[np.ndarray] = []

    def _on_step(self) -> bool:
        envs = self.training_env.unwrapped.envs  # type: ignore[attr-defined]
        self._memory.append(np.stack([env.unwrapped.ale.getRAM() for env in envs]))
        self._ended.append(np.asarray(self.locals["dones"]))  # there, the memory is already the next game's
        return super()._on_step()

    def _on_rollout_end(self) -> None:
        states = self.explorer.states()
        cells, memory = np.stack([states["x"], states["y"]], -1), np.stack(self._memory)
        keep = ~np.stack(self._ended)
        error = float(np.mean(location_errors(GAME, cells[keep], memory[keep])))
        self.points.append({"step": self.num_timesteps, "error": error})
        self._memory, self._ended = [], []
        super()._on_rollout_end()


def locate(steps: int) -> dict[str, Any]:
    """Returns the mean distance from the player in cells, by rollout."""
    env, callback = atari(with_pictures=True), Errors()
    make_ppo(env, seed=0).learn(steps, callback=callback)
    env.close()
    for point in callback.points[:: max(1, len(callback.points) // 20)]:
        print(point, flush=True)
    last = [point["error"] for point in callback.points if point["step"] > 0.9 * steps]
    summary = {"error_in_the_last_tenth": float(np.mean(last)), "below_one_from": below_one_from(callback.points)}
    return {"game": GAME, "steps": steps, **summary, "points": callback.points}


def below_one_from(points: list[dict[str, float]]) -> float | None:
    """Returns the step of the first rollout from which on all errors are below one cell."""
    first = None
    for point in reversed(points):
        if point["error"] >= 1.0:
            break
        first = point["step"]
    return first


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "rooms", "location"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0, help="of each run (default: as above)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rollouts", type=int, default=4)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)

    def write(found: dict[str, Any]) -> None:
        text = json.dumps({"machine": facts(), **found}, indent=1)
        (options.out / f"{options.what}.json").write_text(text + "\n")

    match options.what:
        case "overhead":
            write(measure_overhead(options.repeats, options.rollouts))
        case "rooms":
            leave_four_rooms(
                range(options.first_seed, options.first_seed + options.seeds), options.steps or 200_000, write
            )
        case _:
            write(locate(options.steps or 100_000))


if __name__ == "__main__":
    main()
