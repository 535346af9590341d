"""`coex train` and `coex resume`."""

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import Any

from coex.errors import UsageError


def add_commands(commands: Any) -> None:
    """Adds both to the command line."""
    _add_train(commands)
    _add_resume(commands)


def _add_train(commands: Any) -> None:
    train = commands.add_parser(
        "train",
        help="train an agent",
        description="Train an agent and write everything about it into one directory.",
        epilog="examples:\n"
        "  coex train montezuma --method a2c --steps 1e6\n"
        "  coex train freeway --method ppo+coex --steps 1e6\n"
        "  coex train gym:MiniGrid-DoorKey-6x6-v0 --steps 200000 --seed 1 --set learner.gamma=0.995\n"
        "  coex train --config runs/old/config.json --out runs/again",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    train.add_argument("game", nargs="?", metavar="GAME", help="a game as 'coex games' lists them, or gym:ID")
    train.add_argument("--method", metavar="NAME", help="what learns; 'coex methods' lists them (default: a2c)")
    train.add_argument(
        "--preset", metavar="NAME", help="default, which learns within 1e5 to 1e6 steps, or paper: the paper's own "
        "settings, made for 1e8",
    )  # fmt: skip
    train.add_argument("--steps", metavar="N", help="agent steps over all environments (default: 1e6)")
    train.add_argument("--seed", metavar="S", help="the same seed gives the same run (default: 0)")
    train.add_argument(
        "--out", metavar="DIR", type=Path, help="the run's directory (default: runs/GAME-METHOD-sSEED-TIME)"
    )
    train.add_argument("--envs", metavar="N", help="environments side by side (default: the method's, in the preset)")
    train.add_argument("--workers", metavar="N", help="processes to run them in; 0: this one (default: one a core)")
    train.add_argument("--device", metavar="NAME", help="where the networks run: cpu, cuda, cuda:1, mps (default: cpu)")
    train.add_argument(
        "--sticky",
        metavar="P",
        help="chance that a frame repeats the last action (default: 0; 0.25 for PPO on Atari games)",
    )
    train.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="assignments",
        help="any field of config.json, such as learner.gamma=0.995; may be given several times",
    )  # fmt: skip
    train.add_argument("--config", metavar="FILE", type=Path, help="start from the config.json of another run")
    train.add_argument(
        "--resume", action="store_true", help="go on with the run in --out if it has been begun; start it otherwise"
    )
    _add_common(train)
    train.set_defaults(run=_train)


def _add_resume(commands: Any) -> None:
    resume = commands.add_parser(
        "resume",
        help="go on with a run that was stopped",
        description="Go on with a run from its newest checkpoint, to the end it was given or to another one.",
    )
    resume.add_argument("directory", metavar="RUN", type=Path, help="the run's directory")
    resume.add_argument("--steps", metavar="N", help="another end, in agent steps over all environments")
    resume.add_argument(
        "--schedule-steps", metavar="N", help="where the learning rate reaches 0 (default: where it did before)"
    )
    resume.add_argument("--workers", metavar="N", help="processes for the environments (default: as many as before)")
    resume.add_argument("--device", metavar="NAME", help="where the networks run (default: where they ran before)")
    _add_common(resume)
    resume.set_defaults(run=_resume)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wandb", metavar="PROJECT", help="also log to Weights & Biases (the extra coex-rl[wandb])")
    parser.add_argument("--quiet", action="store_true", help="show nothing but errors")


def _train(options: argparse.Namespace) -> int:
    config = _run_config(options)
    if options.resume and not options.out:
        raise UsageError("--resume needs --out: which run is to go on?")

    from coex.runs.directory import CONFIG  # here, so that bad input does not wait for torch
    from coex.runs.resume import check_same_config

    out = options.out or Path("runs") / _default_name(config)
    begun = options.resume and (out / CONFIG).exists()
    if begun:
        check_same_config(config, out)
    return _learn(config, out, options, resume=begun)


