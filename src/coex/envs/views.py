"""The pictures that learners and bonuses ask for, by their shapes, and how a screen becomes each of them.

A view's shape says what it is: (H, W) is grey, (H, W, 3) is RGB, (H, W, 4) is the last four grey frames with the newest
last, and (128,) is the console's memory.
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from coex.core import native
from coex.envs.palette import palette_of
from coex.errors import UsageError

Frame = NDArray[np.uint8]
Views = Mapping[str, Frame]
Shape = tuple[int, ...]
# Of N environments: (N, H, W, 3) RGB of any size, or views of them by name.
Pictures = NDArray[np.uint8] | Mapping[str, NDArray[np.uint8]]

STACK = 4
_MOST_SHRINKING = 6  # MAX_TAPS - 2 of native.c
POLICY_SHAPE: Shape = (84, 84, STACK)
RAM_SHAPE: Shape = (128,)


def check_view(name: str, shape: Shape) -> None:
    """Raises UsageError for a shape that is none of the four kinds."""
    kind = shape[2:] if len(shape) in (2, 3) else None
    if shape != RAM_SHAPE and (kind not in ((), (3,), (STACK,)) or min(shape) < 1):
        raise UsageError(f"view {name!r} has the shape {shape}: it takes (H, W), (H, W, 3), (H, W, 4) or (128,)")


def push_frame(stack: Frame, frame: Frame, fresh: bool) -> None:
    """Moves `stack` (84, 84, 4) on by one frame; an episode begins with black ones before its first."""
    if fresh:
        stack[...] = 0
    words = stack.view("<u4")  # a pixel's four frames, the oldest in the lowest byte
    words >>= 8
    stack[..., -1] = frame


def _resize(frame: Frame, height: int, width: int) -> Frame:
    # Area averaging when shrinking; when enlarging (small Gymnasium frames) it would blur sharp tile edges.
    shrinking = frame.shape[0] >= height and frame.shape[1] >= width
    interpolation = cv2.INTER_AREA if shrinking else cv2.INTER_NEAREST
    return np.asarray(cv2.resize(frame, (width, height), interpolation=interpolation), np.uint8)


def paint_frames(out: Views, grey: Frame, rgb: Frame, fresh: bool) -> None:
    """Fills the views of `out` from one grey frame (H, W) and one RGB frame (H, W, 3)."""
    for view in out.values():
        paint_view(view, grey, rgb, fresh)


def paint_view(view: Frame, grey: Frame, rgb: Frame, fresh: bool) -> None:
    """Fills one view, whichever kind it is; the console's memory is left to who has it."""
    match view.shape:
        case (height, width):
            view[...] = _resize(grey, height, width)
        case (height, width, 3):
            view[...] = _resize(rgb, height, width)
        case (height, width, _):
            push_frame(view, _resize(grey, height, width), fresh)


def paint_pictures(views: Views, pictures: Pictures, fresh: NDArray[np.bool_], envs: Sequence[int]) -> None:
    """Fills the rows `envs` of (N, …) views; raises UsageError where the pictures do not have what they need."""
    rows = slice(None) if len(envs) == len(fresh) else list(envs)
    if isinstance(pictures, Mapping):
        for name, view in views.items():
            shown = np.asarray(pictures.get(name))
            if shown.shape != view.shape or shown.dtype != np.uint8:
                given = f"they have {shown.shape} {shown.dtype}" if name in pictures else "it is not among the frames"
                raise UsageError(f"the bonus looks at {name}, uint8 of the shape {view.shape}: {given}")
            view[rows] = shown[rows]
        return
    try:
        frames = np.asarray(pictures)
    except ValueError:
        raise UsageError(f"frames are ({len(fresh)}, height, width, 3) uint8 RGB, all of one size") from None
    if frames.shape[:1] + frames.shape[3:] != (len(fresh), 3) or not frames.size or frames.dtype != np.uint8:
        raise UsageError(f"frames are ({len(fresh)}, height, width, 3) uint8 RGB, not {frames.shape} {frames.dtype}")
    if any(view.ndim == 2 for view in views.values()):
        raise UsageError("the bonus looks at RAM, which no picture shows: give its views by name")
    for n in envs:
        paint_picture({name: view[n] for name, view in views.items()}, frames[n], fresh=bool(fresh[n]))


