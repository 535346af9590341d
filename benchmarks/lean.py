"""One training run of a single-file loop in CleanRL's shape: prints its (step, seconds) points.

It keeps no log, checkpoint or bonus, so it shows what emulators in C++ threads (ALE's own vector environment, or
EnvPool) and a bare PyTorch loop can do. Observation, actions, reward and network are those of `benchmarks.peer`.
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from typing import Any

import ale_py
import gymnasium
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.network import policy_network

SIMULATORS = ("ale", "envpool")
ALGORITHMS = ("A2C", "PPO")


@dataclass(frozen=True)
class Settings:
    """Named as Stable-Baselines3 has them, whose defaults for A2C these are, so that both take the same."""

    n_steps: int = 5
    n_epochs: int = 1
    batch_size: int = 80  # a minibatch's
    learning_rate: float = 7e-4
    gamma: float = 0.99
    gae_lambda: float = 1.0
    clip_range: float = 0.1
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


@dataclass
class Run:
    """What a run leaves behind."""

    network: nn.Module
    points: list[tuple[int, float]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)  # of each update's last minibatch


def make_environments(
    simulator: str, game: str, count: int, seed: int, max_noops: int = 30
) -> VectorEnv[Any, Any, Any]:
    """As many emulator threads as cores; an episode ends with the game, and begins without pressing the button."""
    shared: dict[str, Any] = {"num_envs": count, "stack_num": 4, "img_height": 84, "img_width": 84}
    shared |= {"noop_max": max_noops, "repeat_action_probability": 0.0, "use_fire_reset": False, "episodic_life": False}
    if simulator == "envpool":
        import envpool  # only here: it may be missing

        pool: Any = envpool.make_gymnasium(f"{game}-v5", seed=seed, frame_skip=4, reward_clip=True, **shared)
        return pool
    gymnasium.register_envs(ale_py)
    of_ale: dict[str, Any] = {"frameskip": 4, "maxpool": True, "reward_clipping": True}
    environments = gymnasium.make_vec(f"ALE/{game}-v5", vectorization_mode="vector_entry_point", **shared, **of_ale)
    environments.reset(seed=seed)  # later resets go on from there
    return environments


def train(algorithm: str, environments: VectorEnv[Any, Any, Any], steps: int, device: str, settings: Settings) -> Run:
    """Train for `steps` agent steps over all environments.

    Both environments answer an episode's end with one step that only resets. It is learned from as any other, as in
    CleanRL: it is one step in hundreds.
    """
    num_actions = int(environments.single_action_space.n)  # type: ignore[attr-defined]
    # Frames stay as they come, channels first; with its weights channels last the network is faster on CPUs.
    network = policy_network(num_actions).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer: torch.optim.Optimizer
    if algorithm == "A2C":
        optimizer = torch.optim.RMSprop(network.parameters(), settings.learning_rate, eps=1e-5, foreach=True)
    else:
        optimizer = torch.optim.Adam(network.parameters(), settings.learning_rate, eps=1e-5, fused=True)
    run = Run(network)
    next_frames = torch.from_numpy(environments.reset()[0]).to(device)  # (N, 4, 84, 84)
    T, N = settings.n_steps, len(next_frames)
    next_done = torch.zeros(N, device=device)
    frames = torch.zeros((T, *next_frames.shape), dtype=torch.uint8, device=device)
    actions = torch.zeros((T, N), dtype=torch.int64, device=device)
    log_probs, rewards, dones, values = torch.zeros((4, T, N), device=device)

    run.points.append((0, time.perf_counter()))
    for step in range(T * N, steps + T * N, T * N):
        with torch.no_grad():
            for t in range(T):
                frames[t], dones[t] = next_frames, next_done
                logits, values[t] = forward(network, next_frames)
                log_policy = logits.log_softmax(dim=-1)
                actions[t] = torch.multinomial(log_policy.exp(), 1).squeeze(1)
                log_probs[t] = chosen(log_policy, actions[t])
                shown, reward, terminated, truncated, _ = environments.step(actions[t].cpu().numpy())
                rewards[t] = torch.from_numpy(reward)
                next_frames = torch.from_numpy(shown).to(device)
                next_done = torch.from_numpy(terminated | truncated).to(device)
            last_values = forward(network, next_frames)[1]
            going_on = 1 - torch.cat([dones[1:], next_done[None]])  # (T, N)
            next_values = torch.cat([values[1:], last_values[None]])
            advantages, following = torch.zeros_like(rewards), torch.zeros(N, device=device)
            for t in reversed(range(T)):
                error = rewards[t] + settings.gamma * next_values[t] * going_on[t] - values[t]
                following = error + settings.gamma * settings.gae_lambda * going_on[t] * following
                advantages[t] = following
        whole = [part.flatten(0, 1) for part in (frames, actions, log_probs, advantages, advantages + values)]
        for _ in range(settings.n_epochs):
            for index in torch.randperm(T * N).to(device).split(settings.batch_size):
                batch = [part.index_select(0, index) for part in whole] if len(index) < T * N else whole
                loss = make_loss(algorithm, network, settings, *batch)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), settings.max_grad_norm)
                optimizer.step()
        run.losses.append(loss.item())
        run.points.append((step, time.perf_counter()))
    return run


def make_loss(
    algorithm: str,
    network: nn.Module,
    settings: Settings,
    frames: Tensor,
    actions: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    returns: Tensor,
) -> Tensor:
    """The loss of B transitions, as Stable-Baselines3 has it."""
    logits, values = forward(network, frames)
    log_policy = logits.log_softmax(dim=-1)  # (B, A)
    log_probs = chosen(log_policy, actions)
    if algorithm == "A2C":
        policy_loss = -(advantages * log_probs).mean()
    else:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        ratio = (log_probs - old_log_probs).exp()
        clipped = ratio.clamp(1 - settings.clip_range, 1 + settings.clip_range)
        policy_loss = -torch.minimum(advantages * ratio, advantages * clipped).mean()
    entropy = -(log_policy.exp() * log_policy).sum(dim=-1).mean()
    return policy_loss - settings.ent_coef * entropy + settings.vf_coef * F.mse_loss(values, returns)


def forward(network: nn.Module, frames: Tensor) -> tuple[Tensor, Tensor]:
    """(B, 4, 84, 84) uint8 -> logits (B, A) and values (B,)."""
    output: Tensor = network(frames.float() / 255)
    return output[:, :-1], output[:, -1]


def chosen(log_policy: Tensor, actions: Tensor) -> Tensor:
    """Picks log π (B,) of the actions taken."""
    return log_policy.gather(1, actions[:, None]).squeeze(1)


def main() -> None:
    """Run once and print the points as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm", choices=ALGORITHMS)
    parser.add_argument("--simulator", choices=SIMULATORS, required=True)
    parser.add_argument("--game", required=True)
    parser.add_argument("--environments", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--arguments", type=lambda text: Settings(**json.loads(text)), default=Settings())
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    environments = make_environments(options.simulator, options.game, options.environments, options.seed)
    run = train(options.algorithm, environments, options.steps, options.device, options.arguments)
    environments.close()
    print(json.dumps(run.points))


if __name__ == "__main__":
    main()
