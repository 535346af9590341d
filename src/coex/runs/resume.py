"""Going on with a run where its newest good checkpoint left it."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from coex.config.presets import read_config
from coex.config.run import OPERATIONAL, RunConfig, lacking_settings
from coex.config.settings import first_difference, load_config, with_settings
from coex.errors import CoexError, UsageError
from coex.runs.checkpoints import CheckpointStore, DamagedError, Saved
from coex.runs.checkpoints.store import versions
from coex.runs.directory import CONFIG, METRICS, SUMMARY
from coex.runs.progress import Progress

# What may differ between a checkpoint and the run that goes on from it: its end, too.
FREE = ("total_steps", "schedule_steps", *OPERATIONAL)


def run_config(run: Path) -> RunConfig:
    """The configuration of the run in that directory."""
    if not (run / CONFIG).is_file():
        what = "there is no such directory" if not run.exists() else f"it holds no run (no {CONFIG})"
        raise UsageError(f"{run}: {what}; name the directory that 'coex train' wrote")
    return read_config(load_config(run / CONFIG))


def changed_config(config: RunConfig, run: Path, changes: dict[str, str]) -> RunConfig:
    """The configuration with another end or device; an end that lies behind is refused."""
    config = with_settings(config, changes).resolved()
    reached = max(CheckpointStore(run).steps(), default=0)
    if "total_steps" in changes and config.total_steps < reached:
        raise UsageError(f"--steps {config.total_steps:,}: {run} has reached step {reached:,} already")
    return config


def is_finished(run: Path, config: RunConfig) -> bool:
    """Whether the run has come to its end and said so."""
    try:
        summary = json.loads((run / SUMMARY).read_text())
        return bool(summary["finished"]) and summary["step"] >= config.total_steps
    except (OSError, ValueError, KeyError, TypeError):
        return False


def read_newest(store: CheckpointStore, warn: Callable[[str], None]) -> Saved | None:
    """The newest checkpoint that is whole; damaged ones are named. None only when there are no checkpoints at all."""
    steps = store.steps()
    for step in reversed(steps):
        try:
            return store.read(step)
        except DamagedError as error:
            warn(str(error))
    if steps:
        raise CoexError(
            f"none of the {len(steps)} checkpoints in {store.path} can be read: restore one from a copy, "
            "or train anew in another directory"
        )
    return None


def saved_config(saved: Saved) -> RunConfig:
    """A checkpoint's own configuration, whole: today's default for a setting it lacks would make it another run."""
    config = read_config(saved.manifest.config)
    missing = lacking_settings(config, saved.manifest.config)
    if missing:
        raise UsageError(
            f"the checkpoint of step {saved.manifest.step:,} is an earlier version's, which had no {missing[0]}: "
            "use that version, or train anew in another directory"
        )
    return config


def find_checkpoint(config: RunConfig, run: Path, progress: Progress) -> Saved | None:
    """What the run goes on from, and room for what it will write; only for the holder of the run's lock."""
    store = CheckpointStore(run)
    store.clear()
    saved = read_newest(store, progress.warn)
    if saved is None:
        if (run / METRICS).is_file() and (run / METRICS).stat().st_size:
            raise CoexError(f"{run} was trained, but has no checkpoint to go on from: train anew in another directory")
        progress.warn(f"{run} was stopped before its first checkpoint: it begins at step 0")
        return None
    _check_same_run(config, saved, run)
    for step in store.steps():
        if step > saved.manifest.step:
            store.set_aside(step)
    progress.say(f"going on from step {saved.manifest.step:,}")
    for name, now in versions().items():
        if now != (then := saved.manifest.versions.get(name)):
            progress.say(
                f"the checkpoint was written with {name} {then}, and this is {now}: numbers may differ a little"
            )
    return saved


def _check_same_run(config: RunConfig, saved: Saved, run: Path) -> None:
    """Refuses a checkpoint of another game, method or shape."""
    difference = first_difference(config.to_dict(), saved_config(saved).to_dict(), FREE)
    if difference:
        raise UsageError(
            f"{run / CONFIG} does not fit the checkpoint of step {saved.manifest.step:,}: {difference} "
            "(change it back, or train anew in another directory)"
        )


@contextlib.contextmanager
def loading_errors(step: int, whole: str) -> Iterator[None]:
    """For those who load parts of a step's checkpoint into a `whole`: what does not fit is said in one line."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"the checkpoint of step {step:,} does not fit {whole}: {cause}") from None


def check_same_config(config: RunConfig, run: Path) -> None:
    """For `coex train --resume`: the run that is there must be the one that was asked for."""
    difference = first_difference(run_config(run).to_dict(), config.to_dict(), OPERATIONAL)
    if difference:
        raise UsageError(
            f"{run} holds another run, where {difference}: choose another --out, or go on with 'coex resume {run}' "
            "(its --steps extends it)"
        )
