"""`coex games`, `coex methods` and `coex settings`."""

import argparse
import textwrap
from typing import Any


def add_commands(commands: Any) -> None:
    """Adds the three to the command line."""
    games = commands.add_parser("games", help="list the games")
    games.set_defaults(run=_games)
    methods = commands.add_parser("methods", help="list the methods")
    methods.set_defaults(run=_methods)
    settings = commands.add_parser(
        "settings",
        help="list every setting of a method, with its meaning, its default and the paper's value",
        description="List every setting that --set takes: its default, the paper's value where it differs, and what it "
        "means.",
    )
    settings.add_argument("method", nargs="?", default="a2c+coex", metavar="METHOD", help="(default: %(default)s)")
    settings.add_argument("--game", default="montezuma", metavar="GAME", help="(default: %(default)s)")
    settings.set_defaults(run=_settings)


def _games(options: argparse.Namespace) -> int:
    from coex.envs import ROMS, ram
    from coex.results.published import GAMES as PAPER_GAMES

    first = [*PAPER_GAMES, *(game for game in ram.RAM_GAMES if game not in PAPER_GAMES)]
    width = max(map(len, first))
    print(f"{'game':{width}}  paper's settings  truth from RAM, to measure by")
    for game in first:
        truth = ["location"] * (game in ram.RAM_GAMES) + ["room"] * (game in ram.ROOM_GAMES)
        truth += ["held out from tuning"] * (game in ram.HELD_OUT_GAMES)
        print(f"{game:{width}}  {'yes' if game in PAPER_GAMES else 'no':16}  {', '.join(truth)}")
    others = ", ".join(game for game in ROMS if game not in first)
    print("\nAll other Atari games, with the default settings:\n" + textwrap.fill(others, 100))
    print("\nAny Gymnasium environment with discrete actions and an RGB picture: gym:ID,")
    print("such as gym:MiniGrid-DoorKey-6x6-v0 (pip install 'coex-rl[minigrid]').")
    return 0


def _methods(options: argparse.Namespace) -> int:
    from coex.config.presets import METHODS

    width = max(map(len, METHODS))
    print("\n".join(f"{name:{width}}  {description}" for name, description in METHODS.items()))
    return 0


def _settings(options: argparse.Namespace) -> int:
    from coex.config.describe import describe
    from coex.config.presets import make_config, paper_preset

    presets = ("default", paper_preset(options.method))
    default, paper = (make_config(options.game, options.method, preset=preset) for preset in presets)
    rows = describe(default, paper)
    print(f"{options.method} on {default.game}: --set NAME=VALUE changes a setting\n")
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for name, value, papers, meaning in rows:
        print(f"{name:{widths[0]}}  {value:{widths[1]}}  {papers:{widths[2]}}  {meaning}".rstrip())
    return 0
