"""The pictures that learners and bonuses ask for, and how a screen becomes each of them."""

from collections.abc import Mapping
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from coex.envs import native, palette

Frame = NDArray[np.uint8]
Views = Mapping[str, Frame]

STACK = 4
VIEW_SHAPES: dict[str, tuple[int, ...]] = {
    "policy": (84, 84, STACK),  # grey, the newest frame last
    "adm": (160, 160, 3),  # RGB, for the attentive dynamics model
    "context": (84, 84, 3),  # RGB, for the room clusters
    "small": (52, 52),  # grey, for SimHash
    "ram": (128,),  # the console's memory (Atari only)
}
GREY_VIEWS = ("policy", "small")
RGB_VIEWS = ("adm", "context")


class Painter(Protocol):
    """Writes the views of one environment in place; `fresh` starts the frame stack anew with an episode."""

    def paint(self, out: Views, fresh: bool) -> None: ...


def push_frame(stack: Frame, frame: Frame, fresh: bool) -> None:
    """Moves `stack` (84, 84, 4) on by one frame; an episode begins with black ones before its first."""
    if fresh:
        stack[...] = 0
    stack[..., :-1] = stack[..., 1:].copy()
    stack[..., -1] = frame


def _resize(frame: Frame, size: int) -> Frame:
    # Area averaging when shrinking; when enlarging (small Gymnasium frames) it would blur sharp tile edges.
    shrinking = frame.shape[0] >= size and frame.shape[1] >= size
    interpolation = cv2.INTER_AREA if shrinking else cv2.INTER_NEAREST
    return np.asarray(cv2.resize(frame, (size, size), interpolation=interpolation), np.uint8)


def paint_frames(out: Views, grey: Frame | None, rgb: Frame | None, fresh: bool) -> None:
    """Fills the views of `out` from one grey frame (H, W) and one RGB frame (H, W, 3)."""
    for name in out.keys() & set(GREY_VIEWS):
        assert grey is not None
        if name == "policy":
            push_frame(out[name], _resize(grey, 84), fresh)
        else:
            out[name][...] = _resize(grey, out[name].shape[0])
    for name in out.keys() & set(RGB_VIEWS):
        assert rgb is not None
        out[name][...] = _resize(rgb, out[name].shape[0])


class AtariPainter:
    """Views of the brighter of two palette screens (Atari draws some sprites only every other frame).

    Rows of a view whose part of the screen has not changed since the last `paint` into it are left as they stand.
    """

    def __init__(self, height: int, width: int) -> None:
        self.screens = np.zeros((2, height, width), np.uint8)  # the emulator's last two, as palette indices
        self._size = (height, width)
        self._last = np.zeros_like(self.screens)
        self._changed = np.ones(height, np.uint8)  # rows that differ from `_last`
        self._blends = {1: np.zeros((height, width), np.uint8), 3: np.zeros((height, width, 3), np.uint8)}
        self._tables = {1: palette.GREY, 3: palette.RGB}
        self._painted: Views | None = None  # the views that hold the last picture
        self._native = native.load()

    def rgb(self) -> Frame:
        """(H, W, 3) what the agent sees, in full size."""
        return np.maximum(palette.RGB[self.screens[0]], palette.RGB[self.screens[1]])

    def forget(self) -> None:
        """Someone else has written into the views: nothing in them can be left as it stands."""
        self._painted = None

    def paint(self, out: Views, fresh: bool) -> None:
        if self._native is None:
            grey = np.maximum(palette.GREY[self.screens[0]], palette.GREY[self.screens[1]])
            paint_frames(out, grey, self.rgb() if out.keys() & set(RGB_VIEWS) else None, fresh)
            return
        self._find_changes(fresh or out is not self._painted)
        self._painted = out
        if not out.keys().isdisjoint(GREY_VIEWS):
            self._blend(channels=1)
        if not out.keys().isdisjoint(RGB_VIEWS):
            self._blend(channels=3)
        for name, view in out.items():
            if name == "policy":
                if fresh:
                    view[...] = 0
                else:
                    self._native.coex_push(view.ctypes.data, view.shape[0] * view.shape[1])
                self._shrink(view[..., -1:], stride=STACK)
            elif name in GREY_VIEWS:
                self._shrink(view[..., None], stride=1)
            elif name in RGB_VIEWS:
                self._shrink(view, stride=3)

    def _find_changes(self, everything: bool) -> None:
        assert self._native is not None
        screens, last = self.screens.ctypes.data, self._last.ctypes.data
        second = self.screens[0].nbytes  # where the second screen begins
        self._native.coex_changed(
            screens, screens + second, last, last + second, *self._size, self._changed.ctypes.data
        )
        if everything:
            self._changed[...] = 1

    def _blend(self, channels: int) -> None:
        assert self._native is not None
        screens, second = self.screens.ctypes.data, self.screens[0].nbytes
        table, blend = self._tables[channels].ctypes.data, self._blends[channels].ctypes.data
        self._native.coex_blend(
            screens, screens + second, *self._size, self._changed.ctypes.data, table, channels, blend
        )

    def _shrink(self, view: Frame, stride: int) -> None:
        assert self._native is not None
        height, width, channels = view.shape
        failed = self._native.coex_shrink(
            self._blends[channels].ctypes.data, *self._size, channels, self._changed.ctypes.data,
            view.ctypes.data, height, width, stride,
        )  # fmt: skip
        assert not failed, f"cannot shrink {self._size} to {height}x{width}"
