"""Trains with an archive, seed after seed, and keeps what came of it.

    python -m benchmarks.archive montezuma --runs runs/archive     # writes results/archive/GAME.json and .png
    python -m benchmarks.archive games --runs runs                 # writes results/archive/games.json and .md
    python -m benchmarks.archive minigrid --runs runs              # writes results/archive/minigrid.json and .md
    python -m benchmarks.archive speed                             # writes results/archive/speed.json

Runs of the first that are there already, finished or not, are gone on with. The policy is judged by 40 games from real
starts, and by 40 more with sticky actions, which it never met in training. The next two train nothing: they look for
finished runs of five more games, and of three grids, in all directories under `--runs`; the commands that make them are
in docs/archive.md. The last measures how fast both methods explore, on a machine that does nothing else.
"""

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks import machine
from benchmarks.measure import Settings, time_ours
from benchmarks.rows import GAME, Row
from coex.analysis.evaluation import EvalConfig, evaluate
from coex.analysis.trained import find_saved
from coex.cli import main as coex
from coex.config.archive import ArchiveConfig
from coex.config.run import RunConfig
from coex.envs import resolve_game
from coex.runs.directory import read_metrics
from coex.runs.resume import run_config
from coex.training.loop import pick_device

RESULTS = Path("results/archive")
STEPS = {"archive": 1_000_000, "archive-ram": 700_000}
SPEED_STEPS = 30_000
STICKY = (0.0, 0.25)
GAMES = ("PrivateEye", "Venture", "Hero", "Pitfall", "Gravitar")
GRIDS = ("MiniGrid-MultiRoom-N4-S5-v1", "MiniGrid-KeyCorridorS3R3-v0", "MiniGrid-ObstructedMaze-1Dl-v0")
LAYOUT = 5  # of the grids
CURVE = ("step", "archive/rooms", "rooms/true", "archive/best", "archive/cells", "adm/distance", "return_mean40")


