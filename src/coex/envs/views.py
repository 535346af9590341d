"""The pictures that learners and bonuses ask for, and how a screen becomes each of them."""

from collections.abc import Mapping
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from coex.core import native
from coex.envs.palette import palette_of

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


class _Target(NamedTuple):
    """Where a view of an Atari screen goes: an address, and what `coex_shrink` needs to know of it."""

    address: int  # of the first pixel written
    height: int
    width: int
    channels: int
    stride: int  # bytes from pixel to pixel
    stack: int  # address of the frame stack it belongs to, or 0


def _target(name: str, view: Frame) -> _Target:
    height, width = view.shape[:2]
    address = view.ctypes.data
    if name == "policy":
        return _Target(address + STACK - 1, height, width, 1, STACK, address)
    channels = 1 if name in GREY_VIEWS else 3
    return _Target(address, height, width, channels, channels, 0)


class AtariPainter:
    """Views of the brighter of two palette screens (Atari draws some sprites only every other frame).

    Rows of a view whose part of the screen has not changed since the last `paint` into it are left as they stand.
    Addresses are looked up once: asking NumPy for them takes longer than painting does.
    """

    def __init__(self, height: int, width: int) -> None:
        self.screens = np.zeros((2, height, width), np.uint8)  # the emulator's last two, as palette indices
        self._size = (height, width)
        self._palette = palette_of(height)
        self._last = np.zeros_like(self.screens)
        self._changed = np.ones(height, np.uint8)  # rows that differ from `_last`
        self._blends = {1: np.zeros((height, width), np.uint8), 3: np.zeros((height, width, 3), np.uint8)}
        self._native = native.load()
        self._pairs = [pair[k].ctypes.data for pair in (self.screens, self._last) for k in range(2)]
        self._changed_at = self._changed.ctypes.data
        self._blends_at = {channels: blend.ctypes.data for channels, blend in self._blends.items()}
        self._tables_at = {1: self._palette.grey.ctypes.data, 3: self._palette.rgb.ctypes.data}
        self._painted: Views | None = None  # the views that hold the last picture, and where they are
        self._targets: list[_Target] = []

    def rgb(self) -> Frame:
        """(H, W, 3) what the agent sees, in full size."""
        return np.maximum(*self._palette.rgb[self.screens])

    def forget(self) -> None:
        """Someone else has written into the views: nothing in them can be left as it stands."""
        self._painted = None

    def paint(self, out: Views, fresh: bool) -> None:
        if self._native is None:
            grey = np.maximum(*self._palette.grey[self.screens])
            paint_frames(out, grey, self.rgb(), fresh)
            return
        self._native.coex_changed(*self._pairs, *self._size, self._changed_at)
        if out is not self._painted:
            self._painted = out
            self._targets = [_target(name, view) for name, view in out.items() if name != "ram"]
            self._changed[...] = 1
        if fresh:
            self._changed[...] = 1
            if "policy" in out:
                out["policy"][...] = 0
        for channels in {target.channels for target in self._targets}:
            self._native.coex_blend(
                *self._pairs[:2], *self._size, self._changed_at, self._tables_at[channels], channels,
                self._blends_at[channels],
            )  # fmt: skip
        for address, height, width, channels, stride, stack in self._targets:
            if stack and not fresh:
                self._native.coex_push(stack, height * width)
            failed = self._native.coex_shrink(
                self._blends_at[channels], *self._size, channels, self._changed_at, address, height, width, stride
            )
            assert not failed, f"cannot shrink {self._size} to {height}x{width}"
