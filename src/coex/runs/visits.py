"""Where an agent has been: its counts by room and by cell, with a picture of each room, as JSON can hold it."""

import contextlib
import re
import zipfile
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from coex.archive.tree import describe_ways
from coex.config.grid import Grid

MOST_ROOMS, NUM_STATES = 48, 6  # that are shown
_NEWEST = 4  # rooms that are shown however few their visits
_CHECKPOINT = re.compile(r"step-(\d{12,15})")
_COUNTS, _RECORD, _ARCHIVE = "agent/bonus/counts/", "agent/diagnostics/", "agent/explorer/archive/"
_READ = (_COUNTS, _RECORD, f"{_ARCHIVE}cells", f"{_ARCHIVE}scores", f"{_ARCHIVE}ways/")  # the arrays of a map
_LARGEST_ARRAY = 200_000_000  # bytes
Ints = NDArray[np.int64]
Frames = Mapping[int, NDArray[np.uint8]]


def describe_visits(
    step: int, letters: str, grid: Grid, keys: Ints, counts: Ints, frames: Frames, recent: Ints | None = None
) -> dict[str, Any]:
    """Returns the map of visits at a step.

    `keys` (S, |ψ|) are the states in the order of their first visits, `counts` (S,) their visits; `recent` (M, 2) are
    clusters with the true rooms that they lately were, where RAM tells.
    """
    rooms = keys[:, letters.index("c")] if "c" in letters else np.zeros_like(counts)
    names, first, where = np.unique(rooms, return_index=True, return_inverse=True)
    visits = np.bincount(where, counts, len(names)).astype(np.int64)
    states = np.bincount(where, minlength=len(names))
    heat = np.zeros((len(names), grid.cells, grid.cells), np.int64)
    located = {"x", "y"} <= set(letters)
    if located:
        np.add.at(heat, (where, keys[:, letters.index("y")], keys[:, letters.index("x")]), counts)
    newest = np.argsort(-first)
    shown = [*dict.fromkeys([*np.argsort(-visits, kind="stable")[: MOST_ROOMS - _NEWEST], *newest[:_NEWEST]])]
    most = np.argsort(-counts, kind="stable")[:NUM_STATES]
    rarest = np.lexsort((-np.arange(len(counts)), counts))[:NUM_STATES]
    return {
        "step": step,
        "letters": letters,
        "grid": grid._asdict(),
        "num_rooms": len(names),
        "num_states": len(counts),
        "num_once": int((counts == 1).sum()),
        "rooms": [
            {
                "name": int(names[index]),
                "true": _true_room(recent, int(names[index])),
                "visits": int(visits[index]),
                "states": int(states[index]),
                "heat": heat[index].ravel().tolist() if located else None,
                "newest": bool(len(names) > 1 and index == newest[0]),
                "picture": encode_png(frames[int(names[index])]) if int(names[index]) in frames else None,
            }
            for index in shown
        ],
        "most": [_state(letters, keys[index], counts[index]) for index in most],
        "rarest": [_state(letters, keys[index], counts[index]) for index in rarest],
    }


def saved_visits(run: Path, letters: str, grid: Grid) -> dict[str, Any] | None:
    """Returns the map of a run's newest checkpoint without reading the rest of it; None where there is none."""
    place = newest_checkpoint(run)
    path = place / "arrays.npz" if place else None
    if place is None or path is None or path.is_symlink() or not path.is_file():
        return None
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, IndexError, zipfile.BadZipFile):
        with zipfile.ZipFile(path) as archive:
            sizes = [info.file_size for info in archive.infolist() if info.filename.startswith(_READ)]
            if max(sizes) > _LARGEST_ARRAY:  # of others, such as an archive's saved games, any size will do
                return None
        with np.load(path, allow_pickle=False) as stored:
            counts = stored[_COUNTS + "counts"].astype(np.int64)
            keys = stored[_COUNTS + "keys"].astype(np.int64).reshape(-1, len(letters))
            rooms, pictures = stored[_RECORD + "album/rooms"].tolist(), stored[_RECORD + "album/frames"]
            recent = stored.get(_RECORD + "evidence/recent") if "c" in letters else None
            parts = ("cells", "scores", "ways/index", "ways/parents", "ways/actions/lengths")
            ways = [stored[_ARCHIVE + part] for part in parts] if _ARCHIVE + "cells" in stored else None
        step = int(place.name.removeprefix("step-"))
        if len(counts):
            frames = dict(zip(rooms, pictures, strict=True))
            found = describe_visits(step, letters, grid, keys, counts, frames, recent)
            return found | ({"ways": describe_ways(*ways)} if ways else {})
    return None


def newest_checkpoint(run: Path) -> Path | None:
    """Returns the directory of a run's newest checkpoint; links are not followed."""
    directory = run / "checkpoints"
    try:
        places = [] if directory.is_symlink() else [place for place in directory.iterdir() if not place.is_symlink()]
    except OSError:
        return None
    return max((place for place in places if _CHECKPOINT.fullmatch(place.name)), key=lambda p: p.name, default=None)


def encode_png(picture: NDArray[np.uint8]) -> str:
    """Returns a grey or RGB picture as a PNG in base64."""
    ordered = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    done, content = cv2.imencode(".png", ordered, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    assert done
    return b64encode(content.tobytes()).decode()


def _true_room(recent: Ints | None, name: int) -> int | None:
    """The RAM room that a cluster mostly was, lately."""
    met = Counter() if recent is None else Counter(recent[recent[:, 0] == name, 1].tolist())
    return met.most_common(1)[0][0] if met else None


def _state(letters: str, key: Ints, count: int) -> dict[str, Any]:
    return {"key": dict(zip(letters, key.tolist(), strict=True)), "count": int(count)}
