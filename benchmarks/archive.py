"""Trains with an archive, seed after seed, and keeps what came of it.

    python -m benchmarks.archive montezuma --runs runs/archive     # writes results/archive/GAME.json and .png

Runs that are there already, finished or not, are gone on with. The policy is judged by 40 games from real starts, and
by 40 more with sticky actions, which it never met in training.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks import machine
from coex.analysis.evaluation import EvalConfig, evaluate
from coex.analysis.trained import find_saved
from coex.cli import main as coex
from coex.envs import resolve_game
from coex.runs.directory import read_metrics
from coex.training.loop import pick_device

RESULTS = Path("results/archive")
STEPS = {"archive": 1_000_000, "archive-ram": 700_000}
STICKY = (0.0, 0.25)
CURVE = ("step", "archive/rooms", "rooms/true", "archive/best", "archive/cells", "adm/distance", "return_mean40")


def main() -> None:
    """Runs what is missing and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--methods", default="archive,archive-ram")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=0, help="of every run (default: the method's own)")
    parser.add_argument("--runs", type=Path, default=Path("runs/archive"))
    parser.add_argument("--render", action="store_true", help="train nothing: keep what is finished")
    options = parser.parse_args()
    game = resolve_game(options.game)
    found = []
    for method in options.methods.split(","):
        for seed in map(int, options.seeds.split(",")):
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
        "steps": points[-1]["step"],
        "explored": points[-1]["archive/explore_steps"],
        "games": [_play(run, sticky) for sticky in STICKY] if points[-1]["teach/rounds"] else [],
        "curve": [unique[step] for step in sorted(unique)],
    }


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
