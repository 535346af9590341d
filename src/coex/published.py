"""The paper's scores: the best mean return of 40 episodes within the steps named, averaged over 3 seeds.

Choi et al., "Contingency-Aware Exploration in Reinforcement Learning", ICLR 2019.
"""

from dataclasses import dataclass

_GAMES = ("Freeway", "Frostbite", "Hero", "MontezumaRevenge", "PrivateEye", "Qbert", "Seaquest", "Venture")

A2C_STEPS, PPO_STEPS = 100_000_000, 500_000_000

# Table 1 (A2C methods) and the table of PPO methods.
SCORES: dict[str, dict[str, float]] = {
    "a2c": dict(zip(_GAMES, (7.2, 1099, 34352, 13, 574, 19620, 2401, 0), strict=True)),
    "a2c+simhash": dict(zip(_GAMES, (0.0, 829, 28181, 412, 276, 18180, 2177, 31), strict=True)),
    "a2c+coex": dict(zip(_GAMES, (34.0, 4260, 36827, 6635, 5316, 23962, 5169, 204), strict=True)),
    "a2c+coex-ram": dict(zip(_GAMES, (34.0, 4418, 36765, 6600, 24296, 24422, 6113, 1100), strict=True)),
    "ppo": dict(zip(_GAMES, (34.0, 7340, 36263, 29, 942, 19980, 2806, 1875), strict=True)),
    "ppo+coex": dict(zip(_GAMES, (34.0, 9076, 36664, 11618, 11000, 22647, 11794, 1916), strict=True)),
}

# The table of the state representation's ablation (appendix): A2C+CoEX by ψ.
ABLATION: dict[str, dict[str, float]] = {
    "c": dict(zip(_GAMES, (10.7, 1313, 34269, 14.7, 2692, 20942, 1810, 94), strict=True)),
    "cR": dict(zip(_GAMES, (34.0, 941, 34046, 9.2, 5458, 21587, 2056, 77), strict=True)),
    "xyc": dict(zip(_GAMES, (33.7, 5066, 36934, 6558, 5377, 21130, 1978, 1374), strict=True)),
    "xycR": dict(zip(_GAMES, (34.0, 4260, 36827, 6635, 5316, 23962, 5169, 204), strict=True)),
}


@dataclass(frozen=True)
class Published:
    """A score of the paper, and the agent steps it took."""

    score: float
    steps: int


def published_score(game: str, method: str, state: str | None = None) -> Published | None:
    """What the paper reports for a method on a game, and for A2C+CoEX with another ψ, if it does."""
    steps = PPO_STEPS if method.startswith("ppo") else A2C_STEPS
    table = ABLATION.get(state, {}) if method == "a2c+coex" and state else SCORES.get(method, {})
    return Published(table[game], steps) if game in table else None
