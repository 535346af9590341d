"""The methods by name, what the paper sets for each, and what suits a small machine."""

import dataclasses
import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coex.config.archive import ArchiveConfig
from coex.config.bonuses import ADMConfig, ClusterConfig, CoexConfig, SimHashConfig
from coex.config.field import FIELD, CoexE3BConfig, CoexNovelDConfig
from coex.config.learners import A2CConfig, PPOConfig, RewardConfig
from coex.config.run import RunConfig
from coex.config.settings import flat_settings, with_settings
from coex.envs import is_atari, is_minigrid, resolve_game
from coex.envs.game_config import GameConfig
from coex.errors import UsageError

LEARNERS = {
    "a2c": "advantage actor-critic",
    "ppo": "proximal policy optimisation",
}


@dataclass(frozen=True)
class BonusKind:
    """A bonus by name: what it does, its settings for a game and a preset, and the class that gives it."""

    description: str
    settings: Callable[[str, bool], Any]  # of the game, and whether they are to be the paper's
    target: str  # module:Class
    weight: float | None = None  # β₂ as published, where β₁ is 1; None: as the preset has it for CoEX


# A new bonus is an entry here or in config/field.py, and a file; `--method a2c+module:Class` needs neither.
BONUSES = {
    "coex": BonusKind(
        "with a bonus for rare (x, y, room, score), the location learned from pixels (the paper's method)",
        lambda game, is_paper: _coex(game, is_paper=is_paper),
        "coex.method.bonus:CoexBonus",
    ),
    "coex-ram": BonusKind(
        "the same with the true location and room from the game's RAM (the paper's upper bound)",
        lambda game, is_paper: dataclasses.replace(_coex(game, is_paper=is_paper), locator="ram", rooms="ram"),
        "coex.method.bonus:CoexBonus",
    ),
    "simhash": BonusKind(
        "with a bonus for rare pictures, hashed to 128 bits (the paper's baseline)",
        lambda game, is_paper: SimHashConfig(),
        "coex.bonuses.simhash:SimHashBonus",
    ),
    "coex-e3b": BonusKind(
        "with CoEX's bonus times E3B's: rare in the run, and new in the episode (after Henaff et al. 2023)",
        lambda game, is_paper: CoexE3BConfig(**vars(_coex(game, is_paper=is_paper))),
        "coex.bonuses.product:CoexE3BBonus",
    ),
    "coex-noveld": BonusKind(
        "with NovelD's bonus by CoEX's counts: rarer than the state before, once an episode (after Zhang et al. 2021)",
        lambda game, is_paper: CoexNovelDConfig(**vars(_coex(game, is_paper=is_paper))),
        "coex.bonuses.product:CoexNovelDBonus",
    ),
    **{
        name: BonusKind(f"with a bonus for {what}", settings, f"coex.bonuses.{target}", weight)
        for name, (what, settings, target, weight) in FIELD.items()
    },
}
METHODS = {
    method: description
    for learner, name in LEARNERS.items()
    for method, description in {
        learner: f"{name} on the game's own rewards",
        **{f"{learner}+{bonus}": kind.description for bonus, kind in BONUSES.items()},
    }.items()
}
# Methods without rollouts, by the bonus whose states are their cells.
ARCHIVES = {"archive": "coex", "archive-ram": "coex-ram"}
METHODS |= {
    "archive": "saved games in rare (x, y, room, score), learned from pixels; a policy taught by the search",
    "archive-ram": "the same with the true location and room from the game's RAM",
}
PRESETS = ("default", "paper")
PAPER_STEPS = 10_000_000  # with fewer, the paper's settings bring little


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
# The default settings, for all games. What each of them does on Freeway: docs/notebook.md.
# The player is a small part of a still picture: without centring, features end nearly the same in all of them.
# Rewards and advantages in their own units: a bonus that shifts every value by a hundred leaves nothing to learn from.
WEIGHTS = RewardConfig(extrinsic_weight=1.0, bonus_weight=0.1)  # a bonus leads to rewards and does not outweigh them
A2C_DEFAULT = A2CConfig(
    gae_lambda=0.95,
    optimizer="adam",
    learning_rate=5e-4,
    entropy_weight=0.003,
    log_entropy=True,
    max_grad_norm=5.0,
    normalise_rewards=True,
    normalise_advantages=True,
    centre_observations=True,
)
# Elsewhere A2C keeps the settings that leave MiniGrid's four rooms with every seed: with those above, the goal was met
# too rarely. Weights are large because of RMSProp's ε, in which smaller gradients vanish once the bonus fades.
A2C_ELSEWHERE = A2CConfig(learning_rate=1e-3, rmsprop_alpha=0.9, max_grad_norm=10.0, centre_observations=True)
A2C_WEIGHTS_ELSEWHERE = RewardConfig(extrinsic_weight=50.0, bonus_weight=5.0, unit="largest")
# Once a task is mastered its advantages are noise, which normalising makes large: without a bound on its change,
# one of two seeds forgot MiniGrid's four rooms, which it had left in every episode.
PPO_DEFAULT = PPOConfig(
    learning_rate=5e-4, decay_learning_rate=True, clip_range=0.2, max_kl=0.03, centre_observations=True
)
# Elsewhere PPO too keeps the settings that leave the four rooms with every seed: with those above, two of two did not.
PPO_ELSEWHERE = dataclasses.replace(PPO_DEFAULT, learning_rate=1e-3, centre_observations=False)
PPO_WEIGHTS_ELSEWHERE = RewardConfig(extrinsic_weight=2.0, bonus_weight=0.1, unit="largest")
# On a grid, repeated actions go round in circles or into a wall.
ARCHIVE_MINIGRID = ArchiveConfig(returns="replay", keep_action=0.0, fit_epochs=4)
# Frames: environments out of step, so that a short rollout does not show the same moment of all episodes.
STAGGER, STAGGER_ELSEWHERE = 8_192, 100


