"""`coex video` and `coex report` on the command line."""

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from coex.commands.evaluate import whole_number
from coex.errors import UsageError


def add_commands(commands: Any) -> None:
    _add_video(commands)
    _add_report(commands)


def _add_video(commands: Any) -> None:
    video = commands.add_parser(
        "video",
        help="film a run's agent at play",
        description="Play with the policy of a run's checkpoint and film it: the game with the agent's attention over "
        "it, where it believes to be, where RAM says it is, and how often it was in this state before.",
    )
    video.add_argument("directory", metavar="RUN", type=Path, help="the run's directory")
    video.add_argument("--checkpoint", metavar="STEP", help="the checkpoint of this step (default: the newest)")
    video.add_argument("--episodes", metavar="K", default="1", help="how many (default: %(default)s)")
    video.add_argument("--seconds", metavar="S", default="60", help="of film, at most (default: %(default)s)")
    video.add_argument("--seed", metavar="S", default="0", help="of the game played (default: %(default)s)")
    video.add_argument(
        "--best-way", action="store_true", help="the best way that an archive found, instead of the policy at play"
    )
    video.add_argument("--out", metavar="FILE.mp4", type=Path, help="(default: RUN/video-STEP.mp4)")
    video.add_argument("--gif", action="store_true", help="also write it as a GIF of less than 5 MB, beside the MP4")
    video.set_defaults(run=_video)


def _add_report(commands: Any) -> None:
    report = commands.add_parser(
        "report",
        help="write a page about one run or several",
        description="Save the page of 'coex watch' as one HTML file that needs nothing else: curves with the paper's "
        "values, where the agent has been, a video, and how to repeat the run. Several runs are compared by game and "
        "method.",
    )
    report.add_argument("directories", nargs="+", metavar="RUN", type=Path, help="the runs' directories")
    report.add_argument(
        "--out", metavar="FILE.html", type=Path, help="(default: RUN/report.html; report.html here for several runs)"
    )
    report.add_argument("--no-video", action="store_true", help="do not film the agent of a single run")
    report.set_defaults(run=_report)


def _video(options: argparse.Namespace) -> int:
    from coex.analysis.trained import find_saved
    from coex.config.settings import with_settings
    from coex.report.film import VideoConfig, make_gif, record
    from coex.runs.lease import is_in_use

    step = whole_number(options.checkpoint, "--checkpoint") if options.checkpoint is not None else None
    settings = with_settings(
        VideoConfig(), {"episodes": options.episodes, "seconds": options.seconds, "seed": options.seed}
    )
    settings = dataclasses.replace(settings, best_way=options.best_way)
    _check_out(options.out, ".mp4")
    saved = find_saved(options.directory, step, _warn)
    if is_in_use(options.directory):
        _warn(f"{options.directory} is still going on: this is its checkpoint of step {saved.manifest.step:,}")
    kind = "best-way" if settings.best_way else "video"
    out = options.out or options.directory / f"{kind}-{saved.manifest.step}.mp4"
    print(f"filming the checkpoint of step {saved.manifest.step:,} …", file=sys.stderr)
    film = record(saved, settings, out)
    paths = [out]
    if options.gif:
        paths.append(out.with_suffix(".gif"))
        make_gif(*paths)
    ended = "game over" if film.is_over else "not over yet"
    sizes = " and ".join(f"{path} ({path.stat().st_size / 1e6:.1f} MB)" for path in paths)
    print(f"{film.seconds:.0f} seconds of play, score {film.score:,.10g} ({ended}): {sizes}")
    return 0


def _report(options: argparse.Namespace) -> int:
    from coex.report.build import check_runs, write_report

    _check_out(options.out, ".html")
    runs = check_runs(options.directories)
    many = len(runs) > 1
    out = options.out or (Path("report.html") if many else options.directories[0] / "report.html")
    with_video = not options.no_video and not many
    print("writing the report" + (" and filming the agent …" if with_video else " …"), file=sys.stderr)
    video = write_report(runs, out, with_video=with_video, warn=_warn)
    print(f"{out} ({out.stat().st_size / 1e6:.1f} MB)" + (f"; the video: {video}" if video else ""))
    return 0


def _check_out(out: Path | None, suffix: str) -> None:
    if out is None:
        return
    if out.is_dir():
        raise UsageError(f"--out {out} is a directory: name a file, such as {out / ('name' + suffix)}")
    if out.suffix.lower() != suffix:
        raise UsageError(f"--out takes a file that ends in {suffix}, not {out}")


def _warn(text: str) -> None:
    print(f"coex: {text}", file=sys.stderr)
