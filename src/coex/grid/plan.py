"""The file that names many runs, and the runs that it names."""

import itertools
import json
import secrets
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coex.config.checks import check_settings
from coex.config.presets import make_config
from coex.config.run import RunConfig
from coex.config.settings import flat_settings, merge_settings, parse_int, setting_text, with_settings
from coex.errors import UsageError

RECORDS = ".grid"  # beside the runs, which are left to themselves: the file, attempts and what they printed
FILE, PLAN = "grid.toml", "plan.json"  # as it was written, and what follows from it, for those who only look
_NAMED = ("game", "method", "preset", "total_steps", "seed")  # by the file itself


@dataclass(frozen=True)
class GridConfig:
    """What a grid's file may say besides its games, methods and seeds."""

    steps: int  # of each run, over all of its environments
    out: str = ""  # the directory of all runs; by default runs/NAME of the file NAME.toml
    preset: str = "default"  # as of coex train
    cores: int = 1  # of each run
    gpus: float = 0.0  # of each run; a part of one where runs may share it
    failures: int = 5  # without progress, after which a run is given up
    backoff: float = 60.0  # seconds to wait after the first of them; then five times as long each
    settings: dict[str, Any] = field(default_factory=dict)  # of all runs, as --set has them
    sbatch: dict[str, Any] = field(default_factory=dict)  # more options of sbatch, for the SLURM script

    def __post_init__(self) -> None:
        check_settings(self, counts="steps cores failures", weights="gpus backoff")
        if self.gpus > 1 and self.gpus % 1:
            raise UsageError(f"gpus must be a part of one or a whole number, not {self.gpus}")
        for name, value in self.sbatch.items():
            if name == "array":
                raise UsageError("sbatch.array: there is a task for each run; sbatch.tasks-at-once limits them")
            if not isinstance(value, str | int | float) or "\n" in str(value):
                raise UsageError(f"sbatch.{name} takes a line of text, a number, true or false, not {value!r}")
        limit = self.sbatch.get("tasks-at-once", 1)
        if type(limit) is not int or limit < 1:
            raise UsageError(f"sbatch.tasks-at-once takes a whole number, at least 1, not {limit!r}")


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """One run of a grid: where it goes, what it is, and how `coex` is called for it."""

    name: str
    out: Path
    config: RunConfig
    command: tuple[str, ...]
    records: Path  # NAME.jsonl, and NAME.log beside it


@dataclass(frozen=True)
class Grid:
    """All runs of a file."""

    out: Path
    config: GridConfig
    runs: tuple[PlannedRun, ...]
    text: str  # of the file

    def keep(self) -> None:
        """Writes the file into the grid's directory, from where `read_grid` takes it, and the names of its runs."""
        (self.out / RECORDS).mkdir(parents=True, exist_ok=True)
        plan = {"failures": self.config.failures, "runs": [run.name for run in self.runs]}
        for name, text in ((FILE, self.text), (PLAN, json.dumps(plan))):
            _keep(self.out / RECORDS / name, text.encode())


def read_grid(path: Path) -> Grid:
    """Returns the grid of a file, or of a directory that a grid was started in.

    Raises UsageError for anything that would stop one of its runs, before there is one.
    """
    source = path / RECORDS / FILE if path.is_dir() else path
    try:
        text = source.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        hint = " (no grid was started in this directory)" if path.is_dir() else ""
        raise UsageError(f"cannot read {source}: {error.strerror}{hint}") from None
    except ValueError as error:  # also of bytes that are no text
        raise UsageError(f"{source} is not TOML: {error}") from None
    try:
        return _plan(table, path.resolve() if path.is_dir() else None, path.stem, text)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def run_name(game: str, method: str, steps: int, seed: int) -> str:
    """Returns a run's place below a directory of many."""
    return f"{game_name(game)}/{method.replace(':', '-')}-{steps}-s{seed}"


def records_of(out: Path, name: str) -> Path:
    """Returns where the attempts at a run of the grid in the directory `out` are written down."""
    return out / RECORDS / f"{name.replace('/', '--')}.jsonl"


def game_name(game: str) -> str:
    """Returns a game's name as a file's."""
    return game.removeprefix("gym:").replace("/", "-").replace(":", "-")


def _plan(table: dict[str, Any], out: Path | None, stem: str, text: str) -> Grid:
    games, methods, seeds = (table.pop(name, None) for name in ("games", "methods", "seeds"))
    games, methods, seeds = _names(games, "games"), _names(methods, "methods"), _seeds(seeds)
    tables = {name: table.pop(name, {}) for name in ("settings", "sbatch")}
    for name, value in tables.items():
        if not isinstance(value, dict):
            raise UsageError(f"{name} is a table: write [{name}], and its settings below")
    if "steps" not in table:
        raise UsageError("steps is missing: how long is each run?")
    config = with_settings(GridConfig(steps=1, **tables), table)
    for name in _NAMED:
        if name in config.settings:
            raise UsageError(f"settings.{name}: that is said above, once for all runs")
    out = out or Path(config.out or Path("runs") / stem).absolute()
    settings = merge_settings({"num_workers": config.cores}, config.settings)
    settings = merge_settings({"device": "cuda"} if config.gpus else {}, settings)
    # A seed of everything first, then the next: so there is something to compare early.
    runs = [_run(game, method, seed, settings, config, out)
            for seed, game, method in itertools.product(seeds, games, methods)]  # fmt: skip
    _check_different((run.name for run in runs), "two of its runs are")
    return Grid(out, config, tuple(runs), text)


def _keep(path: Path, content: bytes) -> None:
    """Puts a whole file in its place, if it is not there already: an array's tasks read and keep it at once."""
    if path.is_file() and path.read_bytes() == content:
        return
    scratch = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    scratch.write_bytes(content)
    scratch.replace(path)


def _run(game: str, method: str, seed: int, settings: dict[str, Any], grid: GridConfig, out: Path) -> PlannedRun:
    own = merge_settings(settings, {"total_steps": grid.steps, "seed": seed})
    config = make_config(game, method, own, grid.preset)
    config.views()  # says so where a game cannot give what the method needs
    name = run_name(config.game, method, grid.steps, seed)
    assignments = [f"{key}={setting_text(value)}" for key, value in flat_settings(settings).items()]
    command = ["train", config.game, "--method", method, "--preset", grid.preset, "--steps", str(grid.steps)]
    command += ["--seed", str(seed), *(word for one in assignments for word in ("--set", one))]
    command += ["--out", str(out / name), "--resume", "--quiet"]
    return PlannedRun(name, out / name, config, tuple(command), records_of(out, name))


def _names(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
        raise UsageError(f'{name} takes a list of names, such as {name} = ["…", "…"], not {value!r}')
    _check_different(value, f"{name} has")
    return value


def _seeds(value: Any) -> list[int]:
    """A number of seeds from 0 on, or a list of them."""
    try:
        seeds = [parse_int(seed) for seed in value] if isinstance(value, list) else list(range(parse_int(value)))
        if not seeds or min(seeds) < 0:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"seeds takes how many, such as 3, or a list, such as [0, 1, 5], not {value!r}") from None
    _check_different(map(str, seeds), "seeds has")
    return seeds


def _check_different(names: Iterable[str], what: str) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise UsageError(f"{what} {name} twice")
        seen.add(name)
