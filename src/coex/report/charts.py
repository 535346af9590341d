"""Line charts as inline SVG.

The curves stretch with the page and the words do not: lines are SVG without a fixed aspect ratio, labels are HTML at
percentages, so that a chart reads as well on a phone as on a desk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

import numpy as np
from numpy.typing import NDArray

from coex.runs.progress import count

Floats = NDArray[np.float64]

NUM_COLOURS = 6  # in page.css
_MOST_POINTS = 150  # of a line: more than a screen shows, less than a page wants to carry
_FAR = 4.0  # a mark beyond this many times the data's height would flatten the curves: it is named at the edge
_LABEL_GAP = 9.0  # per cent of the height between two labels at the lines' ends
_LABEL_WIDTH = 0.12  # of a chart's width: what a label at a line's end may take up


@dataclass(frozen=True)
class Line:
    """A curve, with a band around it if there is one."""

    label: str
    steps: Floats  # (P,)
    values: Floats  # (P,)
    low: Floats | None = None  # (P,)
    high: Floats | None = None
    colour: int = 0


@dataclass(frozen=True)
class Mark:
    """A value to compare with."""

    value: float
    label: str
    colour: int | None = None


@dataclass(frozen=True)
class Axis:
    """A range of values and where its ticks are."""

    low: float
    high: float
    ticks: list[float]

    def place(self, value: Floats | float) -> Floats:
        """0 to 1 along the axis."""
        return (np.asarray(value, np.float64) - self.low) / ((self.high - self.low) or 1.0)


def chart(title: str, unit: str, lines: Sequence[Line], marks: Sequence[Mark] = (), *, classes: str = "") -> str:
    """A figure with its axes; a line without points is left out, and nothing is drawn if there is none."""
    lines = [thin_out(line) for line in lines if len(line.steps)]
    if not lines:
        return ""
    x, y, near = _axes(lines, marks)
    drawn = "".join(_draw_line(line, x, y) for line in lines)
    grid = "".join(f'<path class="grid" d="M0 {_down(y, tick)}H1000"/>' for tick in y.ticks)
    labels = [f'<span class="y" style="top:{_down(y, t) / 10:.1f}%">{tick_label(t, y)}</span>' for t in y.ticks]
    labels += [f'<span class="x" style="left:{100 * x.place(t):.1f}%">{count(t)}</span>' for t in x.ticks]
    labels += _end_labels(lines, x, y)
    marked = "".join(_draw_mark(mark, y, mark in near) for mark in marks)
    rules = "".join(f'<path class="rule{_colour(mark)}" d="M0 {_down(y, mark.value)}H1000"/>' for mark in near)
    summary = "; ".join(f"{line.label or title}: {line.values[-1]:.4g} at step {line.steps[-1]:,.0f}" for line in lines)
    return (
        f'<figure class="chart {classes}"><figcaption><b>{escape(title)}</b> <span>{escape(unit)}</span></figcaption>'
        f"{_legend(lines)}"
        f'<div class="plot" role="img" aria-label="{escape(f"{title} ({unit}). {summary}", quote=True)}">'
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true">{grid}{rules}{drawn}</svg>'
        f"{''.join(labels)}{marked}</div></figure>"
    )


def thin_out(line: Line) -> Line:
    """At most 150 points, the first and the last among them."""
    if len(line.steps) <= _MOST_POINTS:
        return line
    kept = np.linspace(0, len(line.steps) - 1, _MOST_POINTS).round().astype(int)
    low, high = (None if band is None else band[kept] for band in (line.low, line.high))
    return Line(line.label, line.steps[kept], line.values[kept], low, high, line.colour)


def make_axis(low: float, high: float, *, whole: bool = False) -> Axis:
    """A range that begins and ends at round numbers: 0 to 37 is 0, 10, 20, 30, 40. `whole` ticks have no fractions."""
    high = high if high > low else low + 1.0
    raw = max((high - low) / 4, 1.0 if whole else 0.0)
    size = 10.0 ** floor(log10(raw))
    steps = [factor * size for factor in (1, 2, 2.5, 5, 10)]
    step = next(step for step in steps if step >= raw * (1 - 1e-9) and not (whole and step % 1))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    places = [round(index * step, 12) for index in range(first, last + 1)]
    return Axis(places[0], places[-1], places)


def tick_label(value: float, axis: Axis) -> str:
    """With as many decimals as the axis's ticks need; thousands are written as 1.5k."""
    if max(abs(axis.low), abs(axis.high)) >= 10_000:
        return count(value) if value >= 0 else f"−{count(-value)}"
    step = axis.ticks[1] - axis.ticks[0]
    decimals = 0 if step >= 1 and step.is_integer() else max(1, ceil(-log10(step)))
    decimals += not np.isclose(step * 10**decimals, round(step * 10**decimals))  # steps of 0.25
    return f"{value:,.{decimals}f}".replace("-", "−")


