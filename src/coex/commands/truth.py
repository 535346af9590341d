"""`coex localise` and `coex rooms` on the command line."""

import argparse
import csv
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from coex.errors import UsageError


def add_commands(commands: Any) -> None:
    localise = commands.add_parser(
        "localise",
        help="train the attentive dynamics model alone and measure it against RAM",
        description="Train the attentive dynamics model on a random policy's transitions and report, on held-out "
        "transitions of other seeds, how far its location is from the player's, in cells of the 9×9 grid.",
    )
    localise.add_argument(
        "games", nargs="+", metavar="GAME", help="games with RAM truth, 'all' of the paper's, or 'held-out'"
    )
    localise.add_argument("--steps", metavar="N", default="200000", help="transitions to train on (default: 200000)")
    localise.add_argument("--device", metavar="NAME", default="cpu", help="(default: cpu)")
    _add_common(localise, out="runs/localise", example="a field of the model's configuration: attention=softmax")
    localise.set_defaults(run=_localise)

    rooms = commands.add_parser(
        "rooms",
        help="compare the clusters of observations with the rooms in RAM",
        description="Gather trajectories through many rooms, by random play from saved games in rare places, and "
        "report how well the clusters of what is seen there name the rooms: the adjusted Rand index, samples of "
        "each cluster and, with --calibrate, what the scale of the projection changes.",
    )
    rooms.add_argument(
        "games", nargs="+", metavar="GAME", help="games with rooms in RAM, 'all' of the paper's, or 'held-out'"
    )
    rooms.add_argument("--steps", metavar="N", default="100000", help="observations to gather (default: 100000)")
    rooms.add_argument("--calibrate", action="store_true", help="also try other scales of the projection")
    _add_common(rooms, out="runs/rooms", example="a field of the clusters' configuration: threshold=0.5")
    rooms.set_defaults(run=_rooms)


def _add_common(command: argparse.ArgumentParser, out: str, example: str) -> None:
    command.add_argument("--seed", metavar="S", default="0", help="(default: 0)")
    command.add_argument("--out", metavar="DIR", type=Path, default=Path(out), help="(default: %(default)s)")
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="assignments",
        help=f"{example}; may be given several times",
    )  # fmt: skip


def _steps_and_seed(options: argparse.Namespace) -> tuple[int, int]:
    from coex.config.settings import parse_int

    try:
        steps, seed = parse_int(options.steps), parse_int(options.seed)
    except (ValueError, OverflowError):
        raise UsageError("--steps and --seed take whole numbers") from None
    if steps < 1_000 or seed < 0:
        raise UsageError("--steps takes at least 1000, and --seed at least 0")
    return steps, seed


def _games(names: Sequence[str], measurable: Sequence[str]) -> list[str]:
    """Those that are named, or `all` that we tune on, or those that are `held-out`."""
    from coex.envs import ram, resolve_game

    if list(names) in (["all"], ["held-out"]):
        return [game for game in measurable if (game in ram.HELD_OUT_GAMES) == (names[0] == "held-out")]
    return [resolve_game(name) for name in names]


def _localise(options: argparse.Namespace) -> int:
    from coex.config.presets import bonus_config
    from coex.config.settings import parse_assignments
    from coex.envs import ram
    from coex.runs.stopping import StopSignal
    from coex.training.loop import pick_device

    steps, seed = _steps_and_seed(options)
    changes = {"adm": parse_assignments(options.assignments)}
    games = _games(options.games, ram.RAM_GAMES)
    configs = {game: bonus_config("coex", game, changes).adm for game in games}
    device = pick_device(options.device)
    options.out.mkdir(parents=True, exist_ok=True)
    with StopSignal() as stop:
        for game, config in configs.items():
            _localise_one(game, config, steps, seed, device, options.out, stop.received)
            if stop.code:
                break
    return stop.code


def _localise_one(
    game: str, config: Any, steps: int, seed: int, device: Any, out: Path, should_stop: Callable[[], bool]
) -> None:
    from coex.analysis.localisation import localise
    from coex.analysis.plots import draw_localisation

    def show(point: dict[str, Any]) -> None:
        line = f"{game}: {point['step']:,} steps · {point['distance']:.2f} cells off · accuracy {point['accuracy']:.2f}"
        print(line, file=sys.stderr, flush=True)

    points = localise(game, config, steps, seed, device, on_point=show, should_stop=should_stop)
    if not points:
        print(f"{game}: stopped before the first of its 20 points", file=sys.stderr)
        return
    steps = min(steps, points[-1]["step"])  # fewer if it was stopped
    result = {"game": game, "steps": steps, "seed": seed, "adm": dataclasses.asdict(config), "points": points}
    (out / f"{game}-s{seed}.json").write_text(json.dumps(result, indent=1) + "\n")
    draw_localisation(out)
    print(f"{game}: {points[-1]['distance']:.2f} cells off after {steps:,} steps (seed {seed}); see {out}")


def _rooms(options: argparse.Namespace) -> int:
    from coex.analysis.agreement import require_rooms
    from coex.config.bonuses import ClusterConfig
    from coex.config.presets import GAMES, GameSettings
    from coex.config.settings import parse_assignments, with_settings
    from coex.envs import ram

    steps, seed = _steps_and_seed(options)
    settings = parse_assignments(options.assignments)
    games = _games(options.games, ram.ROOM_GAMES)
    for game in games:
        require_rooms(game)
    thresholds = {game: GAMES.get(game, GameSettings()).threshold for game in games}
    configs = {game: with_settings(ClusterConfig(threshold=thresholds[game]), settings) for game in games}
    options.out.mkdir(parents=True, exist_ok=True)
    for game, config in configs.items():
        _rooms_one(game, config, steps, seed, options.calibrate, options.out)
    return 0


def _rooms_one(game: str, config: Any, steps: int, seed: int, with_calibration: bool, out: Path) -> None:
    from coex.analysis.agreement import agreement, by_cluster, by_room, calibrate, gather
    from coex.analysis.plots import draw_calibration, draw_clusters

    def show(done: int, rooms: int) -> None:
        if done % 10_000 == 0 or done == steps:
            print(f"{game}: {done:,} observations · rooms {rooms}", file=sys.stderr, flush=True)

    trajectory = gather(game, config, steps, seed, on_batch=show)
    figures = agreement(trajectory.clusters, trajectory.rooms)
    sweep = calibrate(trajectory, config) if with_calibration else []
    clusters = by_cluster(trajectory.clusters, trajectory.rooms)
    result = {"game": game, "steps": steps, "seed": seed, "clustering": dataclasses.asdict(config)}
    result |= {"threshold": trajectory.threshold} | figures
    name = f"{game}-s{seed}"
    (out / f"{name}.json").write_text(json.dumps(result | {"calibration": sweep}, indent=1) + "\n")
    _write_csv(out / f"{name}-clusters.csv", clusters)
    _write_csv(out / f"{name}-rooms.csv", by_room(trajectory.clusters, trajectory.rooms))
    words = f"{game}, seed {seed}: true rooms {figures['rooms']}, clusters {figures['clusters']}, ARI {figures['ari']}"
    draw_clusters(out / f"{name}.png", f"{words} ({steps:,} observations)", clusters, trajectory.samples)
    if sweep:
        rows = [row for path in sorted(out.glob("*.json")) for row in _calibration(json.loads(path.read_text()))]
        _write_csv(out / "calibration.csv", rows)
        draw_calibration(out / "calibration.png", rows, config.projection_scale)
    print(f"{words}; see {out}")


def _calibration(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"game": result["game"], "seed": result["seed"]} | row for row in result["calibration"]]


def _write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
