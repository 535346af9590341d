"""One frame of a video: the game with the agent's attention over it, and beside it what the agent knows."""

from collections import deque
from functools import cache
from pathlib import Path

import cv2
import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from coex.config.grid import Grid
from coex.envs.views import Frame
from coex.method.rooms import NEW_ROOM
from coex.report.play import Moment

Colour = tuple[int, int, int]
Box = tuple[float, float, float, float]  # left, top, right, bottom
Floats = NDArray[np.float64]

_LARGEST_GAME = 640  # pixels: the picture is enlarged as far as it fits
_MARGIN, _PANEL = 20, 330
_BACKGROUND, _LINE = (17, 20, 26), (52, 58, 70)
_TEXT, _FAINT = (236, 239, 244), (146, 155, 170)
HEAT, CELL, TRUTH = (255, 166, 0), (255, 255, 255), (64, 224, 208)
_MOST_HEAT = 0.75  # opacity where all the attention is
_HISTORY = 164  # steps in the strip of bonuses


class Scene:
    """Draws the moments of one run on frames of one size."""

    def __init__(self, picture: Frame, title: str, subtitle: str, grid: Grid) -> None:
        height, width = picture.shape[:2]
        factor = _LARGEST_GAME / max(height, width)
        self._factor = max(int(factor), 1) if factor >= 1 else factor  # whole pixels, unless it has to shrink
        self._game_size = self._width, self._height = round(width * self._factor), round(height * self._factor)
        self._grid = grid
        self._bonuses: deque[float] = deque(maxlen=_HISTORY)
        self._left = self._width + 2 * _MARGIN  # of the panel
        self._right = self._left + _PANEL
        # H.264 with its common colour format has pairs of pixels.
        self.size = _even(self._right + _MARGIN), _even(max(self._height, 560) + 2 * _MARGIN)
        self._canvas = Image.new("RGB", self.size, _BACKGROUND)
        draw = ImageDraw.Draw(self._canvas)
        _write(draw, (self._left, _MARGIN), title, 21, _TEXT, bold=True)
        _write(draw, (self._left, _MARGIN + 29), subtitle, 13, _FAINT)

    def draw(self, moment: Moment) -> Frame:
        """(height, width, 3) of one moment; moments follow each other."""
        canvas = self._canvas.copy()
        canvas.paste(self._game(moment), (_MARGIN, _MARGIN))
        draw = ImageDraw.Draw(canvas)
        y = _MARGIN + 66
        _write(draw, (self._left, y), f"{moment.score:,.10g}", 46, _TEXT, bold=True)
        _write(draw, (self._left, y + 54), "score", 13, _FAINT)
        y += 86
        for label, value in facts(moment):
            draw.line([(self._left, y), (self._right, y)], fill=_LINE)
            _write(draw, (self._left, y + 9), label, 14, _FAINT)
            _write(draw, (self._right, y + 6), value, 17, _TEXT, bold=True, width=_PANEL - 125, anchor="ra")
            y += 35
        if moment.sight.bonus is not None:
            self._strip(draw, moment.sight.bonus, y + 52)
        self._legend(draw, moment)
        return np.asarray(canvas)

    def _game(self, moment: Moment) -> Image.Image:
        picture, sight, truth = moment.picture, moment.sight, moment.truth
        if sight.attention is not None:
            # The root lifts weak attention to where it can be seen.
            heat = _MOST_HEAT * np.sqrt(spread(sight.attention, self._grid, *picture.shape[:2]))
            picture = (picture + heat[..., None] * (np.asarray(HEAT) - picture)).astype(np.uint8)
        interpolation = cv2.INTER_AREA if self._factor < 1 else cv2.INTER_NEAREST
        game = Image.fromarray(cv2.resize(picture, self._game_size, interpolation=interpolation))
        draw = ImageDraw.Draw(game)
        if truth is not None and truth.box is not None:
            left, top, width, height = (self._factor * edge for edge in truth.box)
            draw.rectangle((left - 3, top - 3, left + width + 3, top + height + 3), outline=TRUTH, width=2)
        if sight.cell is not None:
            _brackets(draw, cell_box(sight.cell, self._grid, *self._game_size))
        return game

    def _strip(self, draw: ImageDraw.ImageDraw, bonus: float, bottom: int) -> None:
        """The bonuses of the last steps, the newest at the right."""
        self._bonuses.append(bonus)
        draw.line([(self._left, bottom), (self._right, bottom)], fill=_LINE)
        for index, value in enumerate(reversed(self._bonuses), start=1):
            x, share = self._right - 2 * index, max(0.0, 1 + np.log10(value) / 3)  # from 0.001 to 1
            draw.line([(x, bottom - 1), (x, bottom - 1 - round(44 * share))], fill=HEAT, width=2)
        _write(draw, (self._left, bottom + 5), "bonus over the last steps (logarithmic)", 12, _FAINT)

    def _legend(self, draw: ImageDraw.ImageDraw, moment: Moment) -> None:
        entries = (
            (moment.sight.attention, HEAT, "attention"),
            (moment.sight.cell, CELL, "located cell"),
            (moment.truth, TRUTH, "player by RAM"),
        )
        x, y = self._left, self.size[1] - _MARGIN - 12
        for part, colour, text in entries:
            if part is not None:
                draw.rectangle((x, y, x + 11, y + 11), outline=colour, fill=HEAT if colour == HEAT else None, width=2)
                _write(draw, (x + 17, y - 2), text, 13, _FAINT)
                x += 31 + round(_font(13).getlength(text))


