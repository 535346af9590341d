"""`coex report`: one page about runs, in one file."""

import itertools
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from coex import __version__
from coex.analysis.trained import find_saved
from coex.errors import CoexError, UsageError
from coex.report import comparison, costs, sections
from coex.report.film import VideoConfig, poster, record
from coex.report.run import Run, game_title, load_run, method_title
from coex.runs.resume import run_config

_LARGEST_VIDEO = 8_000_000  # bytes that go into the page
_VIDEO_SECONDS = 30.0


@dataclass(frozen=True)
class Written:
    """What came of it."""

    video: Path | None
    notes: list[str]


def load_runs(paths: Sequence[Path], warn: Callable[[str], None]) -> list[Run]:
    """Raises UsageError when one of them is no run, or is named twice."""
    repeated = [
        path for path, again in itertools.groupby(sorted(path.resolve() for path in paths)) if len([*again]) > 1
    ]
    if repeated:
        raise UsageError(f"{repeated[0]} is named twice")
    for path in paths:
        run_config(path)  # all of them, before the first is read
    return [load_run(path, warn) for path in paths]


def write_report(
    runs: list[Run], out: Path, *, with_video: bool, warn: Callable[[str], None], score: float | None = None
) -> Written:
    """Writes the page, and the first run's video if asked for; what cannot be shown is said on the page.

    Several runs are compared by the time to `score`, too.
    """
    notes: list[str] = []
    video = _make_video(runs[0], notes, warn) if with_video else None
    page = _single(runs[0], video) if len(runs) == 1 else _several(runs, score)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        scratch = out.with_name(f".{out.name}.tmp")
        scratch.write_text(page, encoding="utf-8")
        scratch.replace(out)
    except OSError as error:
        raise CoexError(f"the report {out} could not be written: {error.strerror or error}") from error
    return Written(video, notes + [f"{run.path}: {note}" for run in runs for note in run.notes()])


def _make_video(run: Run, notes: list[str], warn: Callable[[str], None]) -> Path | None:
    """The film of the newest checkpoint, made if it is not there."""
    out = _film_path(run)
    if out is None or out.exists():
        return out
    try:
        record(find_saved(run.path, run.checkpoint_step, warn), VideoConfig(seconds=_VIDEO_SECONDS), out)
    except CoexError as error:
        notes.append(f"{run.path}: there is no video: {error}")
        return None
    return out


def _film_path(run: Run) -> Path | None:
    """Where `coex video` puts the film of the newest checkpoint."""
    return None if run.checkpoint_step is None else run.path / f"video-{run.checkpoint_step}.mp4"


def _single(run: Run, video: Path | None) -> str:
    config = run.config
    body = (
        f'<header><p class="over">{escape(game_title(config.game))}</p><h1>{escape(method_title(config.method))}'
        f"</h1><p>{sections.status(run)} seed {config.seed} · {run.step:,} of {config.total_steps:,} steps</p>"
        f"{f'<p>with {escape(run.settings)}</p>' if run.settings else ''}</header>"
        f"{sections.notes(run)}{sections.headline(run)}"
        f"{_section('The agent at play', _video(run, video)) if video else ''}"
        f"{_section('Curves', sections.curves(run))}"
        f"{_section('Where it has been', sections.where_it_has_been(run, 'room-'))}"
        f"{_section('The run', sections.how_to_repeat(run))}"
    )
    return _page(run.title, body)


def _several(runs: list[Run], score: float | None) -> str:
    """The page that compares runs; films of their newest checkpoints that are there already are shown."""
    games = comparison.group_by_game(runs)
    over = f"{len(runs)} runs"
    title = ", ".join(game_title(game) for game in games)
    body = f'<header><p class="over">{over}</p><h1>{escape(title)}</h1></header>'
    for game, groups in games.items():
        films = "".join(
            _video(run, film) for group in groups for run in group.runs if (film := _film_path(run)) and film.exists()
        )
        films = f'<div class="films">{films}</div>' if films else ""
        body += _section(
            game_title(game), comparison.table(groups) + costs.table(groups, score) + films + comparison.curves(groups)
        )
    details = "".join(_details(run, index) for index, run in enumerate(runs))
    return _page(f"{over}: {title}", body + _section("Each run", details))


def _details(run: Run, index: int) -> str:
    name = f"{game_title(run.config.game)} · {run.variant} · seed {run.config.seed}"
    return (
        f"<details><summary>{escape(name)} {sections.status(run)}</summary>"
        f"{sections.notes(run)}{sections.headline(run)}{sections.curves(run)}"
        f"{sections.where_it_has_been(run, f'run-{index}-room-')}{sections.how_to_repeat(run)}</details>"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _video(run: Run, video: Path) -> str:
    name, step = method_title(run.config.method), run.checkpoint_step
    if video.stat().st_size > _LARGEST_VIDEO:
        return f"<p>The video is too large to be part of this page: <code>{escape(str(video))}</code>.</p>"
    still = f"data:image/jpeg;base64,{b64encode(poster(video)).decode()}"
    source = f"data:video/mp4;base64,{b64encode(video.read_bytes()).decode()}"
    return (
        f'<figure class="film"><video controls muted loop playsinline preload="auto" poster="{still}" src="{source}">'
        f'</video><img class="still" src="{still}" alt="A frame of the video">'
        f"<figcaption>{escape(name)} after {step:,} steps, acting by sampling, as in training. {_explain(run)}"
        "</figcaption></figure>"
    )


def _explain(run: Run) -> str:
    has_adm = run.last("adm/loss") is not None
    words = (
        "Orange is the attention, the white corners are the cell where the agent believes to be. " if has_adm else ""
    )
    has_counts = run.last("counts/states") is not None
    return words + ("N counts the visits of the present state in training." if has_counts else "")


def _page(title: str, body: str) -> str:
    style, script = (files("coex.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)} · coex</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"<footer>Made by <code>coex report</code>, version {__version__}. The paper’s scores: Choi et al., "
        "“Contingency-Aware Exploration in Reinforcement Learning”, ICLR 2019.</footer>\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )
