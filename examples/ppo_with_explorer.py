"""Proximal policy optimisation in one file, in CleanRL's style, with CoEX's bonus.

The lines marked [coex] are all that the bonus takes; the rest is as it would be without.

    python examples/ppo_with_explorer.py --game MontezumaRevenge --steps 1000000
    python examples/ppo_with_explorer.py --game gym:MiniGrid-MultiRoom-N4-S5-v1 --bonus-weight 0      # plain
"""

import argparse
import time

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor, nn
from torch.distributions import Categorical

import coex  # [coex]

NUM_ENVS, NUM_STEPS, NUM_MINIBATCHES, NUM_EPOCHS = 8, 128, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, VALUE, MAX_GRAD_NORM = 0.99, 0.95, 0.1, 0.01, 0.5, 0.5
LEARNING_RATE = 2.5e-4


def layer(module: nn.Linear | nn.Conv2d, gain: float = 2**0.5) -> nn.Module:
    nn.init.orthogonal_(module.weight, gain)
    nn.init.zeros_(module.bias)
    return module


class Agent(nn.Module):
    """The policy and its value on (B, 4, 84, 84) frames."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            layer(nn.Conv2d(4, 32, 8, stride=4)), nn.ReLU(),
            layer(nn.Conv2d(32, 64, 4, stride=2)), nn.ReLU(),
            layer(nn.Conv2d(64, 64, 3)), nn.ReLU(),
            nn.Flatten(), layer(nn.Linear(64 * 7 * 7, 512)), nn.ReLU(),
        )  # fmt: skip
        self.actor = layer(nn.Linear(512, num_actions), 0.01)
        self.critic = layer(nn.Linear(512, 1), 1.0)

    def value(self, frames: Tensor) -> Tensor:
        return self.critic(self.body(frames / 255.0)).squeeze(-1)

    def act(self, frames: Tensor, actions: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        hidden = self.body(frames / 255.0)
        policy = Categorical(logits=self.actor(hidden))
        actions = policy.sample() if actions is None else actions
        return actions, policy.log_prob(actions), policy.entropy(), self.critic(hidden).squeeze(-1)


def main(arguments: list[str] | None = None) -> float:
    """Trains, and returns the mean return of the last episodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", default="MontezumaRevenge")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--bonus-weight", type=float, default=0.1)  # [coex]
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)

    views = {"rgb160": (160, 160, 3), "rgb84": (84, 84, 3)}  # [coex] pictures for the bonus beside the policy's
    envs = coex.make_vec(
        options.game, NUM_ENVS, views=views, autoreset_mode=AutoresetMode.SAME_STEP, num_workers=options.workers
    )
    agent = Agent(envs.single_action_space.n)
    optimizer = torch.optim.Adam(agent.parameters(), LEARNING_RATE, eps=1e-5)
    explorer = coex.Explorer(envs.single_action_space.n, NUM_ENVS, seed=options.seed)  # [coex]

    frames = torch.zeros((NUM_STEPS, NUM_ENVS, *envs.single_observation_space.shape), dtype=torch.uint8)
    actions = torch.zeros((NUM_STEPS, NUM_ENVS), dtype=torch.int64)
    log_probs, rewards, ends, values = torch.zeros((4, NUM_STEPS, NUM_ENVS))
    next_frames = torch.from_numpy(envs.reset(seed=options.seed)[0])
    explorer.begin(envs.views)  # [coex]
    scores, finished, started = np.zeros(NUM_ENVS), [], time.time()

    for update in range(max(1, options.steps // (NUM_STEPS * NUM_ENVS))):
        for t in range(NUM_STEPS):
            frames[t] = next_frames
            with torch.no_grad():
                actions[t], log_probs[t], _, values[t] = agent.act(next_frames)
            observations, reward, terminated, truncated, _ = envs.step(actions[t].numpy())
            ended = terminated | truncated
            last = ended.reshape(-1, 1, 1, 1)  # [coex] where a game ended, its last picture was reached, not the next's
            reached = {name: np.where(last, envs.final_views[name], envs.views[name]) for name in views}  # [coex]
            explorer.add(  # [coex]
                actions[t].numpy(), reached, ended, rewards=reward, first_frames=envs.views,  # [coex]
                log_probs=log_probs[t].numpy(),  # [coex]
            )  # [coex]  # fmt: skip
            rewards[t] = torch.from_numpy(np.clip(reward, -1, 1))
            ends[t] = torch.from_numpy(ended)
            next_frames = torch.from_numpy(observations)
            scores += reward
            finished += scores[ended].tolist()
            scores[ended] = 0.0

        bonus = torch.from_numpy(explorer.bonus())  # [coex] (T, N); counted once
        rewards += options.bonus_weight * explorer.ready * bonus  # [coex] before returns are computed
        metrics = explorer.update()  # [coex]

        with torch.no_grad():
            following = agent.value(next_frames)
        advantages, carried = torch.zeros_like(rewards), torch.zeros(NUM_ENVS)
        for t in reversed(range(NUM_STEPS)):
            goes_on = 1 - ends[t]
            delta = rewards[t] + GAMMA * goes_on * following - values[t]
            advantages[t] = carried = delta + GAMMA * LAMBDA * goes_on * carried
            following = values[t]
        returns = advantages + values

        batch = {
            "frames": frames, "actions": actions, "log_probs": log_probs, "advantages": advantages, "returns": returns,
        }  # fmt: skip
        batch = {name: part.flatten(0, 1) for name, part in batch.items()}
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - update * NUM_STEPS * NUM_ENVS / options.steps)
        for _ in range(NUM_EPOCHS):
            for index in torch.randperm(NUM_STEPS * NUM_ENVS).chunk(NUM_MINIBATCHES):
                part = {name: value[index] for name, value in batch.items()}
                _, log_prob, entropy, value = agent.act(part["frames"], part["actions"])
                advantage = (part["advantages"] - part["advantages"].mean()) / (part["advantages"].std() + 1e-8)
                ratio = (log_prob - part["log_probs"]).exp()
                policy_loss = torch.max(-advantage * ratio, -advantage * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
                value_loss = 0.5 * (value - part["returns"]).pow(2).mean()
                loss = policy_loss + VALUE * value_loss - ENTROPY * entropy.mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRAD_NORM)
                optimizer.step()

        done = (update + 1) * NUM_STEPS * NUM_ENVS
        print(
            f"step {done}: return {np.mean(finished[-100:] or [0]):.2f}, {done / (time.time() - started):.0f} steps/s, "
            f"{metrics['counts/states']} states, {metrics['rooms/clusters']} rooms",
            flush=True,
        )
    envs.close()
    return float(np.mean(finished[-100:] or [0]))


if __name__ == "__main__":
    main()
