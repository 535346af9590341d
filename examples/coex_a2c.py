"""Contingency-aware exploration (Choi et al., ICLR 2019) with A2C, whole and plain, to be read from top to bottom.

    python examples/coex_a2c.py --game freeway --steps 40000

A small network, the attentive dynamics model (ADM), guesses from two frames which action was taken, and attends to the
cells of the screen that give it away: there the agent is. A clusterer names the room. Visits of (x, y, room, score) are
counted, rare ones earn a bonus, and A2C learns from the game's rewards and the bonus.

It needs nothing else of this repository. Its settings are the defaults of `coex train montezuma --method a2c+coex`, for
every game; a comment says where they are not the paper's. Shapes: T steps, N environments, A actions, 81 cells.
"""

import argparse
import time
from collections import Counter, deque
from dataclasses import dataclass
from math import log, sqrt

import ale_py
import cv2
import numpy as np
import torch
from torch import Tensor, nn

NUM_ENVS, NUM_STEPS = 16, 5  # N and T
FRAME_SKIP, MAX_NOOPS, MAX_FRAMES = 4, 30, 108_000
STAGGER = 8_192  # first episodes are cut off after up to so many frames, so that environments are out of step
# Rewards: β₁·clip(r, −1, 1) + β₂·bonus. The paper has 10 and 10 for most games, and does not scale them.
EXTRINSIC_WEIGHT, BONUS_WEIGHT, MAX_SCALED_REWARD = 1.0, 0.1, 10.0
# A2C. The paper has λ = 1, RMSProp at 7e-4, gradients of at most 0.5, and the entropy itself at 0.01.
GAMMA, LAMBDA, LEARNING_RATE, ADAM_EPSILON, MAX_GRAD_NORM = 0.99, 0.95, 5e-4, 1e-5, 5.0
ENTROPY_WEIGHT, VALUE_WEIGHT = 0.003, 0.5
RECENT_SHARE = 0.01  # of the newest rollout in the scale of advantages; the paper does not scale them
GRID, CELLS, FEATURES, PIXEL_MEAN, PIXEL_STD = 9, 81, 16, 60.0, 50.0  # of the ADM
ADM_LEARNING_RATE, ADM_MAX_GRAD_NORM, ADM_ENTROPY_WEIGHT = 1e-3, 10.0, 0.001  # the last is λ_ent
PROPENSITY_CLIP = 5.0  # of the transitions' weights; the paper has none
MIN_POLICY_ENTROPY = 0.2  # from a policy that is more sure nothing is learned; the paper always learns
CONTRAST, LEAK = 300.0, 0.1  # of frames' differences; of softmax's gradient into sparsemax's. The paper has neither
UNCHANGED = 1e-5  # features that differ by less are of equal pixels
FOUND_AT, FOUND_BY, SKILL_STEPS = 1.5, 75_000, 5_000  # when the policy begins to learn; the paper's does at once
JOYSTICK = "- F U R L D UR UL DR DL UF RF LF DF URF ULF DRF DLF"  # directions and the button, guessed apart
TAU, EMBEDDING, PROJECTION_SCALE = 0.7, 64, 0.7  # of rooms