def facts(moment: Moment) -> list[tuple[str, str]]:
    """What the panel tells of a moment, by label."""
    sight, truth = moment.sight, moment.truth
    rows = [
        ("action", moment.action or "game over"),
        ("step", f"{moment.step:,}"),
        ("value V(s)", f"{moment.value:.2f}"),
    ]
    if sight.room is not None:
        name = "new" if sight.room == NEW_ROOM else f"{sight.room}"
        rows.append(("room", name if truth is None or truth.room is None else f"{name}  (RAM: {truth.room})"))
    if sight.cell is not None:
        rows.append(("located cell x, y", f"{sight.cell[0]}, {sight.cell[1]}"))
        if truth is not None and truth.box is not None:
            error = min(np.hypot(sight.cell[0] + 0.5 - x, sight.cell[1] + 0.5 - y) for x, y in truth.cells)
            rows.append(("off by", f"{error:.1f} cells"))
    if sight.visits is not None:
        rows.append(("visits N in training", f"{sight.visits:,}"))
        rows.append(("bonus 1/√(N+1)", f"{sight.bonus:.3f}"))
    return rows


def cell_box(cell: tuple[int, int], grid: Grid, width: int, height: int) -> Box:
    """What a cell (x, y) sees of a picture of that size."""
    half = grid.field / 2
    x, y = (grid.centres[index] for index in cell)
    return (x - half) * width, (y - half) * height, (x + half) * width, (y + half) * height


def spread(attention: Floats, grid: Grid, height: int, width: int) -> Floats:
    """(9, 9) attention of the model → (height, width): full at a cell's centre, nothing beyond the next cell's."""
    rows, columns = _tents(grid, height), _tents(grid, width)  # (height, 9), (width, 9)
    return np.asarray(rows @ attention @ columns.T)


@cache
def _tents(grid: Grid, size: int) -> Floats:
    places = (np.arange(size) + 0.5) / size  # the pixels' centres
    distances = np.abs(places[:, None] - grid.centres)  # (size, 9)
    return np.maximum(1 - distances / grid.tile, 0.0)


def _brackets(draw: ImageDraw.ImageDraw, box: Box) -> None:
    """The four corners of a box: what is inside stays visible."""
    left, top, right, bottom = box
    across, down = (right - left) / 4, (bottom - top) / 4
    for x, inward_x in ((left, across), (right, -across)):
        for y, inward_y in ((top, down), (bottom, -down)):
            draw.line([(x + inward_x, y), (x, y), (x, y + inward_y)], fill=CELL, width=3)


def _write(
    draw: ImageDraw.ImageDraw, place: tuple[int, int], text: str, size: int, colour: Colour, *, bold: bool = False,
    width: int = _PANEL, anchor: str = "la",
) -> None:  # fmt: skip
    """In the largest size, up to `size`, in which the text fits the width."""
    while size > 10 and _font(size, bold=bold).getlength(text) > width:
        size -= 1
    draw.text(place, text, font=_font(size, bold=bold), fill=colour, anchor=anchor)


@cache
def _font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


def _even(size: int) -> int:
    return size + size % 2
