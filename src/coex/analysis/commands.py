"""`coex eval` and `coex localise` on the command line."""

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from coex.errors import UsageError


def add_commands(commands: Any) -> None:
    _add_eval(commands)
    _add_localise(commands)


def _add_eval(commands: Any) -> None:
    evaluate = commands.add_parser(
        "eval",
        help="play with a run's policy and report its return",
        description="Play whole episodes with the policy of a run's checkpoint, in environments of its own, and report "
        "the mean return with its spread, and the location's error where the game's RAM tells.",
    )
    evaluate.add_argument("directory", metavar="RUN", type=Path, help="the run's directory")
    evaluate.add_argument("--episodes", metavar="K", default=40, help="how many (default: %(default)s)")
    evaluate.add_argument("--checkpoint", metavar="STEP", help="the checkpoint of this step (default: the newest)")
    evaluate.add_argument("--envs", metavar="N", default=16, help="environments side by side (default: %(default)s)")
    evaluate.add_argument("--workers", metavar="N", default=0, help="processes to run them in (default: one a core)")
    evaluate.add_argument("--seed", metavar="S", default=0, help="of the environments (default: %(default)s)")
    evaluate.add_argument(
        "--sticky", metavar="P", help="chance that a frame repeats the last action (default: as trained)"
    )
    evaluate.add_argument("--device", metavar="NAME", default="cpu", help="(default: %(default)s)")
    evaluate.set_defaults(run=_eval)


def _add_localise(commands: Any) -> None:
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


def _eval(options: argparse.Namespace) -> int:
    from coex.analysis.evaluate import EvalConfig, evaluate, find_saved
    from coex.config import with_settings
    from coex.rundir import write_json
    from coex.train import pick_device

    numbers = {"episodes": options.episodes, "num_envs": options.envs, "num_workers": options.workers}
    settings = with_settings(EvalConfig(), numbers | {"seed": options.seed})
    if options.sticky is not None:
        settings = dataclasses.replace(settings, sticky=_number(options.sticky, "--sticky"))
    device = pick_device(options.device)
    step = _whole_number(options.checkpoint, "--checkpoint") if options.checkpoint is not None else None
    saved = find_saved(options.directory, step, lambda text: print(f"coex: {text}", file=sys.stderr))
    result = evaluate(saved, settings, device)
    write_json(options.directory / f"eval-{result['step']}.json", result)
    print(_eval_line(result))
    return 0


def _eval_line(result: dict[str, Any]) -> str:
    spread = f" ± {result['return_standard_error']:.3g}" if result["return_standard_error"] is not None else ""
    parts = [
        f"{result['method']} on {result['game']}, step {result['step']:,}",
        f"mean return {result['return_mean']:.4g}{spread}",
        f"from {result['return_min']:g} to {result['return_max']:g} over {result['episodes']} episodes",
        f"{result['length_mean']:,.0f} steps an episode",
    ]
    if "distance" in result:
        parts.append(f"location off by {result['distance']:.2f} cells")
    return " · ".join(parts)


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option} takes a number, not {text!r}") from None


def _whole_number(text: str, option: str) -> int:
    from coex.config import parse_int

    try:
        return parse_int(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{option} takes a whole number, not {text!r}") from None


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