def paint_picture(out: Views, rgb: Frame, *, fresh: bool) -> None:
    """Fills the views of `out` from one RGB picture (H, W, 3)."""
    rgb = np.ascontiguousarray(rgb)
    paint_frames(out, _grey_of(rgb), rgb, fresh)


def _grey_of(rgb: Frame) -> Frame:
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), np.uint8)


class ShrunkPictures:
    """What views show of pictures that were seen before: in a small world, shrinking takes most of a step's time.

    A picture's key says all that is on it. Beyond so many bytes, the frames not asked for longest are dropped.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._frames: OrderedDict[Hashable, Frame] = OrderedDict()

    def paint(self, out: Views, rgb: Frame, *, key: Hashable, fresh: bool) -> None:
        """Does what `paint_picture` does, bit by bit."""
        for view in out.values():
            frame = self._shrink(rgb, key, view.shape[0], view.shape[1], is_rgb=view.shape[2:] == (3,))
            if view.shape[2:] == (STACK,):
                push_frame(view, frame, fresh)
            else:
                view[...] = frame

    def _shrink(self, rgb: Frame, key: Hashable, height: int, width: int, *, is_rgb: bool) -> Frame:
        whole = (key, height, width, is_rgb)
        frame = self._frames.get(whole)
        if frame is not None:
            self._frames.move_to_end(whole)
            return frame
        frame = self._frames[whole] = _resize(rgb if is_rgb else _grey_of(rgb), height, width)
        self._bytes += frame.nbytes
        while self._bytes > self._most_bytes:
            self._bytes -= self._frames.popitem(last=False)[1].nbytes
        return frame


class _Target(NamedTuple):
    """Where a view of an Atari screen goes: an address, and what `coex_shrink` needs to know of it."""

    address: int  # of the first pixel written
    height: int
    width: int
    channels: int
    stride: int  # bytes from pixel to pixel
    stack: int  # address of the frame stack it belongs to, or 0


def _target(view: Frame) -> _Target:
    height, width, *depth = view.shape
    address = view.ctypes.data
    if depth == [STACK]:
        return _Target(address + STACK - 1, height, width, 1, STACK, address)
    channels = depth[0] if depth else 1
    return _Target(address, height, width, channels, channels, 0)


def _can_shrink(screen: tuple[int, int], shape: Shape) -> bool:
    """Whether the compiled code makes such a view of a screen: no larger, and at least a sixth as large."""
    return all(small <= large <= small * _MOST_SHRINKING for large, small in zip(screen, shape[:2], strict=True))


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
        self._stacks: list[Frame] = []
        self._enlarged: list[Frame] = []  # those that the compiled code does not serve

    def rgb(self) -> Frame:
        """(H, W, 3) what the agent sees, in full size."""
        return np.maximum(*self._palette.rgb[self.screens])

    def _grey(self) -> Frame:
        return np.maximum(*self._palette.grey[self.screens])

    def forget(self) -> None:
        """Someone else has written into the views: nothing in them can be left as it stands."""
        self._painted = None

    def paint(self, out: Views, fresh: bool) -> None:
        if self._native is None:
            paint_frames(out, self._grey(), self.rgb(), fresh)
            return
        self._native.coex_changed(*self._pairs, *self._size, self._changed_at)
        if out is not self._painted:
            self._painted = out
            pictures = [view for view in out.values() if view.ndim > 1]
            self._enlarged = [view for view in pictures if not _can_shrink(self._size, view.shape)]
            self._stacks = [
                view for view in pictures if view.shape[2:] == (STACK,) and _can_shrink(self._size, view.shape)
            ]
            self._targets = [_target(view) for view in pictures if _can_shrink(self._size, view.shape)]
            self._changed[...] = 1
        if fresh:
            self._changed[...] = 1
            for stack in self._stacks:
                stack[...] = 0
        if self._enlarged:
            grey, rgb = self._grey(), self.rgb()
            for view in self._enlarged:
                paint_view(view, grey, rgb, fresh)
        for channels in {target.channels for target in self._targets}:
            self._native.coex_blend(
                *self._pairs[:2], *self._size, self._changed_at, self._tables_at[channels], channels,
                self._blends_at[channels],
            )  # fmt: skip
        for address, height, width, channels, stride, stack_at in self._targets:
            if stack_at and not fresh:
                self._native.coex_push(stack_at, height * width)
            failed = self._native.coex_shrink(
                self._blends_at[channels], *self._size, channels, self._changed_at, address, height, width, stride
            )
            assert not failed, f"cannot shrink {self._size} to {height}x{width}"