class Game:
    """One Atari game. `pictures` has what the policy, the ADM and the clusterer see of it now."""

    def __init__(self, rom: str, seed: np.random.SeedSequence) -> None:
        self.generator = np.random.default_rng(seed)
        self.ale = ale_py.ALEInterface()
        self.ale.setInt("random_seed", int(self.generator.integers(2**31 - 1)))
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.loadROM(ale_py.roms.get_rom_path(rom))
        self.actions = self.ale.getMinimalActionSet()
        self.reset(FRAME_SKIP + int(self.generator.integers(STAGGER)))

    def reset(self, max_frames: int = MAX_FRAMES) -> None:
        """Begins an episode with 1 to 30 frames without action."""
        self.ale.reset_game()
        self.score, self.frames, self.max_frames = 0.0, int(self.generator.integers(1, MAX_NOOPS + 1)), max_frames
        for _ in range(self.frames):
            self.ale.act(ale_py.Action.NOOP)
        self.stack = torch.zeros((84, 84, 4), dtype=torch.uint8)  # black before the first frame
        self._see([(self.ale.getScreenGrayscale(), self.ale.getScreenRGB())])

    def step(self, action: int) -> tuple[float, float, bool, bool]:
        """Repeats an action for four frames; returns reward, score, whether the game is over, and the episode."""
        reward, screens = 0.0, []
        for _ in range(FRAME_SKIP):
            reward += self.ale.act(self.actions[action])
            screens.append((self.ale.getScreenGrayscale(), self.ale.getScreenRGB()))
        self._see(screens[-2:])
        self.score, self.frames = self.score + reward, self.frames + FRAME_SKIP
        terminated = self.ale.game_over()
        ended = terminated or self.frames > self.max_frames - FRAME_SKIP
        return reward, self.score, terminated, ended

    def _see(self, screens: list[tuple[np.ndarray, np.ndarray]]) -> None:
        # The brighter of two frames: Atari draws some sprites only every other frame.
        grey, rgb = (np.max(pair, axis=0) for pair in zip(*screens, strict=True))  # (210, 160), (210, 160, 3)
        sizes = (grey, 84), (rgb, 160), (rgb, 84)
        shrunk = [torch.from_numpy(cv2.resize(screen, (k, k), interpolation=cv2.INTER_AREA)) for screen, k in sizes]
        self.stack = torch.cat([self.stack[..., 1:], shrunk[0][..., None]], -1)  # (84, 84, 4)
        self.pictures = {"policy": self.stack, "rgb160": shrunk[1], "rgb84": shrunk[2]}


@dataclass
class Rollout:
    """T steps of N environments. Row t + 1 of a view is what step t led to, or how the next episode begins."""

    views: dict[str, Tensor]  # (T + 1, N, …) uint8
    final_views: dict[str, Tensor]  # (K, …) the last pictures of the K episodes that ended, in the order of time
    actions: Tensor  # (T, N)
    log_probs: Tensor  # (T, N) log π of the actions
    values: Tensor  # (T, N)
    last_values: Tensor  # (N,) of row T
    final_values: Tensor  # (K,) of the last pictures
    rewards: Tensor  # (T, N) not clipped
    scores: Tensor  # (T, N) of the episode so far
    terminated: Tensor  # (T, N) bool: the game was over
    ended: Tensor  # (T, N) bool: it was, or the episode was cut off


# --- Where is the agent? The attentive dynamics model (section 3.1) ---
class AttentiveDynamicsModel(nn.Module):
    """Guesses the action in every cell, and attends to the cells that guess well. Nothing is padded."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        shapes = (3, 8, 4, 2), (8, 8, 3, 2), (8, 16, 3, 2), (16, FEATURES, 3, 2)  # 160 → 79 → 39 → 19 → 9
        layers = [layer for shape in shapes for layer in (smooth_convolution(*shape), nn.LeakyReLU(0.2))]
        self.encoder = nn.Sequential(*layers)
        steers = [[float(control in action) for control in "URLDF"] for action in JOYSTICK.split(" ")]  # (18, 5)
        self.controls = torch.tensor(steers) if num_actions == len(steers) else torch.eye(num_actions)  # (A, C)
        self.cell_head = mlp(2 * FEATURES, 256, 128, self.controls.shape[1])
        self.attention_head = mlp(FEATURES, 64, 64, 1)

    def encode(self, frames: Tensor) -> Tensor:
        """Computes φ: (…, 160, 160, 3) uint8 → (…, 81, 16)."""
        pixels = (frames.flatten(0, -4).permute(0, 3, 1, 2) - PIXEL_MEAN) / PIXEL_STD  # (B, 3, 160, 160)
        hidden = self.encoder(pixels)  # (B, 16, 9, 9)
        return hidden.permute(0, 2, 3, 1).reshape(*frames.shape[:-3], CELLS, FEATURES)

    def cell_logits(self, previous: Tensor, current: Tensor) -> Tensor:
        """Computes e of Eq. 2: the features of two frames, (…, 81, 16) each → (…, 81, A)."""
        # Steep for the small differences that a small sprite makes, flat for those of large ones.
        difference = torch.asinh(CONTRAST * (current - previous))
        return self.cell_head(torch.cat([difference, current], -1)) @ self.controls.T

    def attend(self, features: Tensor) -> Tensor:
        """Computes α of Eq. 3: (…, 81, 16) → (…, 81), a distribution over the cells."""
        scores = self.attention_head(features).squeeze(-1)
        soft = scores.softmax(-1)
        # The second term adds nothing but a gradient: sparsemax has none once it rests on one cell.
        return sparsemax(scores) + LEAK * (soft - soft.detach())

    def loss(self, left: Tensor, reached: Tensor, attention: Tensor, rollout: Rollout) -> tuple[Tensor, float]:
        """Computes Eq. 5, and the share of actions that were guessed."""
        logits = self.cell_logits(left, reached)  # (T, N, 81, A)
        mixed = (attention.unsqueeze(-1) * logits).sum(-2)  # (T, N, A), Eq. 4
        actions = rollout.actions.unsqueeze(-1)  # (T, N, 1)
        action_loss = -mixed.log_softmax(-1).gather(-1, actions).squeeze(-1)  # (T, N)
        cell_loss = -logits.log_softmax(-1).gather(-1, actions.expand(-1, -1, CELLS).unsqueeze(-1)).squeeze(-1)
        # Only where the picture changed can it show the action. The paper sums over all 81 cells.
        changed = (reached - left).detach().abs().amax(-1) > UNCHANGED  # (T, N, 81)
        negative_entropy = (attention * attention.clamp(min=torch.finfo().tiny).log()).sum(-1)  # 0·log 0 = 0
        losses = action_loss + (cell_loss * changed).sum(-1) + ADM_ENTROPY_WEIGHT * negative_entropy  # (T, N)
        # Weights of 1/π make all actions about as frequent everywhere: the place alone does not tell them.
        weights = ((-rollout.log_probs).exp() / logits.shape[-1]).clamp(max=PROPENSITY_CLIP)  # (T, N)
        return (weights * losses).sum() / weights.sum(), (mixed.argmax(-1) == rollout.actions).float().mean().item()


def orthogonal(layer: nn.Conv2d | nn.Linear, gain: float = sqrt(2)) -> nn.Conv2d | nn.Linear:
    """Draws a layer's weights."""
    nn.init.zeros_(layer.bias)
    nn.init.orthogonal_(layer.weight, gain)
    return layer


