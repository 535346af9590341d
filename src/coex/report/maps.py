"""The map of visits: each room's picture with the counts over it, and single states shown in their rooms."""

from base64 import b64encode
from collections.abc import Sequence
from math import log1p

import cv2
import numpy as np
from numpy.typing import NDArray

from coex.envs.views import Frame
from coex.report.grid import cell_centres, tile_size
from coex.report.visits import Room, State, Visits

MOST_ROOMS, NUM_STATES = 24, 6  # that are shown
_SIDE = 84  # pixels of a room's picture
_PARTS = {"x": "x", "y": "y", "c": "room", "R": "score"}  # how people read ψ


class RoomMaps:
    """Draws one run's rooms; every picture is in the page once, under an id that begins with `prefix`."""

    def __init__(self, visits: Visits, prefix: str) -> None:
        self._visits = visits
        self._prefix = prefix
        self._rooms = visits.rooms()
        self.most_visited, self.rarest = visits.most_visited(NUM_STATES), visits.rarest(NUM_STATES)

    def pictures(self) -> str:
        """The pictures themselves, for the figures to use."""
        shown = {room.name for room in self._rooms[:MOST_ROOMS]}
        shown |= {state.room for state in (*self.most_visited, *self.rarest)}
        images = "".join(
            f'<image id="{self._prefix}{name}" width="{_SIDE}" height="{_SIDE}" href="{png(frame)}"/>'
            for name, frame in sorted(self._visits.frames.items())
            if name in shown
        )
        return f'<svg class="pictures" aria-hidden="true"><defs>{images}</defs></svg>'

    def rooms(self) -> str:
        """The most visited rooms; the others are counted."""
        figures = "".join(self._draw_room(room) for room in self._rooms[:MOST_ROOMS])
        left = len(self._rooms) - MOST_ROOMS
        rest = f'<p class="quiet">{left:,} more, with fewer visits, are not shown.</p>' if left > 0 else ""
        return f'<div class="rooms">{figures}</div>{rest}'

    def states(self, states: Sequence[State]) -> str:
        """Each state in its room, with its count and what the next visit earns."""
        return f'<div class="states">{"".join(self._draw_state(state) for state in states)}</div>'

    def _draw_room(self, room: Room) -> str:
        name, visits, states = self._room_name(room.name), _plural(room.visits, "visit"), _plural(room.states, "state")
        cells = "" if room.heat is None else self._heat(room.heat)
        return (
            f"<figure>{self._picture(room.name, cells, f'{name}: {visits}')}"
            f"<figcaption><b>{name}</b> {visits} · {states}</figcaption></figure>"
        )

    def _draw_state(self, state: State) -> str:
        cell = ""
        if {"x", "y"} <= state.parts.keys():
            cell = f'<rect class="here" {self._tile(state.parts["x"], state.parts["y"])}/>'
        name = ", ".join(f"{_PARTS[letter]} {value:,}" for letter, value in state.parts.items())
        return (
            f"<figure>{self._picture(state.room, cell, name)}<figcaption><b>{_plural(state.count, 'visit')}</b> "
            f"{name} · next bonus {(state.count + 1) ** -0.5:.3f}</figcaption></figure>"
        )

    def _picture(self, room: int, over: str, label: str) -> str:
        under = (
            f'<use href="#{self._prefix}{room}"/>'
            if room in self._visits.frames
            else '<text x="42" y="44">no picture</text>'
        )
        return f'<svg class="room" viewBox="0 0 {_SIDE} {_SIDE}" role="img" aria-label="{label}">{under}{over}</svg>'

    def _heat(self, heat: NDArray[np.int64]) -> str:
        """Counts span orders of magnitude, so colours follow their logarithms."""
        most = int(heat.max())
        return "".join(
            f'<rect class="heat" fill-opacity="{0.1 + 0.75 * log1p(heat[y, x]) / log1p(most):.2f}" {self._tile(x, y)}>'
            f"<title>cell {x}, {y}: {_plural(int(heat[y, x]), 'visit')}</title></rect>"
            for y, x in np.argwhere(heat)
        )

    def _tile(self, x: int, y: int) -> str:
        centres, size = cell_centres(self._visits.locator), tile_size(self._visits.locator)
        left, top = ((centres[index] - size / 2) * _SIDE for index in (x, y))
        return f'x="{left:.2f}" y="{top:.2f}" width="{size * _SIDE:.2f}" height="{size * _SIDE:.2f}"'

    def _room_name(self, name: int) -> str:
        if "c" not in self._visits.letters:
            return "The screen"
        true = self._visits.true_rooms.get(name)
        return f"Room {name}" + (f" (RAM: {true})" if true is not None else "")


def png(frame: Frame) -> str:
    """A picture as part of the page."""
    done, content = cv2.imencode(".png", frame, [cv2.IMWRITE_PNG_COMPRESSION, 9])
    assert done
    return f"data:image/png;base64,{b64encode(content.tobytes()).decode()}"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
