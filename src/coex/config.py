"""The complete description of a run: what `config.json` holds and `--set key=value` changes."""

import dataclasses
import difflib
import json
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from coex.bonuses.coex import CoexConfig
from coex.bonuses.simhash import SimHashConfig
from coex.checkpoints import CheckpointConfig
from coex.envs import GameConfig
from coex.errors import UsageError
from coex.learners.a2c import A2CConfig
from coex.learners.batch import RewardConfig
from coex.learners.ppo import PPOConfig

T = TypeVar("T")
LearnerConfig = A2CConfig | PPOConfig
BonusConfig = CoexConfig | SimHashConfig


@dataclass(frozen=True)
class RunConfig:
    """One run, complete: the same configuration on the same machine gives the same run."""

    game: str
    method: str
    preset: str = "default"  # what the other settings are by default
    total_steps: int = 1_000_000  # agent steps over all environments
    seed: int = 0
    num_envs: int = 16
    num_workers: int = 0  # processes for the environments; 0: as many as there are cores
    schedule_steps: int = 0  # the learning rate reaches 0 here; 0: at total_steps
    log_every_steps: int = 0  # 0: about 200 points a run, from 1,000 to 50,000 steps apart
    device: str = "cpu"
    env: GameConfig = field(default_factory=GameConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    learner: LearnerConfig = field(default_factory=A2CConfig)
    bonus: BonusConfig | None = None
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        for name, option in (("total_steps", "--steps"), ("num_envs", "--envs")):
            if getattr(self, name) < 1:
                raise UsageError(f"{option} takes a whole number of at least 1, not {getattr(self, name)}")
        for name, option in (("num_workers", "--workers"), ("seed", "--seed")):
            if getattr(self, name) < 0:
                raise UsageError(f"{option} takes a whole number of at least 0, not {getattr(self, name)}")
        for name in ("schedule_steps", "log_every_steps"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must not be negative, not {getattr(self, name)}")
        if isinstance(self.learner, PPOConfig):
            transitions = self.num_envs * self.learner.num_steps
            if transitions < self.learner.num_minibatches:
                raise UsageError(f"learner.num_minibatches: a rollout has only {transitions} steps to share out")
            if self.learner.two_value_heads and self.bonus is None:
                raise UsageError(f"learner.two_value_heads needs a bonus, and {self.method} has none")

    def resolved(self) -> "RunConfig":
        """With the numbers that 0 stood for."""
        return dataclasses.replace(
            self,
            schedule_steps=self.schedule_steps or self.total_steps,
            log_every_steps=self.log_every_steps or _log_interval(self.total_steps),
        )

    @property
    def rate_decays(self) -> bool:
        """Whether the learning rate falls to 0 over `schedule_steps`."""
        return self.learner.decay_learning_rate

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def with_settings(config: T, settings: dict[str, Any], prefix: str = "") -> T:
    """`config` with nested `settings` put in; unknown names and wrong types are said, by their full name."""
    hints = typing.get_type_hints(type(config))
    changes: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in hints:
            raise UsageError(_unknown_setting(config, prefix + name, prefix))
        current = getattr(config, name)
        if dataclasses.is_dataclass(current) and not isinstance(current, type):
            if not isinstance(value, dict):
                keys = ", ".join(f"{prefix}{name}.{key.name}" for key in dataclasses.fields(current))
                raise UsageError(f"{prefix}{name} is a group of settings: set one of {keys}")
            changes[name] = with_settings(current, value, f"{prefix}{name}.")
        elif current is None:
            if value is not None:
                raise UsageError(f"{prefix}{name}: this method has no {name}")
        else:
            changes[name] = _convert(value, hints[name], prefix + name)
    try:
        return dataclasses.replace(config, **changes)  # type: ignore[type-var]
    except ValueError as error:  # a configuration that checks itself knows its fields, not where it stands
        raise UsageError(f"{prefix}{error}") from None


def _unknown_setting(config: Any, name: str, prefix: str) -> str:
    known = [prefix + key for key in typing.get_type_hints(type(config))]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known
    return f"there is no setting {name!r}; closest: {', '.join(close)}"


def _convert(value: Any, kind: Any, name: str) -> Any:
    """A value from JSON or, as a string, from the command line."""
    expected = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if typing.get_origin(kind) is typing.Literal:
        if value in typing.get_args(kind):
            return value
        raise UsageError(f"{name} takes one of {', '.join(map(str, typing.get_args(kind)))}, not {value!r}")
    try:
        if kind is bool:
            if isinstance(value, bool):
                return value
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[value.lower()]
        if kind is int:
            return parse_int(value)
        if kind is float and not isinstance(value, bool):
            return float(value)
        if kind is str and isinstance(value, str):
            return value
    except (ValueError, KeyError, AttributeError, TypeError):
        pass
    raise UsageError(f"{name} takes {expected.get(kind, kind)}, not {value!r}")


def parse_int(value: Any) -> int:
    """A whole number as people write it: 200000, 200_000, 2e5."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = float(value)
    if isinstance(value, bool) or not number.is_integer():
        raise ValueError(value)
    return int(number) if "e" in str(value).lower() or "." in str(value) else int(value)


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """`["learner.gamma=0.9"]` -> `{"learner": {"gamma": "0.9"}}`."""
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set takes key=value, such as learner.gamma=0.99, not {assignment!r}")
        *groups, last = name.strip().split(".")
        inner = settings
        for group in groups:
            inner = inner.setdefault(group, {})
            if not isinstance(inner, dict):
                raise UsageError(f"--set {name}: {group} is given a value as well")
        inner[last] = value.strip()
    return settings


def merge_settings(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Nested `settings` with nested `changes` put over them."""
    merged = dict(settings)
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = merge_settings(merged[name], value) if both else value
    return merged


def without_derived(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run without those that `RunConfig.resolved` made of its length: for one of another length."""
    steps = settings.get("total_steps")
    derived = {"schedule_steps": steps, "log_every_steps": _log_interval(steps)} if isinstance(steps, int) else {}
    return {name: value for name, value in settings.items() if name not in derived or derived[name] != value}


def _log_interval(total_steps: int) -> int:
    return min(max(total_steps // 200, 1_000), 50_000)


def flat_settings(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"learner": {"gamma": 0.9}}` → `{"learner.gamma": 0.9}`."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= flat_settings(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def setting_text(value: Any) -> str:
    """As `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def first_difference(ours: dict[str, Any], theirs: dict[str, Any], free: Sequence[str] = ()) -> str | None:
    """The first setting in which two configurations differ, as `learner.gamma is 0.99, not 0.9`; `free` ones may."""
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        one, other = ours.get(name), theirs.get(name)
        if name in free or one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            inner = first_difference(one, other)
            return inner and f"{name}.{inner}"
        return f"{name} is {one}, not {other}"
    return None


def lacking_settings(config: RunConfig, given: dict[str, Any]) -> list[str]:
    """The full names of the configuration's settings that are not among the given ones."""
    there = flat_settings(given)
    return [name for name in flat_settings(config.to_dict()) if name not in there]


def load_config(path: Path) -> dict[str, Any]:
    """The settings of a `config.json`, still to be checked by `make_config`."""
    try:
        settings = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(settings, dict) or not {"game", "method", "total_steps"} <= settings.keys():
        raise UsageError(f"{path} is not a run's config.json: game, method and total_steps must be there")
    for name in ("game", "method"):
        if not isinstance(settings[name], str):
            raise UsageError(f"{path}: {name} takes text, not {settings[name]!r}")
    return settings