def mlp(inputs: int, hidden_1: int, hidden_2: int, outputs: int) -> nn.Sequential:
    """Makes two hidden layers, and an output near 0: guesses and attention are near uniform at first."""
    first, second = orthogonal(nn.Linear(inputs, hidden_1)), orthogonal(nn.Linear(hidden_1, hidden_2))
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), orthogonal(nn.Linear(hidden_2, outputs), 0.1))


def smooth_convolution(inputs: int, outputs: int, size: int, stride: int) -> nn.Conv2d:
    """Mixes every kernel of a blur and two slopes: features then change steadily as things move."""
    layer = orthogonal(nn.Conv2d(inputs, outputs, size, stride))
    blur, slope = ([1.0, 3, 3, 1], [-1.0, -1, 1, 1]) if size == 4 else ([1.0, 2, 1], [-1.0, 0, 1])
    pairs = (blur, blur), (blur, slope), (slope, blur)
    kernels = torch.stack([torch.outer(*torch.tensor(pair)) for pair in pairs])
    kernels /= kernels.abs().sum((1, 2), keepdim=True)  # (3, size, size)
    mixture = nn.init.orthogonal_(torch.empty(outputs, inputs * 3), 2.4).view(outputs, inputs, 3)
    layer.weight.data = torch.einsum("oik,khw->oihw", mixture, kernels)
    return layer


def sparsemax(scores: Tensor) -> Tensor:
    """Projects (…, n) scores onto the simplex (Martins & Astudillo, 2016): most become exactly 0."""
    ranked = scores.sort(-1, descending=True).values
    excess = ranked.cumsum(-1) - 1
    support = (torch.arange(1, scores.shape[-1] + 1) * ranked > excess).sum(-1, keepdim=True)  # (…, 1) its size
    return torch.relu(scores - excess.gather(-1, support - 1) / support)


def smooth(attention: Tensor, ended: Tensor, carried: Tensor, opening: Tensor) -> tuple[Tensor, Tensor]:
    """Computes (T, N, 81) ᾱ_t = (1 − ω) ᾱ_{t−1} + ω α_t with ω = max α_t (section 3.2), and what to carry on from."""
    smoothed = []
    for t, alpha in enumerate(attention):
        smoothed.append(carried.lerp(alpha, alpha.amax(-1, keepdim=True)))
        carried = torch.where(ended[t, :, None], opening[t], smoothed[t])  # an episode begins with α on its first frame
    return torch.stack(smoothed), carried