def _axes(lines: Sequence[Line], marks: Sequence[Mark]) -> tuple[Axis, Axis, list[Mark]]:
    """The axes, and the marks that lie on them."""
    values = np.concatenate([part for line in lines for part in (line.values, line.low, line.high) if part is not None])
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    near = [mark for mark in marks if low <= mark.value <= _FAR * high]
    whole = bool((values == values.round()).all())
    y = make_axis(low, max([high, *(mark.value for mark in near)]), whole=whole)
    last = max(float(line.steps[-1]) for line in lines)
    x = make_axis(0.0, last)
    return Axis(0.0, last, [tick for tick in x.ticks if tick <= last]), y, near


def _down(y: Axis, value: float) -> float:
    return round(1000 * (1 - float(y.place(value))), 1)


def _draw_line(line: Line, x: Axis, y: Axis) -> str:
    across, down = 1000 * x.place(line.steps), 1000 * (1 - y.place(line.values))
    band = ""
    if line.low is not None and line.high is not None:
        upper = _path(across, 1000 * (1 - y.place(line.high)))
        lower = _path(across[::-1], 1000 * (1 - y.place(line.low[::-1])))
        band = f'<path class="band c{line.colour}" d="M{upper}L{lower}Z"/>'
    # For the pointer: where each point is, and what it says.
    points = ";".join(
        f"{a:.0f},{d:.0f},{step:.0f},{value:.5g}"
        for a, d, step, value in zip(across, down, line.steps, line.values, strict=True)
    )
    shape = f"M{_path(across, down)}" + ("h0.01" if len(across) == 1 else "")  # a round cap makes it a dot
    return (
        f'{band}<path class="line c{line.colour}" data-name="{escape(line.label)}" data-points="{points}" d="{shape}"/>'
    )


def _path(across: Floats, down: Floats) -> str:
    return "L".join(f"{a:.1f} {d:.1f}" for a, d in zip(across, down, strict=True))


def _draw_mark(mark: Mark, y: Axis, is_near: bool) -> str:
    if is_near:
        place = _down(y, mark.value) / 10
        side = " under" if place < 12 else ""
        return f'<span class="mark{_colour(mark)}{side}" style="top:{place:.1f}%">{escape(mark.label)}</span>'
    arrow = "↑" if mark.value > y.low else "↓"
    return f'<span class="mark far{_colour(mark)}">{arrow} {escape(mark.label)}, beyond this scale</span>'


def _colour(mark: Mark) -> str:
    return "" if mark.colour is None else f" c{mark.colour}"


def _end_labels(lines: Sequence[Line], x: Axis, y: Axis) -> list[str]:
    """Of lines that end side by side, so that labels would meet, they are kept apart."""
    columns: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.steps[-1]):
        if columns and x.place(line.steps[-1]) - x.place(columns[-1][0].steps[-1]) < _LABEL_WIDTH:
            columns[-1].append(line)
        else:
            columns.append([line])
    labels = []
    for column in columns:
        order = sorted(column, key=lambda line: -line.values[-1])
        places = keep_apart([_down(y, float(line.values[-1])) / 10 for line in order], _LABEL_GAP)
        labels += [
            f'<span class="end c{line.colour}" style="left:{100 * x.place(line.steps[-1]):.1f}%;top:{place:.1f}%">'
            f"{short(float(line.values[-1]))}</span>"
            for line, place in zip(order, places, strict=True)
        ]
    return labels


def keep_apart(places: Sequence[float], gap: float) -> list[float]:
    """Ascending places, moved down, and back up from 100, until neighbours are a gap apart."""
    apart: list[float] = []
    for place in places:
        apart.append(max(place, apart[-1] + gap) if apart else place)
    limit = 100.0
    for index in reversed(range(len(apart))):
        apart[index] = min(apart[index], limit)
        limit = apart[index] - gap
    return apart


def short(value: float) -> str:
    """Few digits, for the end of a line."""
    if abs(value) >= 10_000:
        return count(abs(value)) if value >= 0 else f"−{count(-value)}"
    digits = 0 if abs(value) >= 100 or float(value).is_integer() else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}".replace("-", "−")


def _legend(lines: Sequence[Line]) -> str:
    if not any(line.label for line in lines):
        return ""
    return (
        '<p class="legend">'
        + "".join(f'<span class="c{line.colour}">{escape(line.label)}</span>' for line in lines)
        + "</p>"
    )
