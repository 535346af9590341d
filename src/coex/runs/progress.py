"""What a user sees of a run while it goes on."""

import sys
import time
from typing import Any, TextIO

_PLAIN_SECONDS = 10.0  # between two lines when the output is not a terminal


class Progress:
    """One line that rewrites itself on a terminal; elsewhere a plain line now and then; nothing when quiet."""

    def __init__(self, total_steps: int, frame_skip: int, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._total = total_steps
        self._frame_skip = frame_skip
        self._quiet = quiet
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._shown_at = float("-inf")
        self._width = 0

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self._quiet:
            self._clear()
            print(text, file=self._stream, flush=True)

    def warn(self, text: str) -> None:
        """A line that stays, also when quiet."""
        self._clear()
        print(f"coex: {text}", file=self._stream, flush=True)

    def show(self, point: dict[str, Any], *, last: bool = False) -> None:
        """The newest log point."""
        now = time.monotonic()
        if self._quiet or (not self._live and not last and now - self._shown_at < _PLAIN_SECONDS):
            return
        self._shown_at = now
        line = self._line(point)
        if self._live:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
            if last:
                self._stream.write("\n")
                self._width = 0
            self._stream.flush()
        else:
            print(line, file=self._stream, flush=True)

    def close(self) -> None:
        """Leaves the last line standing and the cursor on a new one."""
        if self._width and not self._quiet:
            self._stream.write("\n")
            self._width = 0

    def _clear(self) -> None:
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._width = 0

    def _line(self, point: dict[str, Any]) -> str:
        step, rate = point["step"], point["steps_per_second"]
        parts = [
            f"{min(step / self._total, 1):4.0%}",
            f"{count(step)} steps ({count(step * self._frame_skip)} frames)",
            f"{rate:,.0f} steps/s",
            f"{duration((self._total - step) / rate)} left"
            if step < self._total and rate
            else duration(point["seconds"]),
            f"return {number(point['return_mean40'])} over {point['episodes']} episodes",
        ]
        if "archive/cells" in point:
            rooms, cells, best = point["archive/rooms"], point["archive/cells"], point["archive/best"]
            plural = "" if rooms == 1 else "s"
            parts.append(f"{rooms} room{plural} and {cells:,} cells in the archive, best score {number(best)}")
        if point.get("held_steps", 0) == step:
            parts.append("waiting for the player to be found")
        if point.get("adm/distance") is not None:
            parts.append(f"location off by {point['adm/distance']:.1f} cells")
        if point.get("rooms/clusters") is not None:
            rooms = point["rooms/clusters"]
            parts.append(f"{rooms} room{'' if rooms == 1 else 's'} seen")
        return " · ".join(parts)


def number(value: float | None) -> str:
    """11618.2 -> 11,618; 0.9564 -> 0.956; – where there is none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def count(value: float) -> str:
    """1234567 -> 1.23M."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.0f}"


def duration(seconds: float) -> str:
    """3723 -> 1h02m."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
