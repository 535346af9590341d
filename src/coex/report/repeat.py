"""The command that repeats a run."""

import shlex

from coex.config.presets import changed_settings
from coex.config.run import RunConfig
from coex.config.settings import setting_text

# Settings with an option of their own.
_OPTIONS = {"num_envs": "--envs", "num_workers": "--workers", "device": "--device", "env.sticky": "--sticky"}


def train_command(config: RunConfig) -> str:
    """`coex train …` with everything that is not the default."""
    words = ["coex", "train", config.game, "--method", config.method, "--steps", str(config.total_steps)]
    words += ["--seed", str(config.seed)]
    for name, value in changed_settings(config).items():
        text = setting_text(value)
        words += [_OPTIONS[name], text] if name in _OPTIONS else ["--set", f"{name}={text}"]
    return shlex.join(words)