# --- Which room is it? Clusters of frames (appendix D, Algorithm 2) ---
class Rooms:
    """Names frames by the nearest cluster within τ; one that has none founds its own."""

    def __init__(self) -> None:
        pixels = 84 * 84 * 3
        weights = np.random.default_rng(0).integers(-3, 4, (pixels, EMBEDDING))  # fixed: it is not trained
        self.weights = torch.from_numpy(weights).float()  # whole numbers, so that sums of pixels are exact
        # As a Glorot layer would embed pixels in [0, 1]; the standard deviation of −3 … 3 is 2.
        self.scale = PROJECTION_SCALE * sqrt(2 / (pixels + EMBEDDING)) / 2 / 255
        self.sums, self.sizes = np.zeros((0, EMBEDDING), np.int64), np.zeros(0, np.int64)  # (C, E), (C,) of the members

    def assign(self, frames: Tensor) -> list[int]:
        """Names (M, 84, 84, 3) frames, in order; a cluster's centre is the mean of its members so far."""
        names = []
        for embedding in (frames.flatten(1).float() @ self.weights).long().numpy():
            distances = np.linalg.norm(self.sums / self.sizes[:, None] - embedding, axis=1)  # (C,)
            name = int(distances.argmin()) if (distances <= TAU / self.scale).any() else len(distances)
            if name == len(distances):
                self.sums, self.sizes = np.vstack([self.sums, embedding * 0]), np.append(self.sizes, 0)
            self.sums[name] += embedding
            self.sizes[name] += 1
            names.append(name)
        return names


