"""The methods by name, and what the paper sets for each game."""

import difflib
from dataclasses import dataclass
from typing import Any

from coex.config import RunConfig, with_settings
from coex.envs import GameConfig, is_atari, resolve_game
from coex.errors import UsageError
from coex.learners.batch import RewardConfig

METHODS = {
    "a2c": "advantage actor-critic on the game's own rewards",
}


@dataclass(frozen=True)
class Preset:
    """One game's row of the paper's hyper-parameter table (appendix B)."""

    extrinsic_weight: float = 1.0  # β₁ with CoEX
    bonus_weight: float = 1.0  # β₂ with CoEX
    plain_weight: float = 1.0  # β₁ without a bonus
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


def make_config(game: str, method: str, settings: dict[str, Any] | None = None) -> RunConfig:
    """The paper's settings for a method on a game, with `settings` put in."""
    game = resolve_game(game)
    if method not in METHODS:
        close = difflib.get_close_matches(method, METHODS, n=3, cutoff=0.4) or list(METHODS)
        raise UsageError(f"unknown method {method!r}; closest: {', '.join(close)} ('coex methods' lists all)")
    preset = PRESETS.get(game, Preset())
    config = RunConfig(
        game=game,
        method=method,
        env=GameConfig() if is_atari(game) else GameConfig(frame_skip=1, max_noops=0),
        reward=RewardConfig(preset.plain_weight, bonus_weight=0.0),
    )
    return with_settings(config, settings or {}).resolved()
