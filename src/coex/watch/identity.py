"""What a run's configuration says of it: its game and method, its settings, and the command that repeats it."""

import shlex
from dataclasses import dataclass
from typing import Any

from coex.config.bonuses import ADMConfig, CoexConfig
from coex.config.grid import Grid
from coex.config.presets import changed_settings, read_config
from coex.config.run import OPERATIONAL, RunConfig
from coex.config.settings import flat_settings, setting_text
from coex.errors import UsageError
from coex.results.published import published_score

_LONGEST_TEXT, _MOST_SETTINGS = 300, 300
_TITLES = {
    "a2c": "A2C",
    "ppo": "PPO",
    "archive": "Archive",
    "archive-ram": "Archive+RAM",
    "coex": "CoEX",
    "coex-ram": "CoEX+RAM",
    "simhash": "Pixel-SimHash",
    "rnd": "RND",
    "icm": "ICM",
    "curiosity": "curiosity (inverse features)",
    "curiosity-random": "curiosity (random features)",
    "noveld": "NovelD",
    "e3b": "E3B",
    "coex-e3b": "CoEX×E3B",
    "coex-noveld": "NovelD of CoEX",
    "phi-eb": "φ-EB",
    "cts": "CTS",
    "ae-simhash": "AE-SimHash",
    "pixelcnn": "PixelCNN",
    "pixelcnn-chunks": "PixelCNN in chunks",
}
# Settings with an option of their own.
_OPTIONS = {"num_envs": "--envs", "num_workers": "--workers", "device": "--device", "env.sticky": "--sticky"}


@dataclass(frozen=True)
class Identity:
    """Who a run is, as far as its configuration can be read."""

    game: str
    method: str  # for people: A2C+CoEX
    variant: str  # the method with the settings that make it another one
    seed: int
    total_steps: int
    schedule_steps: int  # runs of different schedules are not seeds of one method; 0: the rate does not fall
    command: str
    settings: list[tuple[str, str, bool]]  # name, value, whether it differs from the preset's
    state: str  # the letters of ψ
    grid: Grid  # that x and y are cells of
    paper: tuple[float, int] | None  # the paper's score of this method, and its steps


def identify(settings: dict[str, Any], path: str) -> Identity:
    """Returns what a `config.json` tells; settings that this version does not know are shown as they are."""
    config = _understand(settings)
    changed = changed_settings(config) if config else {}
    flat = list(flat_settings(config.to_dict() if config else settings).items())[:_MOST_SETTINGS]
    method = method_title(_text(settings.get("method", "?")))
    if config and config.setting:
        method += f", {config.setting}"
    differing = ", ".join(
        f"{name} = {setting_text(value)}" for name, value in changed.items() if name.split(".")[0] not in OPERATIONAL
    )
    bonus: Any = settings.get("bonus")
    bonus = bonus if isinstance(bonus, dict) else {}
    return Identity(
        game=_text(settings.get("game", "?")).removeprefix("gym:"),
        method=method,
        variant=method + (f" ({_text(differing)})" if differing else ""),
        seed=_whole(settings.get("seed")),
        total_steps=_whole(settings.get("total_steps")),
        schedule_steps=config.schedule_steps if config and config.rate_decays else 0,
        command=train_command(config) if config else shlex.join(["coex", "train", "--config", f"{path}/config.json"]),
        settings=[(_text(name), _text(setting_text(value)), name in changed) for name, value in flat],
        state=_text(bonus.get("state", "")),
        grid=_grid(bonus),
        paper=_published(config, changed) if config else None,
    )


def train_command(config: RunConfig) -> str:
    """Returns `coex train …` with everything that is not the default."""
    words = ["coex", "train", config.game, "--method", config.method, "--steps", str(config.total_steps)]
    words += ["--seed", str(config.seed)]
    words += ["--preset", config.preset] if config.preset != "default" else []
    for name, value in changed_settings(config).items():
        text = setting_text(value)
        words += [_OPTIONS[name], text] if name in _OPTIONS else ["--set", f"{name}={text}"]
    return shlex.join(words)


def method_title(method: str) -> str:
    """a2c+coex → A2C+CoEX."""
    return "+".join(_TITLES.get(part, part) for part in method.split("+"))


def _understand(settings: dict[str, Any]) -> RunConfig | None:
    """The whole configuration; None for one of another version, or with code of its own, which is never imported."""
    if ":" in str(settings.get("method", "")):
        return None
    try:
        return read_config(settings)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _published(config: RunConfig, changed: dict[str, Any]) -> tuple[float, int] | None:
    """Of another ψ than its own only where the paper has it."""
    other = config.bonus.state if isinstance(config.bonus, CoexConfig) and "bonus.state" in changed else None
    return published_score(config.game, config.method, other)


def _grid(bonus: dict[str, Any]) -> Grid:
    """The grid of a bonus's settings; the default one, where they make no sense."""
    try:
        adm = ADMConfig(grid=bonus["adm"]["grid"], stride=bonus["adm"]["stride"])
    except (UsageError, TypeError, KeyError):
        adm = ADMConfig()
    return CoexConfig(locator="ram" if bonus.get("locator") == "ram" else "adm", adm=adm).grid


def _text(value: Any) -> str:
    return str(value)[:_LONGEST_TEXT]


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0
