"""`coex grid`: many runs from one file."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coex.commands.evaluate import whole_number
from coex.errors import UsageError

_ACTIONS = ("run", "status", "slurm", "work")


def add_commands(commands: Any) -> None:
    """Adds it and what can be done with a grid to the command line; `coex grid FILE` is `coex grid run FILE`."""
    grid = commands.add_parser(
        "grid",
        help="many runs from one file: on this machine, on Ray, or as a SLURM array",
        description="Run or resume all runs that a file names. Runs that fail are tried again; the same command goes "
        "on after Ctrl-C, and several machines with a common file system may work on one grid.",
        epilog="examples:\n"
        "  coex grid paper.toml --jobs 4\n"
        "  coex grid paper.toml --engine ray --address ray-head:6379\n"
        "  coex grid slurm paper.toml | sbatch\n"
        "  coex grid status paper.toml",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    plain = grid.parse_known_args

    def parse_known_args(words: Sequence[str], namespace: Any = None) -> Any:
        is_file = bool(words) and words[0] not in _ACTIONS and not words[0].startswith("-")
        return plain(["run", *words] if is_file else words, namespace)

    grid.parse_known_args = parse_known_args
    actions = grid.add_subparsers(dest="action", metavar="ACTION", required=True)
    run = actions.add_parser("run", help="run or resume what is not finished (the default)")
    run.add_argument("--engine", choices=("local", "ray"), default="local", help="what runs them (default: local)")
    run.add_argument("--jobs", metavar="N", help="runs at a time, locally (default: as many as there are cores for)")
    run.add_argument("--address", metavar="HOST:PORT", help="of a running Ray cluster (default: this machine's own)")
    run.add_argument("--retry", action="store_true", help="also try again what was given up")
    run.set_defaults(run=_run)
    status = actions.add_parser("status", help="how every run stands")
    status.set_defaults(run=_status)
    slurm = actions.add_parser("slurm", help="print an sbatch script for what is not finished")
    slurm.set_defaults(run=_slurm)
    work = actions.add_parser("work", help="bring one run to its end: what a task of the SLURM array does")
    work.set_defaults(run=_work)
    for action in (run, status, slurm, work):
        action.add_argument("grid", metavar="FILE", type=Path, help="the grid's file, or the directory of its runs")
    work.add_argument("name", metavar="NAME", help="the run, as 'coex grid status' lists it")


def _run(options: argparse.Namespace) -> int:
    if options.address and options.engine != "ray":
        raise UsageError("--address is Ray's: add --engine ray")
    jobs = whole_number(options.jobs, "--jobs") if options.jobs is not None else None
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs takes at least 1, not {jobs}")
    grid = _read(options.grid)

    from coex.grid.attempts import forgive, is_given_up

    for run in grid.runs if options.retry else ():
        if is_given_up(run, grid.config):
            forgive(run)
    if options.engine == "local":
        from coex.training.loop import pick_device  # here, so that bad input does not wait for torch

        for device in {run.config.device for run in grid.runs} - {"cpu"}:
            pick_device(device)
    jobs = jobs or max(1, (os.cpu_count() or 1) // grid.config.cores)
    return _drive(grid, grid.runs, options.engine, jobs, options.address)


def _work(options: argparse.Namespace) -> int:
    grid = _read(options.grid)
    runs = [run for run in grid.runs if run.name == options.name]
    if not runs:
        raise UsageError(f"{options.grid} has no run {options.name!r}: 'coex grid status {options.grid}' lists them")
    return _drive(grid, runs, "local", 1, None)


def _drive(grid: Any, runs: Sequence[Any], engine: str, jobs: int, address: str | None) -> int:
    from coex.grid.drive import drive, local_engine
    from coex.grid.on_ray import ray_engine
    from coex.runs.stopping import StopSignal

    grid.keep()
    print(f"{len(runs)} runs in {grid.out}; 'coex grid status {grid.out}' tells how they stand", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        stop = StopSignal()
        if engine == "ray":
            submit = stack.enter_context(ray_engine(grid.config, address))
        else:
            submit = stack.enter_context(local_engine(grid.config.cores, jobs, stop.received))
        stack.enter_context(stop)  # after Ray, which sets signals of its own
        lost = drive(runs, grid.config, submit, _say, stop.received)
        if stop.code:
            _say("the runs are stopped and saved; the same command goes on")
    for run in lost:
        _say(f"{run.name} was given up; its last words are in {run.records.with_suffix('.log')} (--retry tries again)")
    return stop.code or int(bool(lost))


def _status(options: argparse.Namespace) -> int:
    from coex.grid.plan import read_grid
    from coex.grid.status import describe, standing

    grid = read_grid(options.grid)
    print(describe([standing(grid, run) for run in grid.runs]))
    return 0


def _slurm(options: argparse.Namespace) -> int:
    from coex.grid.slurm import slurm_script

    grid = _read(options.grid)
    script = slurm_script(grid)
    grid.keep()
    print(script, end="")
    return 0


def _read(path: Path) -> Any:
    """The grid, once it is sure that none of its runs would be refused."""
    from coex.grid.plan import read_grid
    from coex.runs.files import CONFIG

    grid = read_grid(path)
    begun = [run for run in grid.runs if (run.out / CONFIG).exists()]
    if begun:
        from coex.runs.resume import check_same_config  # here, so that bad input does not wait for torch

        for run in begun:
            check_same_config(run.config, run.out)
    return grid


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
