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
from coex.report.grid import Box, cell_box, spread
from coex.report.play import Moment

Colour = tuple[int, int, int]

_GAME_WIDTH, _GAME_HEIGHT = 640, 640  # the picture is enlarged as far as it fits
_MARGIN, _PANEL = 20, 330
_BACKGROUND, _LINE = (17, 20, 26), (52, 58, 70)
_TEXT, _FAINT = (236, 239, 244), (146, 155, 170)
HEAT, CELL, TRUTH = (255, 166, 0), (255, 255, 255), (64, 224, 208)
_MOST_HEAT = 0.75  # opacity where all the attention is
_HISTORY = 145  # steps in the strip of bonuses


class Scene:
    """Draws the moments of one run on frames of one size."""

    def __init__(self, picture: Frame, title: str, subtitle: str, grid: Grid) -> None:
        height, width = picture.shape[:2]
        factor = min(_GAME_WIDTH / width, _GAME_HEIGHT / height)
        factor = max(int(factor), 1) if factor >= 1 else factor  # whole pixels, unless it has to shrink
        self._width, self._height = round(width * factor), round(height * factor)
        self._source = (width, height)
        self._grid = grid
        self._bonuses: deque[float] = deque(maxlen=_HISTORY)
        # H.264 with its common colour format has pairs of pixels.
        self.size = _even(self._width + 3 * _MARGIN + _PANEL), _even(max(self._height, 560) + 2 * _MARGIN)
        self._canvas = Image.new("RGB", self.size, _BACKGROUND)
        self._panel = self._width + 2 * _MARGIN  # where it begins
        draw = ImageDraw.Draw(self._canvas)
        self._write(draw, _MARGIN, _fitting(title, 21, bold=True), _TEXT)
        self._write(draw, _MARGIN + 29, _fitting(subtitle, 13), _FAINT)

    def draw(self, moment: Moment) -> Frame:
        """(height, width, 3) of one moment; moments follow each other."""
        canvas = self._canvas.copy()
        canvas.paste(Image.fromarray(self._game(moment)), (_MARGIN, _MARGIN))
        draw = ImageDraw.Draw(canvas)
        self._mark(draw, moment)
        y = _MARGIN + 66
        self._write(draw, y, (f"{moment.score:,.10g}", _font(46, bold=True)), _TEXT)
        self._write(draw, y + 54, ("score", _font(13)), _FAINT)
        y = self._rows(draw, moment, y + 86)
        if moment.sight.bonus is not None:
            y = self._strip(draw, moment.sight.bonus, y + 8)
        self._legend(draw, moment)
        return np.asarray(canvas)

    def _game(self, moment: Moment) -> Frame:
        picture = moment.picture
        if moment.sight.attention is not None:
            # The root lifts weak attention to where it can be seen.
            heat = _MOST_HEAT * np.sqrt(spread(moment.sight.attention, self._grid, *picture.shape[:2]))
            picture = _blend(picture, heat, HEAT)
        shrinking = self._width < self._source[0]
        interpolation = cv2.INTER_AREA if shrinking else cv2.INTER_NEAREST
        return np.asarray(cv2.resize(picture, (self._width, self._height), interpolation=interpolation), np.uint8)

    def _mark(self, draw: ImageDraw.ImageDraw, moment: Moment) -> None:
        if moment.truth is not None and moment.truth.box is not None:
            left, top, width, height = moment.truth.box
            (across, down), grow = self._scale, 3
            box = (
                left * across - grow,
                top * down - grow,
                (left + width) * across + grow,
                (top + height) * down + grow,
            )
            draw.rectangle(_shift(box), outline=TRUTH, width=2)
        if moment.sight.cell is not None:
            _brackets(draw, _shift(cell_box(moment.sight.cell, self._grid, self._width, self._height)))

    @property
    def _scale(self) -> tuple[float, float]:
        return self._width / self._source[0], self._height / self._source[1]

    def _rows(self, draw: ImageDraw.ImageDraw, moment: Moment, y: int) -> int:
        for label, value in facts(moment):
            draw.line([(self._panel, y), (self._panel + _PANEL, y)], fill=_LINE)
            self._write(draw, y + 9, (label, _font(14)), _FAINT)
            text, font = _fitting(value, 17, bold=True, width=_PANEL - 125)
            draw.text((self._panel + _PANEL, y + 6), text, font=font, fill=_TEXT, anchor="ra")
            y += 35
        return y

    def _strip(self, draw: ImageDraw.ImageDraw, bonus: float, y: int) -> int:
        """The bonuses of the last steps, the newest at the right."""
        self._bonuses.append(bonus)
        height, bottom = 44, y + 44
        draw.line([(self._panel, bottom), (self._panel + _PANEL, bottom)], fill=_LINE)
        for index, value in enumerate(reversed(self._bonuses)):
            x = self._panel + _PANEL - 2 - 2 * index
            if x >= self._panel:
                share = max(0.0, 1 + np.log10(value) / 3)  # from 0.001 to 1
                draw.line([(x, bottom - 1), (x, bottom - 1 - round(share * height))], fill=HEAT, width=2)
        self._write(draw, bottom + 5, ("bonus over the last steps (logarithmic)", _font(12)), _FAINT)
        return bottom + 24

    def _legend(self, draw: ImageDraw.ImageDraw, moment: Moment) -> None:
        entries = []
        if moment.sight.attention is not None:
            entries.append((HEAT, "attention"))
        if moment.sight.cell is not None:
            entries.append((CELL, "located cell"))
        if moment.truth is not None:
            entries.append((TRUTH, "player by RAM"))
        x, y = self._panel, self.size[1] - _MARGIN - 12
        for colour, text in entries:
            draw.rectangle((x, y, x + 11, y + 11), outline=colour, fill=colour if colour == HEAT else None, width=2)
            draw.text((x + 17, y - 2), text, font=_font(13), fill=_FAINT)
            x += 17 + round(_font(13).getlength(text)) + 14

    def _write(
        self, draw: ImageDraw.ImageDraw, y: int, text: tuple[str, ImageFont.FreeTypeFont], colour: Colour
    ) -> None:
        draw.text((self._panel, y), text[0], font=text[1], fill=colour)


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


def _blend(picture: Frame, opacity: NDArray[np.float64], colour: Colour) -> Frame:
    layer = np.asarray(colour)
    return (picture + opacity[..., None] * (layer - picture)).astype(np.uint8)


def _shift(box: Box) -> Box:
    left, top, right, bottom = (edge + _MARGIN for edge in box)
    return left, top, right, bottom


def _brackets(draw: ImageDraw.ImageDraw, box: Box) -> None:
    """The four corners of a box: what is inside stays visible."""
    left, top, right, bottom = box
    across, down = (right - left) / 4, (bottom - top) / 4
    for x, inward_x in ((left, across), (right, -across)):
        for y, inward_y in ((top, down), (bottom, -down)):
            draw.line([(x + inward_x, y), (x, y), (x, y + inward_y)], fill=CELL, width=3)


def _fitting(text: str, size: int, *, bold: bool = False, width: int = _PANEL) -> tuple[str, ImageFont.FreeTypeFont]:
    """The text in the largest size, up to `size`, in which it fits the width."""
    while size > 10 and _font(size, bold=bold).getlength(text) > width:
        size -= 1
    return text, _font(size, bold=bold)


@cache
def _font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


def _even(size: int) -> int:
    return size + size % 2