def main() -> None:
    """Runs what is missing and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", help="or games, minigrid, speed")
    parser.add_argument("--methods", default="archive,archive-ram")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=0, help="of every run (default: the method's own)")
    parser.add_argument("--runs", type=Path, default=Path("runs/archive"))
    parser.add_argument("--render", action="store_true", help="train nothing: keep what is finished")
    options = parser.parse_args()
    if options.game in ("games", "minigrid"):
        keep_table(options.game, options.runs)
        return
    seeds = [int(seed) for seed in options.seeds.split(",")]
    if options.game == "speed":
        keep_speed(options.steps or SPEED_STEPS, seeds)
        return
    game = resolve_game(options.game)
    found = []
    for method in options.methods.split(","):
        for seed in seeds:
            out = options.runs / f"{method}-{seed}"
            if not options.render:
                steps = str(options.steps or STEPS[method])
                command = ["train", game, "--method", method, "--seed", str(seed), "--steps", steps]
                if coex([*command, "--out", str(out), "--resume", "--quiet"]):
                    raise SystemExit(1)
            if _is_finished(out):
                found.append(_describe(out, method, seed))
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{game}{f'-{options.steps}' if options.steps else ''}.json"
    path.write_text(json.dumps({"game": game, "machine": machine.facts(), "runs": found}, indent=1) + "\n")
    draw(found, game, path.with_suffix(".png"))
    print(path)


def _is_finished(run: Path) -> bool:
    try:
        return bool(json.loads((run / "summary.json").read_text())["finished"])
    except OSError:
        return False


def _describe(run: Path, method: str, seed: int) -> dict[str, Any]:
    points = read_metrics(run)
    every = max(len(points) // 40, 1)
    kept = [*points[:-1][::every], *(point for point in points if "teach/repaired" in point), points[-1]]
    unique = {point["step"]: {name: _short(point.get(name)) for name in CURVE} for point in kept}
    return {
        "method": method,
        "seed": seed,
        "training": run_config(run).setting,
        "steps": points[-1]["step"],
        "explored": points[-1]["archive/explore_steps"],
        "games": [_play(run, sticky) for sticky in STICKY] if points[-1]["teach/rounds"] else [],
        "curve": [unique[step] for step in sorted(unique)],
    }


def keep_table(name: str, runs: Path) -> None:
    """Writes what came of the finished runs of the five games, or of the grids, as numbers and as a table."""
    described = _describe_games(runs) if name == "games" else _describe_grids(runs)
    found = sorted(described, key=lambda run: [str(value) for value in run.values()][:3])
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({"machine": machine.facts(), "runs": found}, indent=1) + "\n")
    path = RESULTS / f"{name}.md"
    path.write_text(as_table(found))
    print(path)


def as_table(rows: Sequence[dict[str, Any]]) -> str:
    """Returns rows, all with the same keys, as Markdown; what is not known is a dash."""
    lines = [list(rows[0]), ["---"] * len(rows[0])] if rows else []
    lines += [[_as_cell(value) for value in row.values()] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _as_cell(value: Any) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def keep_speed(steps: int, seeds: Sequence[int]) -> None:
    """Writes the steps/s of exploring with both kinds of cells, without its first fifth, which is random play."""
    settings, options = Settings(steps=steps), ("--set", f"learner.explore_steps={steps}")
    before = machine.facts()
    rates: dict[str, list[float]] = {method: [] for method in STEPS}
    for seed in seeds:
        for method, found in rates.items():
            found.append(round(time_ours(Row(method, method, (), options, precision="bfloat16"), settings, seed), 1))
            print(f"{method}: {found[-1]:,.0f} steps/s")
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "speed.json"
    figures = {"game": GAME, "steps": steps, "machine": before, "steps_per_second": rates}
    path.write_text(json.dumps(figures, indent=1) + "\n")
    print(path)


def _find_runs(root: Path) -> Iterator[tuple[Path, RunConfig]]:
    for path in sorted(root.rglob("config.json")):
        if _is_finished(path.parent):
            yield path.parent, run_config(path.parent)


def _describe_games(runs: Path) -> Iterator[dict[str, Any]]:
    """The runs that did nothing but explore, with cells learned from pixels."""
    for run, config in _find_runs(runs):
        learner = config.learner
        explores = isinstance(learner, ArchiveConfig) and learner.explore_steps >= config.total_steps
        if config.game in GAMES and config.method == "archive" and explores:
            last = read_metrics(run)[-1]
            yield {
                "game": config.game,
                "seed": config.seed,
                "training": config.setting,
                "steps": last["step"],
                "best score": _short(last["archive/best"]),
                "steps of the way there": last["archive/best_length"],
                "saved games": last["archive/cells"],
                "rooms (clusters)": last["archive/rooms"],
                "rooms by RAM, random play included": last.get("rooms/true"),
                "cells off, at the end": _short(last.get("adm/distance")),
            }


def _describe_grids(runs: Path) -> Iterator[dict[str, Any]]:
    for run, config in _find_runs(runs):
        name, layout = config.game.removeprefix("gym:"), (config.env.levels, config.env.first_level)
        if name in GRIDS and layout == (1, LAYOUT) and config.method in ("archive", "a2c+coex"):
            points = read_metrics(run)
            yield {
                "grid": name,
                "method": config.method,
                "seed": config.seed,
                "training": config.setting or None,
                "steps": points[-1]["step"],
                "first goal by step": first_goal(run, points),
                "best way": points[-1].get("archive/best_length") or None,
                "policy's mean return at the end": _short(points[-1]["return_mean40"]),
            }


def first_goal(run: Path, points: Sequence[dict[str, Any]]) -> int | None:
    """Returns when a reward was first met: in an episode, or, by the log point after it, in an archive's burst."""
    with (run / "episodes.csv").open() as file:
        met = [int(row["step"]) for row in csv.DictReader(file) if float(row["return"]) > 0]
    met += [point["step"] for point in points if point.get("archive/best", 0) > 0]
    return min(met, default=None)


def _play(run: Path, sticky: float) -> dict[str, Any]:
    """The policy's games from real starts, which are played once."""
    saved = find_saved(run, None, print)
    path = run / f"games-{saved.manifest.step}-sticky-{sticky:g}.json"
    if not path.exists():
        result = evaluate(saved, EvalConfig(episodes=40, seed=1, sticky=sticky), pick_device("cpu"))
        path.write_text(json.dumps(result))
    result = json.loads(path.read_text())
    return {name: result[name] for name in ("sticky", "episodes", "return_mean", "return_standard_error", "returns")}


def draw(runs: list[dict[str, Any]], game: str, path: Path) -> None:
    """Draws the best score found, and the policy's return, over all steps of the emulator."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = {
        "archive/best": (f"{game}: best score in the archive", "points"),
        "return_mean40": ("the policy, from real starts", "mean return of 40 games"),
    }
    shown = [name for name in panels if any(point[name] is not None for run in runs for point in run["curve"])]
    figure, grid = pyplot.subplots(1, len(shown), figsize=(5 * len(shown), 3.6), layout="constrained", squeeze=False)
    colours = {"archive": "tab:orange", "archive-ram": "tab:gray"}
    for axis, name in zip(grid[0], shown, strict=True):
        for run in runs:
            points = [(point["step"] / 1e3, point[name]) for point in run["curve"] if point[name] is not None]
            first = run["seed"] == min(other["seed"] for other in runs if other["method"] == run["method"])
            label = run["method"] if first else None
            axis.plot(*(zip(*points, strict=True) if points else ([], [])), color=colours[run["method"]], label=label)
        axis.set(title=panels[name][0], xlabel="thousand steps", ylabel=panels[name][1])
    grid[0][0].legend()
    figure.savefig(path, dpi=110)


def _short(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
