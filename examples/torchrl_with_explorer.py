"""TorchRL's PPO with CoEX's bonus, which is added before GAE.

python examples/torchrl_with_explorer.py --steps 500000
"""

import argparse

import gymnasium
import minigrid
import torch
from minigrid.wrappers import ImgObsWrapper, RGBImgObsWrapper
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torchrl.envs import ExplorationType, GymWrapper, RewardSum, SerialEnv, TransformedEnv
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import coex

GAME = "MiniGrid-DoorKey-8x8-v0"
NUM_ENVS, NUM_STEPS, NUM_EPOCHS, NUM_MINIBATCHES = 8, 128, 4, 4


def make_env() -> GymWrapper:
    gymnasium.register_envs(minigrid)
    env = ImgObsWrapper(RGBImgObsWrapper(gymnasium.make(GAME, highlight=False), tile_size=8))  # 64×64 pixels
    return GymWrapper(env, categorical_action_encoding=True)


class Network(nn.Module):
    """(…, 64, 64, 3) bytes to (…, outputs) numbers."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(64 * 6 * 6, 256), nn.ReLU(), nn.Linear(256, outputs),
        )  # fmt: skip

    def forward(self, pictures: Tensor) -> Tensor:
        leading = pictures.shape[:-3]
        return self.layers(pictures.flatten(0, -4).movedim(-1, 1) / 255.0).unflatten(0, leading)


def main(arguments: list[str] | None = None) -> coex.Explorer:
    """Trains, and returns the explorer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bonus-weight", type=float, default=0.1)
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)

    env = TransformedEnv(SerialEnv(NUM_ENVS, make_env), RewardSum())
    env.set_seed(options.seed)
    num_actions = env.action_spec.space.n
    policy = TensorDictModule(Network(num_actions), in_keys=["pixels"], out_keys=["logits"])
    actor = ProbabilisticActor(
        policy,
        in_keys=["logits"],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
        default_interaction_type=ExplorationType.RANDOM,  # outside a collector it would take the likeliest action
    )
    critic = ValueOperator(Network(1), in_keys=["pixels"])
    loss_module = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    optimizer = torch.optim.Adam(loss_module.parameters(), 2.5e-4)
    explorer = coex.Explorer(num_actions, NUM_ENVS, seed=options.seed)

    now = env.reset()
    explorer.begin(now["pixels"].numpy())
    for update in range(max(1, options.steps // (NUM_STEPS * NUM_ENVS))):
        steps = []
        with torch.no_grad():
            for _ in range(NUM_STEPS):
                # `step` holds what the actions led to, `now` the next episode's first picture where one ended.
                step, now = env.step_and_maybe_reset(actor(now))
                steps.append(step)
                explorer.add(
                    step["action"].numpy(),
                    step["next", "pixels"].numpy(),
                    step["next", "done"].squeeze(-1).numpy(),
                    scores=step["next", "episode_reward"].squeeze(-1).numpy(),
                    first_frames=now["pixels"].numpy(),
                    log_probs=step["action_log_prob"].numpy(),
                )
        rollout = torch.stack(steps, dim=1)  # (N, T)
        bonus = torch.from_numpy(explorer.bonus()).T.unsqueeze(-1)  # (N, T, 1)
        rollout["next", "reward"] += options.bonus_weight * explorer.ready * bonus
        metrics = explorer.update()

        with torch.no_grad():
            advantage(rollout)
        for _ in range(NUM_EPOCHS):
            for part in rollout.reshape(-1)[torch.randperm(rollout.numel())].chunk(NUM_MINIBATCHES):
                losses = loss_module(part)
                loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(loss_module.parameters(), 0.5)
                optimizer.step()

        ended = rollout["next", "done"]
        scores = rollout["next", "episode_reward"][ended]
        print(
            f"step {(update + 1) * NUM_STEPS * NUM_ENVS}: "
            f"{len(scores)} episodes, return {scores.sum() / max(1, len(scores)):.2f}, "
            f"{metrics['counts/states']} states, the model guesses {metrics['adm/accuracy']:.0%} of the actions",
            flush=True,
        )
    env.close()
    return explorer


if __name__ == "__main__":
    main()
