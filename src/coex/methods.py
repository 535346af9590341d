"""The methods by name, and what the paper sets for each game."""

import dataclasses
import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from coex.bonuses import Bonus
from coex.bonuses.coex import CoexBonus, CoexConfig, coex_views
from coex.bonuses.simhash import SimHashBonus, SimHashConfig
from coex.config import RunConfig, with_settings
from coex.envs import GameConfig, is_atari, resolve_game
from coex.errors import UsageError
from coex.learners.a2c import A2CConfig
from coex.learners.batch import RewardConfig
from coex.representation.clusters import ClusterConfig

METHODS = {
    "a2c": "advantage actor-critic on the game's own rewards",
    "a2c+coex": "with a bonus for rare (x, y, room, score), the location learned from pixels (the paper's method)",
    "a2c+coex-ram": "the same with the true location and room from the game's RAM (the paper's upper bound)",
    "a2c+simhash": "with a bonus for rare pictures, hashed to 128 bits (the paper's baseline)",
}


@dataclass(frozen=True)
class Preset:
    """One game's row of the paper's hyper-parameter table (appendix B)."""

    extrinsic_weight: float = 10.0  # β₁ with CoEX
    bonus_weight: float = 10.0  # β₂ with CoEX
    plain_weight: float = 10.0  # β₁ without a bonus
    threshold: float = 0.7  # τ
    state: str = "xycR"  # ψ


PRESETS = {
    "Freeway": Preset(10.0, 10.0, 10.0, state="xyR"),
    "Frostbite": Preset(10.0, 10.0, 10.0, state="xyR"),
    "Hero": Preset(1.0, 0.1, 1.0, threshold=0.7),
    "MontezumaRevenge": Preset(10.0, 10.0, 10.0, threshold=0.7),
    "PrivateEye": Preset(10.0, 10.0, 10.0, threshold=0.55),
    "Qbert": Preset(1.0, 0.5, 1.0, state="xyR"),
    "Seaquest": Preset(1.0, 0.5, 10.0, state="xyR"),
    "Venture": Preset(10.0, 10.0, 10.0, threshold=0.7),
}


# For worlds that are learned in 10⁵ steps, not 10⁸: RMSProp's running squares, which start at 1, forget that sooner.
SMALL_BUDGET = A2CConfig(learning_rate=1e-3, rmsprop_alpha=0.9)


def make_config(game: str, method: str, settings: dict[str, Any] | None = None) -> RunConfig:
    """The paper's settings for a method on a game, with `settings` put in."""
    game = resolve_game(game)
    if method not in METHODS:
        close = difflib.get_close_matches(method, METHODS, n=3, cutoff=0.4) or list(METHODS)
        raise UsageError(f"unknown method {method!r}; closest: {', '.join(close)} ('coex methods' lists all)")
    preset = PRESETS.get(game, Preset())
    bonus = _make_bonus_config(method, preset)
    config = RunConfig(
        game=game,
        method=method,
        env=GameConfig() if is_atari(game) else GameConfig(frame_skip=1, max_noops=0),
        learner=A2CConfig() if is_atari(game) else SMALL_BUDGET,
        reward=RewardConfig(preset.extrinsic_weight, preset.bonus_weight)
        if bonus
        else RewardConfig(preset.plain_weight, bonus_weight=0.0),
        bonus=bonus,
    )
    return with_settings(config, settings or {}).resolved()


def read_config(settings: dict[str, Any]) -> RunConfig:
    """The configuration that `RunConfig.to_dict` described."""
    rest = dict(settings)
    if not {"game", "method"} <= rest.keys():
        raise UsageError("a run's configuration must name its game and method")
    return make_config(rest.pop("game"), rest.pop("method"), rest)


def _make_bonus_config(method: str, preset: Preset) -> CoexConfig | SimHashConfig | None:
    coex = CoexConfig(state=preset.state, clusters=ClusterConfig(threshold=preset.threshold))
    match method.partition("+")[2]:
        case "coex":
            return coex
        case "coex-ram":
            return dataclasses.replace(coex, locator="ram", rooms="ram")
        case "simhash":
            return SimHashConfig()
        case _:
            return None


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