def make_config(game: str, method: str, settings: dict[str, Any] | None = None, preset: str = "default") -> RunConfig:
    """A method's settings on a game, with `settings` put in: the default ones, or the paper's."""
    game, settings = resolve_game(game), dict(settings or {})
    preset = settings.pop("preset", preset)
    if preset not in PRESETS:
        raise UsageError(f"--preset takes {' or '.join(PRESETS)}, not {preset!r}")
    learner, bonus = split_method(method)
    is_paper = preset == "paper"
    make_defaults = {"a2c": _a2c_defaults, "ppo": _ppo_defaults, "archive": _archive_defaults}[learner]
    config = make_defaults(game, _bonus_settings(bonus, game, is_paper=is_paper), is_paper=is_paper)
    if bonus in BONUSES and (weight := BONUSES[bonus].weight) is not None:
        reward = dataclasses.replace(config.reward, bonus_weight=config.reward.extrinsic_weight * weight)
        config = dataclasses.replace(config, reward=reward)
    config = with_settings(dataclasses.replace(config, method=method, preset=preset), settings).resolved()
    if config.bonus is not None and "ram" in config.views() and not bonus.endswith("-ram"):
        raise UsageError(f"{method} does not look at RAM: use {method}-ram")
    return config


def paper_preset(method: str) -> str:
    """Returns the preset that is the paper's for a method: the default for those that the paper has not."""
    return "default" if method in ARCHIVES else "paper"


def split_method(method: str) -> tuple[str, str]:
    """Returns the names of a method's learner and bonus; raises UsageError for one that is not known."""
    if method in ARCHIVES:
        return "archive", ARCHIVES[method]
    learner, _, bonus = method.partition("+")
    if learner in LEARNERS and (method in METHODS or ":" in bonus):
        return learner, bonus
    close = difflib.get_close_matches(method, METHODS, n=3, cutoff=0.4) or list(METHODS)
    raise UsageError(f"unknown method {method!r}; closest: {', '.join(close)} ('coex methods' lists all)")


def load_bonus_class(bonus: str) -> Any:
    """Returns the class of a bonus by its name here, or by module:Class; raises UsageError if it cannot be had."""
    module, _, name = (BONUSES[bonus].target if bonus in BONUSES else bonus).partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"there is no bonus {bonus!r}: {error} (is the module on Python's path?)") from None


def bonus_config(bonus: str, game: str, settings: Any = None) -> Any:
    """Returns a bonus's settings for a game by the bonus's name, with nested `settings` put in, or as they are."""
    if bonus not in BONUSES and ":" not in str(bonus):
        close = difflib.get_close_matches(str(bonus), BONUSES, n=1, cutoff=0.4) or list(BONUSES)
        raise UsageError(f"unknown bonus {bonus!r}; closest: {', '.join(close)} (or module:Class)")
    usual = _bonus_settings(bonus, game, is_paper=False)
    if isinstance(settings, type(usual)):
        return settings
    if settings is not None and not isinstance(settings, dict):
        raise UsageError(
            f"config takes {type(usual).__name__}, the settings of {bonus}, or a dictionary of them, not {settings!r}"
        )
    return with_settings(usual, settings or {})


