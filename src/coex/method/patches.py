"""Equal patches of frames, found once, so that what depends on a patch alone is computed once.

Most of a screen is the same at the next step, in the next environment and a little further along the same wall: in
random play of the paper's games 2 to 12 % of a rollout's patches are distinct.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from coex.core import native

SIZE, STRIDE = 16, 8  # pixels
_STRIP = 32  # patches side by side
_WORTHWHILE = 0.2  # patches overlap: with more of them distinct, whole frames are less work


class Patches(NamedTuple):
    """The distinct 16×16 patches, 8 pixels apart, of B square frames, in strips of 32."""

    strips: Tensor  # (S, 16, 16·32, 3) uint8, the last one filled up with black
    shown: Tensor  # (B, P, P) int32, which of them each place of each frame shows


def distinct_patches(frames: Tensor) -> Patches | None:
    """Of (B, H, H, 3) uint8 frames; None where whole frames are as good, or there is no compiled code."""
    functions = native.load() if frames.device.type == "cpu" else None
    if functions is None or not len(frames):
        return None
    frames = frames.contiguous()
    count, side = frames.shape[:2]
    places = side // STRIDE - 1
    shown = torch.empty(count, places, places, dtype=torch.int32)
    first = torch.empty(int(_WORTHWHILE * shown.numel()), dtype=torch.int32)
    found = functions.coex_distinct(frames.data_ptr(), count, side, len(first), shown.data_ptr(), first.data_ptr())
    if found < 0:
        return None
    line = 3 * side  # bytes
    windows = frames.as_strided(
        (count, places, places, SIZE, 3 * SIZE), (side * line, STRIDE * line, 3 * STRIDE, line, 1)
    )
    frame, place = first[:found].div(places**2, rounding_mode="floor"), first[:found] % places**2
    strips = frames.new_zeros(-(-found // _STRIP) * _STRIP, SIZE, 3 * SIZE)
    strips[:found] = windows[frame, place // places, place % places]
    strips = strips.unflatten(0, (-1, _STRIP)).transpose(1, 2)  # (S, 16, 32, 48)
    return Patches(strips.reshape(-1, SIZE, SIZE * _STRIP, 3), shown)
