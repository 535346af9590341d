"""The methods by name, what the paper sets for each, and what suits a small machine."""

import dataclasses
import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from coex.bonuses import Bonus
from coex.bonuses.coex import CoexBonus, CoexConfig, coex_views
from coex.bonuses.simhash import SimHashBonus, SimHashConfig
from coex.config import BonusConfig, RunConfig, flat_settings, with_settings
from coex.envs import GameConfig, is_atari, resolve_game
from coex.errors import UsageError
from coex.learners import Learner
from coex.learners.a2c import A2C, A2CConfig
from coex.learners.batch import RewardConfig
from coex.learners.networks import ActorCritic
from coex.learners.ppo import PPO, PPOConfig
from coex.representation.clusters import ClusterConfig

_LEARNERS = {
    "a2c": "advantage actor-critic",
    "ppo": "proximal policy optimisation",
}
_BONUSES = {
    "": "on the game's own rewards",
    "+coex": "with a bonus for rare (x, y, room, score), the location learned from pixels (the paper's method)",
    "+coex-ram": "the same with the true location and room from the game's RAM (the paper's upper bound)",
    "+simhash": "with a bonus for rare pictures, hashed to 128 bits (the paper's baseline)",
}
METHODS = {
    learner + bonus: f"{name} {how}" if not bonus else how
    for learner, name in _LEARNERS.items()
    for bonus, how in _BONUSES.items()
}
PRESETS = ("paper", "laptop")


@dataclass(frozen=True)
class GameSettings:
    """One game's row of the paper's hyper-parameter table (appendix B); the weights are A2C's."""

    extrinsic_weight: float = 10.0  # β₁ with CoEX
    bonus_weight: float = 10.0  # β₂ with CoEX
    plain_weight: float = 10.0  # β₁ without a bonus
    threshold: float = 0.7  # τ
    state: str = "xycR"  # ψ


GAMES = {
    "Freeway": GameSettings(10.0, 10.0, 10.0, state="xyR"),
    "Frostbite": GameSettings(10.0, 10.0, 10.0, state="xyR"),
    "Hero": GameSettings(1.0, 0.1, 1.0, threshold=0.7),
    "MontezumaRevenge": GameSettings(10.0, 10.0, 10.0, threshold=0.7),
    "PrivateEye": GameSettings(10.0, 10.0, 10.0, threshold=0.55),
    "Qbert": GameSettings(1.0, 0.5, 1.0, state="xyR"),
    "Seaquest": GameSettings(1.0, 0.5, 10.0, state="xyR"),
    "Venture": GameSettings(10.0, 10.0, 10.0, threshold=0.7),
}
# Other environments: a bonus of a tenth of the reward leads to a goal and does not outweigh it. Both are large because
# of RMSProp's ε: once the bonus fades, the gradients of smaller ones make steps too small to learn from.
ELSEWHERE = GameSettings(extrinsic_weight=50.0, bonus_weight=5.0, plain_weight=50.0)

# For worlds that are learned in 10⁵ steps, not 10⁸. RMSProp's running squares, which start at 1, forget that sooner;
# a gradient is cut so late that the few updates with a reward in them outweigh the many without.
LAPTOP_A2C = A2CConfig(learning_rate=1e-3, rmsprop_alpha=0.9, max_grad_norm=10.0)
# Elsewhere the player is often a small part of a still picture, and without centring the value's error is spent on what
# all pictures share: in MiniGrid's four rooms, the network ended with nearly the same features everywhere.
LAPTOP_A2C_ELSEWHERE = dataclasses.replace(LAPTOP_A2C, centre_observations=True)
STAGGER = 100  # frames: A2C's short rollouts should not show the same moment of all episodes
# 8 environments give an update every 1,024 steps, not every 16,384; the rate is OpenAI baselines' for such rollouts.
LAPTOP_PPO = PPOConfig(learning_rate=2.5e-4, decay_learning_rate=True)
# Elsewhere, a rate and a range like those that rl-starter-files trains MiniGrid's PPO with (7e-4, 0.2). Once a task is
# mastered its advantages are noise, which normalising makes large: without a bound on a rollout's change, one of two
# seeds forgot four rooms that it had left in every episode.
LAPTOP_PPO_ELSEWHERE = dataclasses.replace(LAPTOP_PPO, learning_rate=1e-3, clip_range=0.2, max_kl=0.03)


def make_config(game: str, method: str, settings: dict[str, Any] | None = None, preset: str | None = None) -> RunConfig:
    """A method's settings on a game, with `settings` put in.

    They are the paper's, or those for one small machine: by default the paper's for its games, the others elsewhere.
    """
    game = resolve_game(game)
    if method not in METHODS:
        close = difflib.get_close_matches(method, METHODS, n=3, cutoff=0.4) or list(METHODS)
        raise UsageError(f"unknown method {method!r}; closest: {', '.join(close)} ('coex methods' lists all)")
    preset = preset or ("paper" if is_atari(game) else "laptop")
    if preset not in PRESETS:
        raise UsageError(f"--preset takes {' or '.join(PRESETS)}, not {preset!r}")
    make_defaults = _ppo_defaults if method.startswith("ppo") else _a2c_defaults
    config = make_defaults(game, method, _make_bonus_config(game, method), is_paper=preset == "paper")
    return with_settings(config, settings or {}).resolved()


