"""`coex compare`: bonuses side by side on one game."""

import argparse
import contextlib
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coex.commands.evaluate import whole_number
from coex.errors import UsageError

_PLAIN = "none"  # the learner without a bonus
_SOME_FAILED = 1  # exit code
_Planned = tuple[Path, Any, list[str]]  # a run's directory, configuration and command


def add_commands(commands: Any) -> None:
    compare = commands.add_parser(
        "compare",
        help="bonuses side by side on one game: run what is missing, and write one page",
        description="Run or resume what is missing, each run in a process of its own, and write one page: curves with "
        "intervals, rooms, states, steps a second, memory, and the time to a score. Ctrl-C stops, and the same command "
        "goes on.",
        epilog="examples:\n"
        "  coex compare freeway --bonuses none,coex,rnd,cts --steps 2e5 --seeds 3\n"
        "  coex compare gym:MiniGrid-MultiRoom-N4-S5-v1 --level 5 --bonuses coex,e3b --set coex:bonus.state=xy "
        "--learners a2c,ppo --steps 2e5\n"
        "  coex compare freeway --bonuses none,coex,rnd --steps 2e5 --seeds 3 --jobs 2\n"
        "  coex compare montezuma --bonuses coex,rnd --steps 5e5 --list > queue.sh",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument("game", metavar="GAME", help="a game as 'coex games' lists them, or gym:ID")
    compare.add_argument(
        "--bonuses", metavar="A,B", required=True, help="what comes after the + in 'coex methods'; none: no bonus"
    )
    compare.add_argument("--learners", metavar="A,B", default="a2c", help="a2c, ppo or both (default: %(default)s)")
    compare.add_argument("--steps", metavar="N", required=True, help="agent steps of each run")
    compare.add_argument("--seeds", metavar="K", default="1", help="how many, from 0 on (default: %(default)s)")
    compare.add_argument("--score", metavar="X", help="the time to this mean return (default: half of the best)")
    compare.add_argument(
        "--level", metavar="N", help="of a gym: environment: all episodes begin in the layout of this seed"
    )
    compare.add_argument("--preset", metavar="NAME", default="default", help="as of 'coex train'")
    compare.add_argument("--envs", metavar="N", help="as of 'coex train'")
    compare.add_argument("--workers", metavar="N", help="as of 'coex train' (with --jobs: its share of the cores)")
    compare.add_argument(
        "--jobs",
        metavar="N",
        help="so many runs at a time, each with its share of the cores; one that fails does not stop the others",
    )
    compare.add_argument(
        "--set",
        metavar="[BONUS:]KEY=VALUE",
        action="append",
        default=[],
        dest="assignments",
        help="for all of the runs, or for those of one bonus",
    )
    compare.add_argument(
        "--runs", metavar="DIR", type=Path, default=Path("runs/compare"), help="where runs go (default: %(default)s)"
    )
    compare.add_argument(
        "--out", metavar="FILE.html", type=Path, help="the page (default: DIR/GAME.html, of a level GAME-level-N.html)"
    )
    compare.add_argument("--list", action="store_true", help="run nothing: print the commands of what is missing")
    compare.add_argument("--render", action="store_true", help="run nothing: write the page of what is there")
    compare.add_argument("--quiet", action="store_true", help="show nothing but errors and what was written")
    compare.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    planned = _plan(options)
    from coex.report.build import check_runs, write_report
    from coex.runs.directory import CONFIG
    from coex.runs.resume import is_finished

    missing = [(out, config, command) for out, config, command in planned if not is_finished(out, config)]
    if options.list:
        print("".join(f"coex {shlex.join(command)}\n" for _, _, command in missing), end="")
        return 0
    code = 0
    if not options.render:
        jobs = _jobs(options)
        code = _run_in_turn(options, missing) if jobs is None else _run_at_once(options, missing, jobs)
    there = [out for out, _, _ in planned if (out / CONFIG).exists()]
    if code and not (code == _SOME_FAILED and there):
        return code
    if not there:
        raise UsageError(f"there is no run in {options.runs} to show yet: leave --render away")
    page = options.out or options.runs / f"{planned[0][0].parent.name}.html"
    score = None if options.score is None else float(options.score)
    write_report(
        check_runs(there),
        page,
        with_video=False,
        warn=lambda note: print(f"coex: {note}", file=sys.stderr),
        score=score,
    )
    print(page)
    return code


def _run_in_turn(options: argparse.Namespace, missing: Sequence[_Planned]) -> int:
    """One after the other, each showing how it comes on; the first that fails is the last."""
    for number, (out, _, command) in enumerate(missing, start=1):
        _say(options, f"[{number}/{len(missing)}] {out}")
        code = run_command(command)
        if code:
            return code
    return 0


def _run_at_once(options: argparse.Namespace, missing: Sequence[_Planned], jobs: int) -> int:
    """`jobs` at a time, as those of a grid."""
    from coex.grid.attempts import forgive
    from coex.grid.drive import drive, local_engine
    from coex.grid.plan import GridConfig, PlannedRun, records_of
    from coex.runs.files import CONFIG
    from coex.runs.resume import check_same_config
    from coex.runs.stopping import StopSignal

    runs = []
    for out, config, command in missing:
        if (out / CONFIG).exists():
            check_same_config(config, out)
        name = str(out.relative_to(options.runs))
        runs.append(PlannedRun(name, out, config, tuple(command), records_of(options.runs, name)))
        forgive(runs[-1])  # who gives the command again wants another attempt
    _say(options, f"{len(runs)} runs are missing, {jobs} at a time; 'coex watch {options.runs}' shows them")
    grid = GridConfig(steps=1, cores=_cores(jobs), failures=1)
    with contextlib.ExitStack() as stack:
        stop = StopSignal()
        submit = stack.enter_context(local_engine(grid.cores, jobs, stop.received))
        stack.enter_context(stop)
        failed = drive(runs, grid, submit, lambda text: _say(options, text), stop.received)
    for run in failed:
        print(f"coex: {run.name} failed; its last words are in {run.records.with_suffix('.log')}", file=sys.stderr)
    if stop.code:
        _say(options, "the runs are stopped and saved; the same command goes on")
    return stop.code or (_SOME_FAILED if failed else 0)


def _jobs(options: argparse.Namespace) -> int | None:
    return None if options.jobs is None else _at_least_one(options.jobs, "--jobs")


def _at_least_one(text: str, option: str) -> int:
    number = whole_number(text, option)
    if number < 1:
        raise UsageError(f"{option} takes at least 1, not {number}")
    return number


def _cores(jobs: int) -> int:
    """Of each of so many runs at a time."""
    return max(1, (os.cpu_count() or 1) // jobs)


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        print(text, file=sys.stderr, flush=True)


def run_command(command: list[str]) -> int:
    """Runs `coex` with these arguments in a process of its own, so that none pays for another's memory."""
    try:
        return subprocess.run([sys.executable, "-m", "coex", *command], check=False).returncode
    except KeyboardInterrupt:  # which the run got as well, and has saved itself
        return 130


def _plan(options: argparse.Namespace) -> list[_Planned]:
    """Every run; mistakes show before the first one starts."""
    from coex.config.presets import make_config
    from coex.config.settings import merge_settings, parse_assignments
    from coex.grid.plan import run_name

    if options.out and options.out.suffix.lower() != ".html":
        raise UsageError(f"--out takes a file that ends in .html, not {options.out}")
    if options.score is not None:
        _check_number(options.score)
    steps, seeds = whole_number(options.steps, "--steps"), _at_least_one(options.seeds, "--seeds")
    jobs = _jobs(options)
    if jobs is not None and options.workers is None:
        options.workers = str(_cores(jobs))
    named = {"num_envs": options.envs, "num_workers": options.workers}
    settings = {"total_steps": steps} | {name: value for name, value in named.items() if value is not None}
    shared = ["--steps", str(steps), "--preset", options.preset]
    shared += [word for option in ("envs", "workers") if (value := getattr(options, option)) is not None
               for word in (f"--{option}", value)]  # fmt: skip
    shared += ["--quiet"] if options.quiet or jobs is not None else []
    bonuses = _names(options.bonuses, "--bonuses")
    assignments = [_split(assignment, bonuses) for assignment in [*_level(options), *options.assignments]]
    planned = []
    for seed in range(seeds):  # a seed of everything first, then the next
        for learner in _names(options.learners, "--learners"):
            for bonus in bonuses:
                method = learner if bonus == _PLAIN else f"{learner}+{bonus}"
                own = [assignment for whose, assignment in assignments if whose in ("", bonus)]
                merged = merge_settings(settings, parse_assignments(own))
                config = make_config(options.game, method, {**merged, "seed": seed}, options.preset)
                config.views()  # says so where a game cannot give what the method needs
                level = "" if options.level is None else f"-level-{options.level}"
                out = options.runs / run_name(config.game + level, method, steps, seed)
                command = ["train", config.game, "--method", method, "--seed", str(seed), *shared]
                command += [word for assignment in own for word in ("--set", assignment)]
                planned.append((out, config, [*command, "--out", str(out), "--resume"]))
    return planned


def _level(options: argparse.Namespace) -> list[str]:
    """The settings that --level stands for."""
    from coex.envs import is_atari, resolve_game

    if options.level is None:
        return []
    if is_atari(resolve_game(options.game)):
        raise UsageError("--level is for gym: environments: an Atari game has one layout")
    return ["env.levels=1", f"env.first_level={options.level}"]


def _split(assignment: str, bonuses: list[str]) -> tuple[str, str]:
    """coex:bonus.state=xy → the bonus whose setting it is, and bonus.state=xy; "" for a setting of all runs."""
    key, _, value = assignment.partition("=")
    bonus, _, name = key.rpartition(":")
    if bonus and bonus not in bonuses:
        raise UsageError(f"--set {assignment}: {bonus!r} is not one of --bonuses ({', '.join(bonuses)})")
    return bonus, f"{name}={value}" if "=" in assignment else name


def _names(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"{option} takes names, each once, with commas between, not {text!r}")
    return names


def _check_number(text: str) -> None:
    try:
        is_number = math.isfinite(float(text))
    except ValueError:
        is_number = False
    if not is_number:
        raise UsageError(f"--score takes a number, not {text!r}")
