"""Tianshou's PPO with CoEX's bonus, as a wrapper of the algorithm that adds it before returns are computed.

python examples/tianshou_with_explorer.py --steps 500000
"""

import argparse
from typing import Any

import gymnasium
import minigrid
import numpy as np
import torch
from minigrid.wrappers import ImgObsWrapper, RGBImgObsWrapper
from tianshou.algorithm import PPO
from tianshou.algorithm.algorithm_base import OnPolicyWrapperAlgorithm, TrainingStats
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, ReplayBuffer, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import ModuleWithVectorOutput
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic
from torch import Tensor, nn

import coex

GAME = "MiniGrid-DoorKey-8x8-v0"
NUM_ENVS, NUM_STEPS = 8, 128


def make_env() -> gymnasium.Env[Any, Any]:
    gymnasium.register_envs(minigrid)
    return ImgObsWrapper(RGBImgObsWrapper(gymnasium.make(GAME, highlight=False), tile_size=8))  # 64×64 pixels


class Network(ModuleWithVectorOutput):
    """(B, 64, 64, 3) bytes to (B, 256) numbers."""

    def __init__(self) -> None:
        super().__init__(256)
        self.layers = nn.Sequential(
            nn.Conv2d(3, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(64 * 6 * 6, 256), nn.ReLU(),
        )  # fmt: skip

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> tuple[Tensor, Any]:
        pictures = torch.as_tensor(np.asarray(obs), dtype=torch.float32)
        return self.layers(pictures.movedim(-1, 1) / 255.0), state


class WithExplorer(OnPolicyWrapperAlgorithm[DiscreteActorPolicy]):
    """Adds the bonus to the rewards of what was collected, before the wrapped algorithm looks at them."""

    def __init__(self, wrapped: PPO, explorer: coex.Explorer, bonus_weight: float) -> None:
        super().__init__(wrapped)
        self.explorer, self.bonus_weight = explorer, bonus_weight
        self.metrics: dict[str, float] = {}
        self._scores = np.zeros(explorer.num_envs)  # of the episodes so far

    def _preprocess_batch(self, batch: Any, buffer: ReplayBuffer, indices: np.ndarray) -> Any:
        with torch.no_grad():
            log_probs = self.policy(batch).dist.log_prob(torch.as_tensor(batch.act)).numpy()
        # One environment after the other in the buffer, each with as many steps: (N·T, …) to (T, N, …).
        count = self.explorer.num_envs

        def by_time(values: np.ndarray) -> np.ndarray:
            return values.reshape(count, -1, *values.shape[1:]).swapaxes(0, 1)

        shown, reached, rewards, ended = map(by_time, (batch.obs, batch.obs_next, batch.rew, batch.done))
        actions, chances = by_time(batch.act), by_time(log_probs)
        self.explorer.begin(shown[0])  # the buffer does not say what follows its last step
        for t in range(len(actions)):
            self._scores += rewards[t]
            following = shown[min(t + 1, len(shown) - 1)]
            self.explorer.add(
                actions[t], reached[t], ended[t], scores=self._scores, first_frames=following, log_probs=chances[t]
            )
            self._scores[ended[t]] = 0.0
        bonus = self.explorer.bonus()  # (T, N)
        batch.rew = batch.rew + self.bonus_weight * self.explorer.ready * bonus.T.ravel()
        self.metrics = self.explorer.update()
        return super()._preprocess_batch(batch, buffer, indices)

    def _wrapper_update_with_batch(
        self, batch: Batch, batch_size: int | None, repeat: int, original_stats: TrainingStats
    ) -> TrainingStats:
        return original_stats


def main(arguments: list[str] | None = None) -> WithExplorer:
    """Trains, and returns the algorithm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bonus-weight", type=float, default=0.1)
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)

    envs = DummyVectorEnv([make_env] * NUM_ENVS)
    envs.seed(options.seed)
    space = envs.action_space[0]
    policy = DiscreteActorPolicy(
        actor=DiscreteActor(preprocess_net=Network(), action_shape=space.n, softmax_output=False), action_space=space
    )
    ppo = PPO(
        policy=policy,
        critic=DiscreteCritic(preprocess_net=Network()),
        optim=AdamOptimizerFactory(lr=2.5e-4),
        max_grad_norm=0.5,
    )
    explorer = coex.Explorer(int(space.n), NUM_ENVS, seed=options.seed)
    algorithm = WithExplorer(ppo, explorer, options.bonus_weight)
    collector = Collector(algorithm, envs, VectorReplayBuffer(NUM_STEPS * NUM_ENVS, NUM_ENVS))
    algorithm.run_training(
        OnPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=options.steps,
            collection_step_num_env_steps=NUM_STEPS * NUM_ENVS,
            update_step_num_repetitions=4,
            batch_size=256,
            verbose=False,
        )
    )
    print(
        f"{algorithm.metrics['counts/states']} states, "
        f"the model guesses {algorithm.metrics['adm/accuracy']:.0%} of the actions"
    )
    return algorithm


if __name__ == "__main__":
    main()
