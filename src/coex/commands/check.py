"""`coex check` on the command line."""

import argparse
from pathlib import Path
from typing import Any

from coex.errors import UsageError


def add_commands(commands: Any) -> None:
    """Adds it to the command line."""
    parser = commands.add_parser(
        "check",
        help="play a world at random and tell whether the method suits it",
        description="Play a few thousand random steps and tell: is there something that obeys the actions, and where; "
        "how many rooms there are; how rewarding random play is; how fast it runs; and what to try.",
    )
    parser.add_argument("game", metavar="GAME", help="as for coex train, such as gym:MyEnv-v0 or gym:mymodule:MyEnv-v0")
    parser.add_argument("--steps", metavar="N", default="8000", help="of all environments (default: %(default)s)")
    parser.add_argument("--seed", metavar="S", default="0", help="(default: 0)")
    parser.add_argument("--workers", metavar="N", default="-1", help="processes; 0: none (default: one a core)")
    parser.add_argument(
        "--set",
        dest="assignments",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting, as for coex train",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, default=Path("check.png"), help="(default: %(default)s)")
    parser.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    from coex.config.settings import parse_assignments, parse_int
    from coex.envs import resolve_game
    from coex.method.threshold import FIRST_OBSERVATIONS

    try:
        steps, seed, workers = (parse_int(getattr(options, name)) for name in ("steps", "seed", "workers"))
    except (ValueError, OverflowError):
        raise UsageError("--steps, --seed and --workers take whole numbers") from None
    if steps < FIRST_OBSERVATIONS or seed < 0 or workers < -1:
        raise UsageError(f"--steps takes at least {FIRST_OBSERVATIONS}, --seed at least 0 and --workers at least -1")
    if options.out.suffix != ".png":
        raise UsageError(f"--out takes the name of a .png file, not {options.out}")
    game, changes = resolve_game(options.game), parse_assignments(options.assignments)
    if idle := changes.keys() - {"bonus", "env", "preset"}:
        raise UsageError(f"--set {min(idle)} changes nothing here: a check has settings of bonus and env")
    options.out.parent.mkdir(parents=True, exist_ok=True)  # before the minutes that it takes

    from coex.analysis.check import advise, check, describe_world
    from coex.analysis.plots import draw_world

    world = check(game, steps, seed, workers, changes)
    rows = describe_world(world)
    width = max(len(name) for name, _ in rows)
    print(f"{game}, {world.steps:,} random steps\n")
    print("\n".join(f"  {name:{width}}  {finding}" for name, finding in rows))
    print("\nWhat to try:")
    print("\n".join(f"  {line}" for line in advise(world)))
    draw_world(options.out, world.game, world.picture, world.grid, world.attention, world.samples)
    print(f"\nThe picture, what the model looks at, and the rooms: {options.out}")
    return 0