def _bonus_settings(bonus: str, game: str, *, is_paper: bool) -> Any:
    if not bonus:
        return None
    if bonus in BONUSES:
        return BONUSES[bonus].settings(game, is_paper)
    settings: Any = getattr(load_bonus_class(bonus), "Config", None)
    if not isinstance(settings, type) or not dataclasses.is_dataclass(settings):
        raise UsageError(f"{bonus} has no settings: give the class a frozen dataclass called Config")
    return settings()


def read_config(settings: dict[str, Any]) -> RunConfig:
    """The configuration that `RunConfig.to_dict` described."""
    rest = dict(settings)
    if not {"game", "method"} <= rest.keys():
        raise UsageError("a run's configuration must name its game and method")
    if isinstance(rest.get("reward"), dict) and "clip" in rest["reward"]:  # runs that are older than the unit had one
        rest["reward"] = {"unit": "one"} | rest["reward"]
    return make_config(rest.pop("game"), rest.pop("method"), rest, "paper")  # the first runs did not say their preset


def changed_settings(config: RunConfig) -> dict[str, Any]:
    """The settings, by full name, that differ from the preset's for this game; a run's length and seed are its own."""
    own = {"total_steps": config.total_steps, "seed": config.seed}
    preset = make_config(config.game, config.method, own, config.preset)
    ours, theirs = flat_settings(config.to_dict()), flat_settings(preset.to_dict())
    return {name: value for name, value in ours.items() if theirs.get(name) != value}


def _a2c_defaults(game: str, bonus: Any, *, is_paper: bool) -> RunConfig:
    row = GAMES.get(game, GameSettings())
    paper = RewardConfig(row.extrinsic_weight if bonus else row.plain_weight, row.bonus_weight)
    env = GameConfig() if is_atari(game) else GameConfig(frame_skip=1, max_noops=0)
    learner, weights = (A2C_DEFAULT, WEIGHTS) if is_atari(game) else (A2C_ELSEWHERE, A2C_WEIGHTS_ELSEWHERE)
    return RunConfig(
        game=game,
        method="",
        num_envs=16,
        env=env if is_paper else _staggered(env, game),
        learner=A2CConfig() if is_paper else learner,
        reward=_weights(paper if is_paper else weights, bonus),
        bonus=bonus,
    )


def _ppo_defaults(game: str, bonus: Any, *, is_paper: bool) -> RunConfig:
    # As in random network distillation: sticky actions instead of no-ops, episodes of 4,500 steps at most.
    atari = GameConfig(sticky=0.25, max_noops=0, max_episode_frames=18_000)
    env = atari if is_atari(game) else GameConfig(frame_skip=1, max_noops=0)
    learner, weights = (PPO_DEFAULT, WEIGHTS) if is_atari(game) else (PPO_ELSEWHERE, PPO_WEIGHTS_ELSEWHERE)
    return RunConfig(
        game=game,
        method="",
        num_envs=128 if is_paper else 8,  # 8: an update every 1,024 steps, not every 16,384
        env=_staggered(env, game) if is_atari(game) and not is_paper else env,
        learner=PPOConfig() if is_paper else learner,
        reward=_weights(RewardConfig(2.0, 1.0) if is_paper else weights, bonus),  # of all games (appendix B)
        bonus=bonus,
    )


def _archive_defaults(game: str, bonus: Any, *, is_paper: bool) -> RunConfig:
    if is_paper:
        raise UsageError("--preset paper: the paper has no archive; leave the preset at default")
    atari = is_atari(game)
    elsewhere = ARCHIVE_MINIGRID if is_minigrid(game) else ArchiveConfig(returns="replay")
    return RunConfig(
        game=game,
        method="",
        num_envs=16,
        env=GameConfig() if atari else GameConfig(frame_skip=1, max_noops=0, levels=1),
        learner=ArchiveConfig() if atari else elsewhere,
        reward=RewardConfig(),
        bonus=bonus,
    )


def _staggered(env: GameConfig, game: str) -> GameConfig:
    return dataclasses.replace(env, stagger=STAGGER if is_atari(game) else STAGGER_ELSEWHERE)


def _weights(weights: RewardConfig, bonus: Any) -> RewardConfig:
    return weights if bonus else dataclasses.replace(weights, bonus_weight=0.0)


def _coex(game: str, *, is_paper: bool) -> CoexConfig:
    row = GAMES.get(game, GameSettings())
    adm = ADMConfig(found_by=0) if is_paper else ADMConfig(joystick=is_atari(game))
    threshold = row.threshold if game in GAMES else 0.0  # 0: chosen from what is seen first
    return CoexConfig(state=row.state, adm=adm, clusters=ClusterConfig(threshold=threshold))
