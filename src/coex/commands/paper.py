"""`coex paper` on the command line."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coex.errors import UsageError

if TYPE_CHECKING:
    from coex.paper.study import Request, Study


def add_commands(commands: Any) -> None:
    paper = commands.add_parser(
        "paper",
        help="the paper's tables and figures: run what is missing, and draw them",
        description="Without a name, lists the paper's tables and figures and what of them is measured. With a name "
        "and --steps, runs or resumes what is missing, one run after the other, and draws the result; Ctrl-C stops, "
        "and the same command goes on. Runs that several tables or figures need are run once.",
        epilog="examples:\n"
        "  coex paper table1 --steps 1e6 --seeds 1 --games freeway\n"
        "  coex paper table1 --render\n"
        "  coex paper table-psi --games gym:MiniGrid-DoorKey-6x6-v0 --steps 2e5\n"
        "  coex paper adm-ablation --steps 1e5\n"
        "  coex paper --add runs/montezuma-a2c-s0",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    paper.add_argument("name", nargs="?", metavar="NAME", help="a table or figure, as 'coex paper' lists them")
    paper.add_argument("--steps", metavar="N", help="agent steps of each run")
    paper.add_argument("--seeds", metavar="K", help="how many seeds of each, from 0 on (default: the paper's number)")
    paper.add_argument("--games", metavar="A,B", help="only these; also others than the paper's (default: all of its)")
    paper.add_argument("--methods", metavar="A,B", help="only these (default: all of its)")
    paper.add_argument("--render", action="store_true", help="run nothing: draw what is there, as far as --steps")
    paper.add_argument(
        "--add", metavar="RUN", nargs="+", type=Path, default=[], help="keep the curves of runs made by 'coex train'"
    )
    paper.add_argument(
        "--runs", metavar="DIR", type=Path, default=Path("runs/paper"), help="where runs go (default: %(default)s)"
    )
    paper.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("results/paper"),
        help="where curves, tables and figures go (default: %(default)s)",
    )  # fmt: skip
    paper.add_argument(
        "--workers", metavar="N", help="processes for the environments; 0: this one (default: one a core)"
    )
    paper.add_argument("--device", metavar="NAME", default="cpu", help="where networks run (default: %(default)s)")
    paper.add_argument("--quiet", action="store_true", help="show nothing but errors and what was written")
    paper.set_defaults(run=_paper)


def _paper(options: argparse.Namespace) -> int:
    from coex.config.run import lacking_settings
    from coex.config.settings import load_config
    from coex.paper.curves import collect, extract
    from coex.paper.missing import run_missing
    from coex.paper.studies import find_study
    from coex.runs.directory import CONFIG, runs_below
    from coex.runs.resume import run_config

    study = find_study(options.name) if options.name else None  # a mistake in the name comes before any work
    for run in runs_below(options.add):
        print(extract(run, options.out))
        if lacking := lacking_settings(run_config(run), load_config(run / CONFIG)):
            names = ", ".join(lacking)
            print(f"{run} is older than {names}: its curve counts as one with today's defaults", file=sys.stderr)
    if study is None:
        return 0 if options.add else _list(options)
    request = _request(study, options)
    if not options.render and options.steps is None:
        print(_status(study, request))
        print(
            f"To run what is missing, name a budget: coex paper {study.name} --steps 1e6 --seeds 1 --games "
            f"{study.games[0].lower()} (the paper's: --steps {study.steps} --seeds {study.seeds})"
        )
        return 0
    if options.render:
        collect(request.runs, request.out)
        return _render(study, request)
    return (study.run or run_missing)(study, request) or _render(study, request)


def _render(study: "Study", request: "Request") -> int:
    import dataclasses

    # A table shows all of its games, whichever of them were run just now.
    if set(request.games) <= set(study.games):
        request = dataclasses.replace(request, games=study.games)
    for path in study.render(study, request):
        print(path)
    if not request.quiet:
        print(_status(study, request), file=sys.stderr)
    return 0


def _list(options: argparse.Namespace) -> int:
    from coex.paper.studies import STUDIES

    for study in STUDIES.values():
        print(_status(study, _request(study, options)))
    return 0


def _status(study: "Study", request: "Request") -> str:
    """`table1  3 of 32 measured, to 1M steps  Table 1: A2C methods`."""
    from coex.paper.curves import find_curves, shown_steps
    from coex.paper.tables import NOT_RUN
    from coex.runs.progress import count

    cells = {(game, row.variant(game)) for row in study.our_rows() for game in request.games}
    found = [curves for game, variant in cells if (curves := find_curves(request.out, game, variant, request.steps))]
    farthest = max((shown_steps(curves, request.steps) for curves in found), default=0)
    state = f"{len(found)} of {len(cells)} measured, to {count(farthest)} steps" if found else NOT_RUN
    return f"{study.name:18}  {state:33}  {study.title}"


def _request(study: "Study", options: argparse.Namespace) -> "Request":
    from coex.envs import resolve_game
    from coex.paper.study import Request

    games = tuple(dict.fromkeys(resolve_game(game) for game in _names(options.games))) or study.games
    return Request(
        games=games,
        steps=study.steps if options.steps is None else _whole_number(options.steps, "--steps"),
        seeds=study.seeds if options.seeds is None else _whole_number(options.seeds, "--seeds"),
        methods=_methods(study, _names(options.methods)),
        runs=options.runs,
        out=options.out,
        device=options.device,
        workers=-1 if options.workers is None else _whole_number(options.workers, "--workers", least=0),
        quiet=options.quiet,
    )


def _methods(study: "Study", names: list[str]) -> tuple[str, ...]:
    known = list(dict.fromkeys(row.method for row in study.our_rows()))
    for name in names:
        if name not in known:
            raise UsageError(f"{study.name} has no method {name!r}; it has {', '.join(known)}")
    return tuple(names)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _whole_number(text: str, option: str, least: int = 1) -> int:
    from coex.config.settings import parse_int

    try:
        number = parse_int(text)
    except (ValueError, OverflowError):
        number = least - 1
    if number < least:
        raise UsageError(f"{option} takes a whole number of at least {least}, not {text!r}")
    return number
