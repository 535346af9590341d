"""`coex report`: the page of `coex watch` saved as one file, with what it shows inside."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from coex import __version__
from coex.analysis.trained import find_saved
from coex.errors import CoexError, UsageError
from coex.report.film import VideoConfig, record
from coex.report.play import has_best_way
from coex.runs.directory import runs_below
from coex.runs.resume import run_config
from coex.runs.visits import newest_checkpoint
from coex.watch.runs import Runs
from coex.watch.server import page_file

_LARGEST_VIDEO = 8_000_000  # bytes that go into the page
_VIDEO_SECONDS, _WAY_SECONDS = 30.0, 240.0


def check_runs(paths: Sequence[Path]) -> list[Path]:
    """Returns the directories of all runs in full; raises UsageError when one of them is no run, or is named twice."""
    resolved = [path.resolve() for path in runs_below(paths)]
    for index, path in enumerate(resolved):
        run_config(path)
        if path in resolved[:index]:
            raise UsageError(f"{path} is named twice")
    return resolved


def write_report(
    paths: Sequence[Path], out: Path, *, with_video: bool, warn: Callable[[str], None], score: float | None = None
) -> Path | None:
    """Writes the page, and the first run's video if asked for, which is returned; warns of what cannot be shown.

    Several runs are compared by the time to `score`, too.
    """
    video = _make_video(paths[0], warn) if with_video else None
    data = collect(paths, score)
    for run in data["runs"].values():
        for note in run["notes"]:
            warn(f"{run['path']}: {note}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        scratch = out.with_name(f".{out.name}.tmp")
        scratch.write_text(make_page(data), encoding="utf-8")
        scratch.replace(out)
    except OSError as error:
        raise CoexError(f"the report {out} could not be written: {error.strerror or error}") from error
    return video


def collect(paths: Sequence[Path], score: float | None = None) -> dict[str, Any]:
    """Returns all that the page shows of the runs, as it would ask the server for it."""
    runs, version = Runs(paths, score), -1
    while runs.version != version:  # large logs are read piece by piece
        version = runs.version
        runs.poll()
    overview = runs.overview(0)
    keys = [card["id"] for card in overview["runs"]]
    details = {key: runs.detail(key, 0) or {} for key in keys}
    scenes = {key: runs.live(key, is_present=False) or {} for key in keys}
    for key, run in details.items():
        place = newest_checkpoint(Path(run["path"]))
        scenes[key] |= _films(run, place) if place else {}
        if run["status"] == "running":
            run["notes"].append(
                f"It was still going on: this is how it stood at step {run['newest'].get('step', 0):,.0f}."
            )
        if not place:
            run["notes"].append("There is no checkpoint: no map and no video.")
    return {
        "made": f"coex report {__version__}",
        "single": keys[0] if len(keys) == 1 else None,
        "overview": overview,
        "runs": details,
        "scenes": scenes,
    }


def make_page(data: dict[str, Any]) -> str:
    """Returns the page with its scripts, styles and data inside; its policy lets nothing else run or load."""
    hashes: dict[str, list[str]] = {"script": [], "style": []}

    def put_in(kind: str, name: str) -> str:
        content = page_file(name).decode()
        hashes[kind].append(f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'")
        return f"<{kind}>{content}</{kind}>"

    page = page_file("index.html").decode()
    page = re.sub(r'<link rel="stylesheet" href="([\w.]+)">', lambda match: put_in("style", match[1]), page)
    page = re.sub(r'<script src="([\w.]+)" defer></script>', lambda match: put_in("script", match[1]), page)
    policy = (
        f"default-src 'none'; script-src {' '.join(hashes['script'])}; style-src {' '.join(hashes['style'])}; "
        "img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )
    content = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = page.replace("<title>", f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<title>', 1)
    return page.replace(
        "<noscript>", f'<script type="application/json" id="embedded">{content}</script>\n<noscript>', 1
    )


def _make_video(path: Path, warn: Callable[[str], None]) -> Path | None:
    """The film of the newest checkpoint, and that of an archive's best way, made if they are not there."""
    try:
        saved = find_saved(path, None, warn)
        out = path / f"video-{saved.manifest.step}.mp4"
        if not out.exists():
            record(saved, VideoConfig(seconds=_VIDEO_SECONDS), out)
        way = path / f"best-way-{saved.manifest.step}.mp4"
        if has_best_way(saved) and not way.exists():
            record(saved, VideoConfig(seconds=_WAY_SECONDS, best_way=True), way)
    except CoexError as error:
        warn(f"{path}: there is no video: {error}")
        return None
    return out


def _films(run: dict[str, Any], checkpoint: Path) -> dict[str, str]:
    """What the page needs to show the films of a checkpoint, if `coex video` has made them."""
    step = int(checkpoint.name.removeprefix("step-"))
    words = []
    if "adm/loss" in run["columns"]:
        words.append("Orange is the attention, the white corners are where it believes to be.")
    if "counts/states" in run["columns"]:
        words.append("N counts the visits of the present state in training.")
    acting = f"{run['method']} after {step:,} steps, acting by sampling, as in training."
    way = f"{run['method']} after {step:,} steps: the way to the best score, as the search found it, not the policy."
    films = {}
    for name, kind, what in (("film", "video", acting), ("way_film", "best-way", way)):
        film = Path(run["path"]) / f"{kind}-{step}.mp4"
        if film.is_file() and film.stat().st_size <= _LARGEST_VIDEO:
            films[name] = f"data:video/mp4;base64,{b64encode(film.read_bytes()).decode()}"
            films[f"{name}_caption"] = " ".join([what, *words])
    return films