def read_config(settings: dict[str, Any]) -> RunConfig:
    """The configuration that `RunConfig.to_dict` described."""
    rest = dict(settings)
    if not {"game", "method"} <= rest.keys():
        raise UsageError("a run's configuration must name its game and method")
    return make_config(rest.pop("game"), rest.pop("method"), rest)


def changed_settings(config: RunConfig) -> dict[str, Any]:
    """The settings, by full name, that differ from the method's on this game; a run's length and seed are its own."""
    defaults = make_config(config.game, config.method, {"total_steps": config.total_steps, "seed": config.seed})
    ours, theirs = flat_settings(config.to_dict()), flat_settings(defaults.to_dict())
    return {name: value for name, value in ours.items() if theirs.get(name) != value}


def _a2c_defaults(game: str, method: str, bonus: BonusConfig | None, *, is_paper: bool) -> RunConfig:
    weights = GAMES.get(game, ELSEWHERE)
    laptop = LAPTOP_A2C if is_atari(game) else LAPTOP_A2C_ELSEWHERE
    return RunConfig(
        game=game,
        method=method,
        num_envs=16,
        env=GameConfig() if is_atari(game) else GameConfig(frame_skip=1, max_noops=0, stagger=STAGGER),
        learner=A2CConfig() if is_paper else laptop,
        reward=RewardConfig(weights.extrinsic_weight, weights.bonus_weight)
        if bonus
        else RewardConfig(weights.plain_weight, bonus_weight=0.0),
        bonus=bonus,
    )


def _ppo_defaults(game: str, method: str, bonus: BonusConfig | None, *, is_paper: bool) -> RunConfig:
    if is_atari(game):
        # As in random network distillation: sticky actions instead of no-ops, episodes of 4,500 steps at most.
        env = GameConfig(sticky=0.25, max_noops=0, max_episode_frames=18_000)
        laptop, bonus_weight = LAPTOP_PPO, 1.0  # of all games (appendix B)
    else:
        env = GameConfig(frame_skip=1, max_noops=0)
        # Rewards are normalised, so a weak bonus guides as well as a strong one until the first reward is met. Where a
        # goal ends the episode, an agent with a strong one goes on collecting it instead.
        laptop, bonus_weight = LAPTOP_PPO_ELSEWHERE, 0.1
    return RunConfig(
        game=game,
        method=method,
        num_envs=128 if is_paper else 8,
        env=env,
        learner=PPOConfig() if is_paper else laptop,
        reward=RewardConfig(extrinsic_weight=2.0, bonus_weight=bonus_weight if bonus else 0.0),
        bonus=bonus,
    )


def _make_bonus_config(game: str, method: str) -> BonusConfig | None:
    row = GAMES.get(game, ELSEWHERE)
    coex = CoexConfig(state=row.state, clusters=ClusterConfig(threshold=row.threshold))
    match method.partition("+")[2]:
        case "coex":
            return coex
        case "coex-ram":
            return dataclasses.replace(coex, locator="ram", rooms="ram")
        case "simhash":
            return SimHashConfig()
        case _:
            return None


def make_network(config: RunConfig, num_actions: int) -> ActorCritic:
    """A network of the shape that a run's configuration describes, its weights drawn from torch's own generator."""
    has_two_values = isinstance(config.learner, PPOConfig) and config.learner.two_value_heads
    return ActorCritic(num_actions, 2 if has_two_values else 1, centred=config.learner.centre_observations)


def make_learner(config: RunConfig, num_actions: int, seed: np.random.SeedSequence, device: torch.device) -> Learner:
    """The learner that a run's configuration describes, with a new network."""
    network = make_network(config, num_actions).to(device)
    match config.learner:
        case A2CConfig():
            return A2C(network, config.learner, config.schedule_steps)
        case PPOConfig():
            return PPO(network, config.learner, config.schedule_steps, int(seed.generate_state(1)[0]))


def make_bonus(config: RunConfig, num_actions: int, seed: np.random.SeedSequence, device: torch.device) -> Bonus | None:
    """The bonus that a run's configuration describes, if it has one."""
    match config.bonus:
        case CoexConfig():
            return CoexBonus(config.bonus, config.game, num_actions, seed, device)
        case SimHashConfig():
            return SimHashBonus(config.bonus, seed)
        case None:
            return None


def bonus_views(config: RunConfig) -> list[str]:
    """The views that a run's bonus wants besides the policy's."""
    match config.bonus:
        case CoexConfig():
            return coex_views(config.bonus, config.game)
        case SimHashConfig():
            return ["small"]
        case None:
            return []
