"""The command that repeats a run."""

import shlex
from typing import Any

from coex.config import RunConfig
from coex.methods import make_config

# Settings with an option of their own.
_OPTIONS = {"num_envs": "--envs", "num_workers": "--workers", "device": "--device", "env.sticky": "--sticky"}


def train_command(config: RunConfig) -> str:
    """`coex train …` with everything that is not the default."""
    words = ["coex", "train", config.game, "--method", config.method, "--steps", str(config.total_steps)]
    words += ["--seed", str(config.seed)]
    for name, value in changed_settings(config).items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        words += [_OPTIONS[name], text] if name in _OPTIONS else ["--set", f"{name}={text}"]
    return shlex.join(words)


def changed_settings(config: RunConfig) -> dict[str, Any]:
    """The settings, by full name, that differ from the method's on this game; a run's length and seed are its own."""
    defaults = make_config(config.game, config.method, {"total_steps": config.total_steps, "seed": config.seed})
    ours, theirs = flat_settings(config.to_dict()), flat_settings(defaults.to_dict())
    return {name: value for name, value in ours.items() if theirs.get(name) != value}


def flat_settings(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"learner": {"gamma": 0.9}}` → `{"learner.gamma": 0.9}`."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= flat_settings(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