def _resume(options: argparse.Namespace) -> int:
    from coex.runs.resume import changed_config, run_config

    settings = {
        "total_steps": options.steps, "schedule_steps": options.schedule_steps,
        "num_workers": options.workers, "device": options.device,
    }  # fmt: skip
    config = changed_config(
        run_config(options.directory),
        options.directory,
        {name: value for name, value in settings.items() if value is not None},
    )
    return _learn(config, options.directory, options, resume=True)


def _learn(config: Any, out: Path, options: argparse.Namespace, *, resume: bool) -> int:
    from coex.config.presets import PAPER_STEPS
    from coex.core.ranks import is_first_process
    from coex.runs.progress import Progress, number
    from coex.runs.resume import is_finished
    from coex.runs.stopping import StopSignal
    from coex.training.loop import train

    # Of the processes that torchrun starts for one run, the first speaks.
    is_first = is_first_process()
    progress = Progress(config.total_steps, config.env.frame_skip, quiet=options.quiet or not is_first)
    if resume and is_finished(out, config):
        progress.say(f"{out} is finished: all {config.total_steps:,} steps are done (--steps extends it)")
        return 0
    progress.say(f"{config.method} on {config.game}, seed {config.seed}, {config.num_envs} environments → {out}")
    if config.preset == "paper" and config.total_steps < PAPER_STEPS:
        progress.say(
            f"the paper's settings are made for 100 million steps: within {PAPER_STEPS:,} expect few rewards, and a "
            "policy that hardly looks at the picture; the default settings learn sooner"
        )
    if config.total_steps <= getattr(config.learner, "explore_steps", 0):
        progress.say("all steps explore, and none are left to teach the policy (learner.explore_steps)")
    if config.rate_decays and config.total_steps > config.schedule_steps:
        progress.say(f"the learning rate is 0 from step {config.schedule_steps:,} on (schedule_steps)")
    stop = StopSignal()
    interrupting = stop.interrupting if is_first else stop.ending
    with stop:
        summary = train(config, out, progress, stop.received, interrupting, options.wandb, resume=resume)
    if summary["finished"]:
        progress.say(
            f"best mean return of 40 episodes: {number(summary.get('max_return_mean40'))}; everything is in {out}"
        )
    else:
        progress.say(f"stopped after {summary['step']:,} steps; 'coex resume {out}' goes on from there")
    return stop.code or (0 if summary["finished"] else 128 + signal.SIGTERM)  # another process was asked to stop


def _run_config(options: argparse.Namespace) -> Any:
    from coex.config.presets import make_config
    from coex.config.run import lacking_settings, without_derived
    from coex.config.settings import load_config, merge_settings, parse_assignments

    if options.config and options.preset:
        raise UsageError("--preset and --config exclude each other: a config.json holds every setting already")
    settings = load_config(options.config) if options.config else {}
    if options.steps is not None:
        settings = without_derived(settings)
    named = {
        "total_steps": options.steps, "seed": options.seed, "num_envs": options.envs,
        "num_workers": options.workers, "device": options.device,
    }  # fmt: skip
    settings = merge_settings(settings, {key: value for key, value in named.items() if value is not None})
    if options.sticky is not None:
        settings = merge_settings(settings, {"env": {"sticky": options.sticky}})
    settings = merge_settings(settings, parse_assignments(options.assignments))
    game = options.game or settings.pop("game", None)
    if game is None:
        raise UsageError("which game? 'coex games' lists them, or name a Gymnasium environment: gym:ID")
    method = options.method or settings.pop("method", "a2c")
    settings.pop("game", None), settings.pop("method", None)
    # The first runs did not say their preset, and were the paper's.
    config = make_config(game, method, settings, options.preset or ("paper" if options.config else "default"))
    if options.config and not options.quiet and (lacking := lacking_settings(config, load_config(options.config))):
        names = ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
        print(f"{options.config} does not have {names}: today's defaults are taken", file=sys.stderr)
    return config


def _default_name(config: Any) -> str:
    game = config.game.replace("gym:", "").replace("/", "-").replace(":", "-")
    return f"{game}-{config.method}-s{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
