"""TensorBoard's events files: each process that works on a run writes one, and their names are in its order."""

import time
from collections.abc import Mapping
from pathlib import Path

_PREFIX = "events.out.tfevents."  # what TensorBoard knows them by


def event_files(directory: Path) -> list[Path]:
    """Returns the events files of a run in TensorBoard's order, which is that of their names."""
    return sorted(file for file in directory.glob("events.*") if file.is_file() and not file.is_symlink())


def next_event_file(directory: Path) -> Path:
    """Returns a name that comes after all that are there.

    A name is a time, as is TensorBoard's custom. The clock alone would not do: two processes may begin within one
    second, and it may be set back. TensorBoard would then show the later one's numbers before the earlier one's.
    """
    times = (file.name.removeprefix(_PREFIX).partition(".")[0] for file in event_files(directory))
    newest = max((int(text) for text in times if text.isascii() and text.isdigit()), default=0)
    return directory / f"{_PREFIX}{max(int(time.time()), newest + 1):010d}.coex"


class EventWriter:
    """Writes scalars into one events file, every point at once and in the order in which they come."""

    def __init__(self, path: Path) -> None:
        from tensorboard.compat.proto.event_pb2 import Event  # slow to import, and not needed to read a run
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("xb")
        self._records = RecordWriter(self._file)
        self._write(file_version="brain.Event:2")

    def add(self, scalars: Mapping[str, float], step: int) -> None:
        """Adds one point; it is with the operating system when this returns."""
        values = [self._summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        self._write(step=step, summary=self._summary(value=values))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _write(self, **content: object) -> None:
        self._records.write(self._event(wall_time=time.time(), **content).SerializeToString())
        self._file.flush()
