"""A run's checkpoints on disk: whole or not there at all, and damage of any kind is noticed."""

import contextlib
import os
import re
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coex import __version__
from coex.config.checkpoints import CheckpointConfig
from coex.core import native
from coex.errors import CoexError, UsageError
from coex.runs.checkpoints import manifest
from coex.runs.checkpoints.manifest import Manifest, NewerFormatError
from coex.runs.checkpoints.tree import Snapshot, read_tree

DIRECTORY = "checkpoints"
_SCRATCH, _DAMAGED = ".tmp-", "damaged-"
_NAME = re.compile(r"step-(\d{12,})")


class DamagedError(CoexError):
    """A checkpoint that is not as it was written."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was read and found whole."""

    manifest: Manifest
    state: dict[str, Any]


class CheckpointStore:
    """The directory `checkpoints` of a run. Only the holder of the run's lock may write."""

    def __init__(self, run: Path) -> None:
        self.path = run / DIRECTORY
        if self.path.is_symlink():
            raise UsageError(f"{self.path} is a link: put the directory itself in its place")

    def steps(self) -> list[int]:
        """The steps there is a checkpoint of, oldest first; links are not followed."""
        if not self.path.is_dir():
            return []
        found = [(_NAME.fullmatch(path.name), path) for path in self.path.iterdir()]
        return sorted(int(match[1]) for match, path in found if match and path.is_dir() and not path.is_symlink())

    def path_of(self, step: int) -> Path:
        return self.path / f"step-{step:012d}"

    def write(self, step: int, config: dict[str, Any], logs: dict[str, int], snapshot: Snapshot) -> None:
        """Puts a checkpoint in its place, or raises OSError and leaves everything as it was."""
        self.path.mkdir(exist_ok=True)
        write_checkpoint(self.path_of(step), step, config, logs, snapshot, scratch_name=f"{_SCRATCH}{step:012d}")

    def read(self, step: int) -> Saved:
        """The checkpoint of that step; raises DamagedError, or UsageError when its format is too new."""
        return read_checkpoint(self.path_of(step), step)

    def prune(self, config: CheckpointConfig) -> None:
        """Removes all but the newest `keep` and those that stay for good."""
        steps = self.steps()
        kept = set(steps[-config.keep :])
        if config.keep_every_steps:
            firsts = {step // config.keep_every_steps: step for step in reversed(steps)}
            kept |= {first for multiple, first in firsts.items() if multiple}
        for step in set(steps) - kept:
            shutil.rmtree(self.path_of(step))

    def clear(self) -> None:
        """Removes what interrupted writes have left behind."""
        if self.path.is_dir():
            for path in self.path.glob(f"{_SCRATCH}*"):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)

    def set_aside(self, step: int) -> None:
        """Makes room for a new checkpoint of that step; the damaged one can still be looked at."""
        target = self.path_of(step).with_name(f"{_DAMAGED}{self.path_of(step).name}")
        if target.exists():
            shutil.rmtree(target)
        self.path_of(step).rename(target)


def write_checkpoint(
    place: Path, step: int, config: dict[str, Any], logs: dict[str, int], snapshot: Snapshot, *, scratch_name: str
) -> None:
    """Writes a checkpoint beside its place and renames it, or raises OSError and leaves everything as it was."""
    scratch = place.with_name(scratch_name)
    try:
        if scratch.exists():  # of a write that failed
            shutil.rmtree(scratch)
        scratch.mkdir()
        files = snapshot.files()
        for name, content in files.items():
            _write_synced(scratch / name, content)
        described = {name: manifest.describe(content) for name, content in files.items()}
        last = Manifest(manifest.FORMAT, step, config, logs, versions(), described)
        _write_synced(scratch / manifest.NAME, last.to_bytes())
        _sync_directory(scratch)
        scratch.rename(place)
        _sync_directory(place.parent)
    except OSError:
        with contextlib.suppress(OSError):
            shutil.rmtree(scratch)
        raise


def read_checkpoint(place: Path, step: int) -> Saved:
    """Reads what was written of that step; raises DamagedError, or UsageError when its format is too new."""
    try:
        contents = _read_files(place)
        found = Manifest.from_bytes(contents.pop(manifest.NAME))
        if found.step != step:
            raise ValueError(f"it was written at step {found.step:,}")
        for name in sorted(found.files.keys() | contents.keys()):
            if name not in contents or name not in found.files:
                raise ValueError(f"{name} is {'missing' if name in found.files else 'not one of its files'}")
            if manifest.describe(contents[name]) != found.files[name]:
                raise ValueError(f"{name} has changed")
        return Saved(found, read_tree(contents))
    except NewerFormatError as error:
        raise UsageError(
            f"{place} has format {error}, and this coex reads up to {manifest.FORMAT}: install a newer coex"
        ) from None
    except KeyError:
        raise DamagedError(f"{place} is damaged: {manifest.NAME} is missing") from None
    except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise DamagedError(f"{place} is damaged: {reason}") from None


def versions() -> dict[str, str]:
    """Returns the versions of what can change a run's numbers; views differ by up to 1 without compiled code."""
    found = {"coex": __version__, "compiled views": "no" if native.load() is None else "yes"}
    for name in ("ale-py", "gymnasium", "minigrid", "numpy", "opencv-python-headless", "torch"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _read_files(place: Path) -> dict[str, bytes]:
    contents = {}
    for path in place.iterdir():
        if path.is_symlink() or not path.is_file():
            raise ValueError(f"{path.name} is not a file")
        contents[path.name] = path.read_bytes()
    return contents


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
