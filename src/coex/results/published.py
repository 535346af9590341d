"""The numbers that the paper printed, by method and game; each group names its table's label in the paper's source.

Scores are the best mean return of 40 episodes within the budget, averaged over 3 seeds. None: the paper has no figure.
"""

from typing import NamedTuple

GAMES = ("Freeway", "Frostbite", "Hero", "MontezumaRevenge", "PrivateEye", "Qbert", "Seaquest", "Venture")
A2C_STEPS, PPO_STEPS, SEEDS = 100_000_000, 500_000_000, 3

Scores = dict[str, float]


def _row(*values: float | None) -> Scores:
    """One line of a table, in the order of GAMES."""
    return {game: value for game, value in zip(GAMES, values, strict=True) if value is not None}


# tbl:a2c_performance (Table 1)
A2C = _row(7.2, 1099, 34352, 13, 574, 19620, 2401, 0)
A2C_SIMHASH = _row(0.0, 829, 28181, 412, 276, 18180, 2177, 31)
A2C_COEX = _row(34.0, 4260, 36827, 6635, 5316, 23962, 5169, 204)
A2C_COEX_RAM = _row(34.0, 4418, 36765, 6600, 24296, 24422, 6113, 1100)

# tbl:exp_performance (Table 2); its row at 100M steps repeats A2C_COEX.
A2C_COEX_50M = _row(33.9, 3900, 31367, 4100, 5316, 17724, 2620, 128)
DDQN_PLUS = _row(29.2, None, 20300, 3439, 1880, None, None, 369)
A3C_PLUS = _row(27.3, 507, 15210, 142, 100, 15805, 2274, 0)
TRPO_AE_SIMHASH = _row(33.5, 5214, None, 75, None, None, None, 445)
SARSA_PHI_EB = _row(0.0, 2770, None, 2745, None, 4112, None, 1169)
DQN_PIXELCNN = _row(31.7, None, None, 2514, 15806, 5501, None, 1356)
CURIOSITY_DRIVEN = _row(32.8, None, None, 2505, 3037, None, None, 416)

# tbl:ppo_performance (Table 3)
PPO = _row(34.0, 7340, 36263, 29, 942, 19980, 2806, 1875)
PPO_COEX = _row(34.0, 9076, 36664, 11618, 11000, 22647, 11794, 1916)

# tbl:a2c_additional_performance (Table 6); its last row repeats A2C_COEX. Its A2C is that of Table 1, where
# Montezuma's Revenge is rounded.
PSI_NONE = A2C | {"MontezumaRevenge": 12.5}
PSI_C = _row(10.7, 1313, 34269, 14.7, 2692, 20942, 1810, 94)
PSI_CR = _row(34.0, 941, 34046, 9.2, 5458, 21587, 2056, 77)
PSI_XYC = _row(33.7, 5066, 36934, 6558, 5377, 21130, 1978, 1374)

_BY_METHOD = {
    "a2c": A2C,
    "a2c+simhash": A2C_SIMHASH,
    "a2c+coex": A2C_COEX,
    "a2c+coex-ram": A2C_COEX_RAM,
    "ppo": PPO,
    "ppo+coex": PPO_COEX,
}
_BY_PSI = {"c": PSI_C, "cR": PSI_CR, "xyc": PSI_XYC, "xycR": A2C_COEX}  # of A2C+CoEX


class Published(NamedTuple):
    """A score of the paper, and the agent steps it took."""

    score: float
    steps: int


def published_score(game: str, method: str, state: str | None = None) -> Published | None:
    """What the paper reports for a method on a game, with another ψ than its own if `state` names one, if it does."""
    steps = PPO_STEPS if method.startswith("ppo") else A2C_STEPS
    if state is not None and method != "a2c+coex":
        return None
    scores = _BY_METHOD.get(method, {}) if state is None else _BY_PSI.get(state, {})
    return Published(scores[game], steps) if game in scores else None
