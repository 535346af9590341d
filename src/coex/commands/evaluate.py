"""`coex eval`."""

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from coex.errors import UsageError


def add_commands(commands: Any) -> None:
    """Adds it to the command line."""
    _add_eval(commands)


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
    evaluate.add_argument(
        "--workers", metavar="N", default=-1, help="processes to run them in; 0: this one (default: one a core)"
    )
    evaluate.add_argument("--seed", metavar="S", default=0, help="of the environments (default: %(default)s)")
    evaluate.add_argument(
        "--sticky", metavar="P", help="chance that a frame repeats the last action (default: as trained)"
    )
    evaluate.add_argument("--device", metavar="NAME", default="cpu", help="(default: %(default)s)")
    evaluate.set_defaults(run=_eval)


def _eval(options: argparse.Namespace) -> int:
    from coex.analysis.evaluation import EvalConfig, evaluate
    from coex.analysis.trained import find_saved
    from coex.config.settings import with_settings
    from coex.runs.directory import write_json
    from coex.training.loop import pick_device

    numbers = {"episodes": options.episodes, "num_envs": options.envs, "num_workers": options.workers}
    settings = with_settings(EvalConfig(), numbers | {"seed": options.seed})
    if options.sticky is not None:
        settings = dataclasses.replace(settings, sticky=_number(options.sticky, "--sticky"))
    device = pick_device(options.device)
    step = whole_number(options.checkpoint, "--checkpoint") if options.checkpoint is not None else None
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


def whole_number(text: str, option: str) -> int:
    from coex.config.settings import parse_int

    try:
        return parse_int(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{option} takes a whole number, not {text!r}") from None
