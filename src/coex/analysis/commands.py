"""`coex localise` on the command line."""

import argparse
import json
import sys
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
    localise.add_argument("games", nargs="+", metavar="GAME", help="games with RAM truth, or 'all'")
    localise.add_argument("--steps", metavar="N", default="200000", help="transitions to train on (default: 200000)")
    localise.add_argument("--seed", metavar="S", default="0", help="(default: 0)")
    localise.add_argument("--device", metavar="NAME", default="cpu", help="(default: cpu)")
    localise.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("results/localise"), help="(default: %(default)s)"
    )
    localise.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="assignments",
        help="a field of the model's configuration, such as attention=softmax; may be given several times",
    )  # fmt: skip
    localise.set_defaults(run=_localise)


def _localise(options: argparse.Namespace) -> int:
    from coex.config import parse_assignments, parse_int, with_settings
    from coex.envs import ram, resolve_game
    from coex.representation.adm import ADMConfig
    from coex.train import pick_device

    try:
        steps, seed = parse_int(options.steps), parse_int(options.seed)
    except (ValueError, OverflowError):
        raise UsageError("--steps and --seed take whole numbers") from None
    if steps < 1_000 or seed < 0:
        raise UsageError("--steps takes at least 1000, and --seed at least 0")
    config = with_settings(ADMConfig(), parse_assignments(options.assignments))
    device = pick_device(options.device)
    games = list(ram.RAM_GAMES) if options.games == ["all"] else [resolve_game(game) for game in options.games]
    for game in games:
        _localise_one(game, config, steps, seed, device, options.out)
    return 0


def _localise_one(game: str, config: Any, steps: int, seed: int, device: Any, out: Path) -> None:
    import dataclasses

    from coex.analysis.figures import draw_localisation
    from coex.analysis.localise import localise

    def show(point: dict[str, Any]) -> None:
        line = f"{game}: {point['step']:,} steps · {point['distance']:.2f} cells off · accuracy {point['accuracy']:.2f}"
        print(line, file=sys.stderr, flush=True)

    points = localise(game, config, steps, seed, device, on_point=show)
    out.mkdir(parents=True, exist_ok=True)
    result = {"game": game, "steps": steps, "seed": seed, "adm": dataclasses.asdict(config), "points": points}
    (out / f"{game}-s{seed}.json").write_text(json.dumps(result, indent=1) + "\n")
    draw_localisation(out)
    print(f"{game}: {points[-1]['distance']:.2f} cells off after {steps:,} steps (seed {seed}); see {out}")