# --- How rare is it? Counts and bonus (Algorithm 1) ---
class Explorer:
    """Counts visits of ψ(s) = (x, y, c, R), pays 1/√N for each, and teaches the ADM."""

    def __init__(self, num_actions: int) -> None:
        self.num_actions, self.adm = num_actions, AttentiveDynamicsModel(num_actions)
        self.optimizer = torch.optim.Adam(self.adm.parameters(), ADM_LEARNING_RATE)
        self.rooms, self.visits = Rooms(), Counter()
        self.carried: Tensor | None = None  # (N, 81) ᾱ on the frames that the next rollout starts from
        self.skill, self.steps, self.has_found = 1.0, 0, False

    def reward(self, rollout: Rollout) -> tuple[Tensor, list[tuple[int, ...]]]:
        """Returns the bonus (T, N), and ψ of what the steps led to, in the order of time."""
        features = self.adm.encode(rollout.views["rgb160"])  # (T + 1, N, 81, 16)
        reached = features[1:].clone()
        reached[rollout.ended] = self.adm.encode(rollout.final_views["rgb160"])
        self.looked = features[:-1], reached, self.adm.attend(reached)  # for `learn`, with its gradient
        seen = self.adm.attend(features).detach()  # (T + 1, N, 81)
        carried = seen[0] if self.carried is None else self.carried
        attention, self.carried = smooth(self.looked[2].detach(), rollout.ended, carried, seen[1:])  # (T, N, 81)
        cells = attention.argmax(-1).flatten()  # (T·N,)
        frames = rollout.views["rgb84"][1:].clone()  # (T, N, 84, 84, 3)
        frames[rollout.ended] = rollout.final_views["rgb84"]
        rooms, scores = self.rooms.assign(frames.flatten(0, 1)), rollout.scores.floor().long().flatten()
        states = list(zip((cells % GRID).tolist(), (cells // GRID).tolist(), rooms, scores.tolist(), strict=True))
        bonus = []
        for state in states:
            self.visits[state] += 1
            bonus.append(1 / sqrt(self.visits[state]))
        return torch.tensor(bonus).view(rollout.actions.shape), states

    def learn(self, rollout: Rollout) -> float:
        """Takes a gradient step of the ADM on the rollout that was just rewarded; returns its loss."""
        loss, accuracy = self.adm.loss(*self.looked, rollout)
        entropy = -rollout.log_probs.mean().item() / log(self.num_actions)  # 1: a uniform policy; 0: one that is sure
        if entropy >= MIN_POLICY_ENTROPY:
            descend(self.optimizer, loss, self.adm, ADM_MAX_GRAD_NORM)
        # Until the ADM guesses better than chance, locations are noise, and the policy does not learn.
        self.steps += rollout.actions.numel()
        self.skill += rollout.actions.numel() / SKILL_STEPS * (accuracy * self.num_actions - self.skill)
        self.has_found = self.has_found or self.skill >= FOUND_AT or self.steps >= FOUND_BY
        return loss.item()


def descend(optimizer: torch.optim.Optimizer, loss: Tensor, model: nn.Module, max_norm: float) -> None:
    """Takes a gradient step, with the gradient's norm clipped."""
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()


# --- Advantage actor-critic (appendix A) ---
class ActorCritic(nn.Module):
    """Policy and value of four grey frames. It sees what differs from the mean picture; the paper's, the picture."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(84, 84))
        shapes = (4, 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1)  # 84 → 20 → 9 → 7
        layers = [layer for shape in shapes for layer in (orthogonal(nn.Conv2d(*shape)), nn.ReLU())]
        self.trunk = nn.Sequential(*layers, nn.Flatten(), orthogonal(nn.Linear(64 * 7 * 7, 512)), nn.ReLU())
        self.policy, self.value = orthogonal(nn.Linear(512, num_actions), 0.01), orthogonal(nn.Linear(512, 1), 1.0)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Computes log π (B, A) and values (B,) of (B, 84, 84, 4) uint8."""
        features = self.trunk((observations.permute(0, 3, 1, 2) - self.mean) / 85)  # (B, 512)
        return self.policy(features).log_softmax(-1), self.value(features).squeeze(-1)


def lambda_returns(rollout: Rollout, rewards: Tensor) -> Tensor:
    """Computes (T, N) R_t = r_t + γ·((1 − λ)·V(s_{t+1}) + λ·R_{t+1}); with λ = 1, the paper's n-step returns."""
    end_values = torch.zeros_like(rewards)
    end_values[rollout.ended] = rollout.final_values
    end_values[rollout.terminated] = 0  # nothing follows; what is cut off is worth what its last picture is
    returns = torch.zeros_like(rewards)
    next_values = following = rollout.last_values  # (N,)
    for t in reversed(range(len(rewards))):
        following = torch.where(rollout.ended[t], end_values[t], (1 - LAMBDA) * next_values + LAMBDA * following)
        returns[t] = following = rewards[t] + GAMMA * following
        next_values = rollout.values[t]
    return returns


def a2c_loss(network: ActorCritic, rollout: Rollout, returns: Tensor, advantages: Tensor) -> Tensor:
    """Computes the loss of a rollout with (T, N) returns and advantages."""
    log_probs, values = network(rollout.views["policy"][:-1].flatten(0, 1))  # (T·N, A), (T·N,)
    policy_loss = -(log_probs.gather(1, rollout.actions.view(-1, 1)) * advantages.view(-1, 1)).mean()
    value_loss = 0.5 * (values - returns.flatten()).square().mean()
    # The entropy's logarithm pulls the harder the lower it is. The paper has the entropy itself.
    entropy, most = -(log_probs.exp() * log_probs).sum(-1).mean(), log(log_probs.shape[-1])
    entropy_bonus = most * (most / log(3)) * (entropy / most).clamp(min=1e-4).log()
    return policy_loss - ENTROPY_WEIGHT * entropy_bonus + VALUE_WEIGHT * value_loss


class A2C:
    """Takes one gradient step a rollout."""

    def __init__(self, num_actions: int, total_steps: int) -> None:
        self.network = ActorCritic(num_actions)
        self.optimizer = torch.optim.Adam(self.network.parameters(), LEARNING_RATE, eps=ADAM_EPSILON)
        self.total_steps, self.steps = total_steps, 0
        self.sums: Tensor | float = 0.0  # (N,) Σ γ^k r_{t−k}
        self.total, self.squares = 0.0, 0.0  # of these sums, over the run
        self.square, self.share = 0.0, 0.0  # running mean of the advantages' squares, and how much of it is real

    def update(self, rollout: Rollout, bonus: Tensor, hold_policy: bool) -> float:
        """Learns from a rollout and its bonus (T, N); a policy that is held has no advantages."""
        self.optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - self.steps / self.total_steps)
        self.steps += bonus.numel()
        rewards = EXTRINSIC_WEIGHT * rollout.rewards.clamp(-1, 1) + BONUS_WEIGHT * bonus  # Algorithm 1
        # In units of the standard deviation of their discounted sum over the run.
        for reward in rewards.double():
            self.sums = GAMMA * self.sums + reward
            self.total += self.sums.sum().item()
            self.squares += self.sums.square().sum().item()
        variance = max(self.squares / self.steps - (self.total / self.steps) ** 2, 1e-16)
        rewards = (rewards / sqrt(variance)).clamp(-MAX_SCALED_REWARD, MAX_SCALED_REWARD)
        returns = lambda_returns(rollout, rewards)
        advantages = returns - rollout.values  # in units, below, of their root mean square in recent rollouts
        self.square += RECENT_SHARE * (advantages.square().mean().item() - self.square)
        self.share += RECENT_SHARE * (1 - self.share)
        advantages = advantages / max(sqrt(self.square / self.share), 1e-8) * (not hold_policy)
        loss = a2c_loss(self.network, rollout, returns, advantages)
        descend(self.optimizer, loss, self.network, MAX_GRAD_NORM)
        frames = rollout.views["policy"][:-1, ..., -1].flatten(0, 1).float()  # (T·N, 84, 84)
        self.network.mean += (frames.mean(0) - self.network.mean) * len(frames) / self.steps
        return loss.item()


# --- Playing and training ---
@torch.no_grad()
def collect(games: list[Game], network: ActorCritic) -> Rollout:
    """Plays T steps of every game."""
    steps, finals, seen = [], [], [[game.pictures for game in games]]
    for _ in range(NUM_STEPS):
        log_probs, values = network(torch.stack([pictures["policy"] for pictures in seen[-1]]))  # (N, A), (N,)
        actions = torch.multinomial(log_probs.exp(), 1)  # (N, 1)
        outcomes = torch.tensor([game.step(action) for game, (action,) in zip(games, actions.tolist(), strict=True)])
        steps.append((actions[:, 0], log_probs.gather(1, actions)[:, 0], values, *outcomes.unbind(1)))
        for game, has_ended in zip(games, outcomes[:, 3], strict=True):
            if has_ended:
                finals.append(game.pictures)
                game.reset()
        seen.append([game.pictures for game in games])
    actions, log_probs, values, rewards, scores, *ends = (torch.stack(part) for part in zip(*steps, strict=True))
    views = {name: torch.stack([torch.stack([p[name] for p in row]) for row in seen]) for name in seen[0][0]}
    final_views = {k: torch.stack([p[k] for p in finals]) if finals else view[0, :0] for k, view in views.items()}
    last_values, final_values = network(views["policy"][-1])[1], network(final_views["policy"])[1]
    ends = [end.bool() for end in ends]
    return Rollout(views, final_views, actions, log_probs, values, last_values, final_values, rewards, scores, *ends)


def train(game: str, steps: int, seed: int) -> None:
    """Trains, and prints a line of progress now and then."""
    torch.manual_seed(seed)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    games = [Game(game, child) for child in np.random.SeedSequence(seed).spawn(NUM_ENVS)]
    learner, explorer = A2C(len(games[0].actions), steps), Explorer(len(games[0].actions))
    start, returns = time.perf_counter(), deque(maxlen=40)
    while learner.steps < steps:
        rollout = collect(games, learner.network)
        bonus, _ = explorer.reward(rollout)
        learner.update(rollout, bonus, hold_policy=not explorer.has_found)
        explorer.learn(rollout)
        returns.extend(rollout.scores[rollout.ended].tolist())
        if learner.steps % 2_000 < bonus.numel() or learner.steps >= steps:
            mean, speed = np.mean(returns or [np.nan]), learner.steps / (time.perf_counter() - start)
            line = f"step {learner.steps}: return {mean:.2f}, bonus {bonus.mean():.3f}, {len(explorer.visits)} states, "
            line += f"{len(explorer.rooms.sizes)} rooms, ADM's skill {explorer.skill:.2f}, {speed:.0f} steps/s"
            print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Contingency-aware exploration with A2C.")
    parser.add_argument("--game", default="freeway", choices=ale_py.roms.get_all_rom_ids(), metavar="GAME")
    parser.add_argument("--steps", type=int, default=40_000, help="of all 16 environments together")
    parser.add_argument("--seed", type=int, default=0)
    train(**vars(parser.parse_args()))
