"""The curves of runs as small files, from which everything is drawn: the runs themselves may be elsewhere."""

import csv
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coex.config.presets import changed_settings
from coex.config.run import OPERATIONAL, RunConfig
from coex.config.settings import setting_text
from coex.errors import UsageError
from coex.paper.study import Row, Study, game_slug, variant_name
from coex.results.statistics import Floats, aggregate
from coex.runs.directory import CONFIG, METRICS, read_metrics, score_at
from coex.runs.resume import run_config

COLUMNS = (
    "step", "seconds", "episodes", "return_mean40", "max_return_mean40", "adm/distance", "adm/accuracy",
    "rooms/ari", "rooms/ari_long", "rooms/clusters", "rooms/true", "counts/states",
)  # fmt: skip
MAX_POINTS = 200

Point = dict[str, Any]


@dataclass(frozen=True)
class RunKey:
    """One run among all of the paper's; the same for every table and figure that uses it."""

    game: str
    variant: str
    steps: int
    seed: int

    @property
    def path(self) -> Path:
        return Path(game_slug(self.game), self.variant, str(self.steps), f"s{self.seed}")


@dataclass(frozen=True)
class Curve:
    """What is kept of a run."""

    budget: int
    seed: int
    points: list[Point]

    @property
    def reached(self) -> int:
        return int(self.points[-1]["step"])

    @property
    def is_finished(self) -> bool:
        return self.reached >= self.budget


@dataclass(frozen=True)
class TableCell:
    """A measured value: within `steps` steps, over `seeds` seeds. None where no episode had ended by then."""

    value: float | None
    low: float | None
    high: float | None
    steps: int
    seeds: int


def key_of(config: RunConfig) -> RunKey:
    """Which run that is: its method, and every setting in which it differs from the preset."""
    changed = {
        name: setting_text(value)
        for name, value in changed_settings(config).items()
        if name.partition(".")[0] not in OPERATIONAL
    }
    return RunKey(config.game, variant_name(config.method, config.preset, changed), config.total_steps, config.seed)


def extract(run: Path, out: Path) -> Path:
    """Keeps a run's curve and configuration under `out`, unless a longer one of the same run is there."""
    config = run_config(run)
    points = read_metrics(run) if (run / METRICS).is_file() else []
    if not points:
        raise UsageError(f"{run} has nothing to show yet: not one log point")
    path = curve_path(key_of(config), out)
    if not path.exists() or read_curve(path).reached <= points[-1]["step"]:
        write_curve(path, points)
        shutil.copyfile(run / CONFIG, path.with_suffix(".json"))  # `coex train --config` repeats the run
    return path


def collect(runs: Path, out: Path) -> None:
    """Keeps the curves of all runs below `runs`, as far as they have come."""
    for metrics in sorted(runs.glob(f"*/*/*/s*/{METRICS}")):
        if metrics.stat().st_size:
            extract(metrics.parent, out)


def curve_path(key: RunKey, out: Path) -> Path:
    return (out / "curves" / key.path).with_suffix(".csv")


def write_curve(path: Path, points: Sequence[Point]) -> None:
    """At most 200 of the points, evenly spread, with the last one."""
    chosen = np.unique(np.linspace(0, len(points) - 1, MAX_POINTS).round().astype(int))
    columns = [name for name in COLUMNS if any(point.get(name) is not None for point in points)]
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")  # a curve that is there is whole
    with scratch.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(points[i].get(name)) for name in columns] for i in chosen)
    scratch.replace(path)


def read_curve(path: Path) -> Curve:
    try:
        with path.open(newline="") as file:
            points = [
                {name: float(text) if text else None for name, text in row.items()} for row in csv.DictReader(file)
            ]
        steps = [point["step"] for point in points]
        if not steps or None in steps:
            raise ValueError("no steps")
        seed, budget = int(path.stem.removeprefix("s")), int(path.parent.name)
    except (OSError, ValueError, TypeError, KeyError):
        raise UsageError(f"{path} is not a curve that 'coex paper' wrote: remove it, or restore it") from None
    for point in points:
        point.setdefault("max_return_mean40", None)  # a run too short for its first episode
    return Curve(budget, seed, points)


def find_curves(out: Path, game: str, variant: str, steps: int) -> list[Curve]:
    """One budget's seeds: of the budgets that tell most about `steps` steps, the smallest.

    Seeds that came as far as they should, if there are any; otherwise those that are on their way.
    """
    budgets: dict[int, list[Curve]] = defaultdict(list)
    for path in sorted((out / "curves" / game_slug(game) / variant).glob("*/s*.csv")):
        curve = read_curve(path)
        budgets[curve.budget].append(curve)
    if not budgets:
        return []
    reach = {budget: max(min(curve.reached, budget, steps) for curve in curves) for budget, curves in budgets.items()}
    budget = min(budgets, key=lambda budget: (-reach[budget], budget))
    complete = [curve for curve in budgets[budget] if curve.reached >= min(budget, steps)]
    return complete or budgets[budget]


def shown_steps(curves: Iterable[Curve], steps: int) -> int:
    """How far all these runs have come, within `steps`."""
    return min(min(curve.reached, curve.budget, steps) for curve in curves)


def measure(study: Study, row: Row, game: str, steps: int, out: Path) -> TableCell | None:
    """Our score for one cell of a table; None if it was not run."""
    curves = find_curves(out, game, row.variant(game), steps)
    if not curves:
        return None
    shown = shown_steps(curves, steps) * row.steps // study.steps  # the paper reads some scores before the end
    # A run goes on to the end of its last rollout, which belongs to it.
    ends = [curve.reached if shown >= curve.budget else shown for curve in curves]
    scores = [score_at(curve.points, end) for curve, end in zip(curves, ends, strict=True)]
    values = [score for score in scores if score is not None]
    if not values:
        return TableCell(None, None, None, shown, len(curves))
    value, low, high = aggregate(values)
    return TableCell(float(value), _number(low), _number(high), shown, len(values))


def _number(value: Floats | None) -> float | None:
    return None if value is None else float(value)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)
