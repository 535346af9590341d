"""One training run of Stable-Baselines3, as its users would write it: prints its (step, seconds) points.

The observation, the action set, the reward and the network are those of `coex train`: 84×84 grey frames,
a stack of 4, frame skip 4 with the maximum over the last two frames, ≤30 no-ops, game over ends an episode,
clipped reward, and the network of Mnih et al. (2015).
"""

import argparse
import json
import multiprocessing
import time
from typing import Any

import ale_py
import gymnasium
import stable_baselines3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecFrameStack

# Both algorithms use `NatureCNN`, SB3's default for images.
POLICY_ARGUMENTS: dict[str, dict[str, Any]] = {
    "A2C": {"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"eps": 1e-5}},
    "PPO": {},
}


class Clock(BaseCallback):
    """Notes the time whenever a rollout starts: the update before it is then complete."""

    def __init__(self) -> None:
        super().__init__()
        self.points: list[tuple[int, float]] = []

    def _note(self) -> None:
        self.points.append((self.num_timesteps, time.perf_counter()))

    def _on_rollout_start(self) -> None:
        self._note()

    def _on_training_end(self) -> None:
        self._note()

    def _on_step(self) -> bool:
        return True


def make_environments(game: str, count: int, seed: int) -> VecEnv:
    """Emulators in one process each, preprocessed by SB3's own wrappers."""
    gymnasium.register_envs(ale_py)
    # SB3 starts its processes from a fork server: with the imports done there, once, they start in seconds.
    multiprocessing.set_forkserver_preload(["ale_py", "stable_baselines3.common.env_util"])
    emulators = make_atari_env(
        f"{game}NoFrameskip-v4",
        n_envs=count,
        seed=seed,
        wrapper_kwargs={"terminal_on_life_loss": False},
        env_kwargs={"full_action_space": False},
        vec_env_cls=SubprocVecEnv,
    )
    return VecFrameStack(emulators, n_stack=4)


def train(algorithm: str, environments: VecEnv, steps: int, **arguments: Any) -> list[tuple[int, float]]:
    """Train for `steps` agent steps over all environments; the clock's points."""
    constructor: type[BaseAlgorithm] = getattr(stable_baselines3, algorithm)
    policy_arguments = POLICY_ARGUMENTS[algorithm]
    model = constructor("CnnPolicy", environments, policy_kwargs=policy_arguments, **arguments)
    clock = Clock()
    model.learn(steps, callback=clock)
    return clock.points


def main() -> None:
    """Run once and print the points as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm", choices=sorted(POLICY_ARGUMENTS))
    parser.add_argument("--game", required=True)
    parser.add_argument("--environments", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--arguments", type=json.loads, default={}, help="constructor arguments as JSON")
    options = parser.parse_args()

    environments = make_environments(options.game, options.environments, options.seed)
    points = train(
        options.algorithm,
        environments,
        options.steps,
        seed=options.seed,
        device=options.device,
        **options.arguments,
    )
    environments.close()
    print(json.dumps(points))


if __name__ == "__main__":
    main()
