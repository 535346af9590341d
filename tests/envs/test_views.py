"""Views against OpenCV and against an exact computation."""

import shutil

import cv2
import numpy as np
import pytest

from coex.core import native
from coex.envs.palette import palette_of
from coex.envs.views import AtariPainter, push_frame
from tests.conftest import VIEW_SHAPES

SCREEN = (210, 160)
HEIGHTS = (210, 214, 220, 230, 250)  # of all games; with 250 lines, another palette


def exact_area_mean(frame: np.ndarray, size: int) -> np.ndarray:
    """Area averaging in whole numbers: enlarge by `size`, then average blocks of the frame's own size."""
    height, width = frame.shape
    rows = frame.astype(np.int64).repeat(size, axis=0).reshape(size, height, width).sum(axis=1)
    sums = rows.repeat(size, axis=1).reshape(size, size, width).sum(axis=2)
    return (2 * sums + height * width) // (2 * height * width)  # to the nearest, halves up


def empty_views(*names: str) -> dict[str, np.ndarray]:
    return {name: np.zeros(VIEW_SHAPES[name], np.uint8) for name in names}


def painter_of(height: int) -> AtariPainter:
    painter = AtariPainter(height, SCREEN[1])
    painter.screens[...] = np.random.default_rng(0).integers(0, 128, painter.screens.shape) * 2
    return painter


@pytest.fixture
def painter() -> AtariPainter:
    return painter_of(SCREEN[0])


def grey_of(painter: AtariPainter) -> np.ndarray:
    grey = palette_of(painter.screens.shape[1]).grey[painter.screens]
    return np.asarray(grey.max(axis=0))


def test_a_compiler_is_used_where_there_is_one() -> None:
    assert (native.load() is not None) == any(map(shutil.which, ("cc", "gcc", "clang")))


@pytest.mark.parametrize("height", HEIGHTS)
def test_grey_views_are_exact_area_means(height: int) -> None:
    painter, views = painter_of(height), empty_views("policy", "grey52")
    painter.paint(views, fresh=True)
    grey = grey_of(painter)
    # Halves may fall either way in single precision: everything else is exact.
    assert np.abs(views["policy"][..., -1] - exact_area_mean(grey, 84)).max() <= 1
    assert (views["policy"][..., -1] != exact_area_mean(grey, 84)).mean() < 0.01
    assert (views["grey52"] != exact_area_mean(grey, 52)).mean() < 0.01


@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("compiled", [True, False])
def test_every_view_agrees_with_opencv(height: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    painter = painter_of(height)
    if not compiled:
        monkeypatch.setattr(painter, "_native", None)
    views = empty_views("policy", "grey52", "rgb160", "rgb84")
    painter.paint(views, fresh=True)
    grey = grey_of(painter)
    pictures = {"policy": grey, "grey52": grey, "rgb160": painter.rgb(), "rgb84": painter.rgb()}
    for name, picture in pictures.items():
        size = VIEW_SHAPES[name][0]
        expected = cv2.resize(picture, (size, size), interpolation=cv2.INTER_AREA)
        actual = views[name][..., -1] if name == "policy" else views[name]
        assert np.abs(actual.astype(int) - expected).max() <= 1, name


def test_unchanged_rows_are_left_and_changed_ones_are_not(painter: AtariPainter) -> None:
    names = ("policy", "grey52", "rgb160", "rgb84")
    kept, generator = empty_views(*names), np.random.default_rng(1)
    painter.paint(kept, fresh=True)
    for _ in range(20):
        row = generator.integers(SCREEN[0] - 10)
        painter.screens[generator.integers(2), row : row + generator.integers(1, 10)] = generator.integers(256)
        painter.paint(kept, fresh=False)
        anew, other = empty_views(*names), AtariPainter(*SCREEN)
        other.screens[...] = painter.screens
        other.paint(anew, fresh=True)
        np.testing.assert_array_equal(kept["policy"][..., -1], anew["policy"][..., -1])
        for name in names[1:]:
            np.testing.assert_array_equal(kept[name], anew[name])


def test_the_stack_moves_on_the_same_compiled_or_not(painter: AtariPainter, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = AtariPainter(*SCREEN)
    monkeypatch.setattr(plain, "_native", None)
    ours, theirs = empty_views("policy"), empty_views("policy")
    generator = np.random.default_rng(2)
    for step in range(7):
        painter.screens[...] = plain.screens[...] = generator.integers(256)  # flat, so that rounding is the same
        painter.paint(ours, fresh=step in (0, 5))
        plain.paint(theirs, fresh=step in (0, 5))
        np.testing.assert_array_equal(ours["policy"], theirs["policy"])
    assert (ours["policy"][..., :2] == 0).all()  # two frames since the episode began
    assert ours["policy"][0, 0, 2:].tolist() != [0, 0]


def test_push_frame_keeps_the_newest_last() -> None:
    stack = np.zeros((84, 84, 4), np.uint8)
    for value in (1, 2, 3, 4, 5):
        push_frame(stack, np.full((84, 84), value, np.uint8), fresh=False)
    assert stack[0, 0].tolist() == [2, 3, 4, 5]
    push_frame(stack, np.full((84, 84), 6, np.uint8), fresh=True)
    assert stack[0, 0].tolist() == [0, 0, 0, 6]


def test_without_a_compiler_it_says_so_and_works(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    native.load.cache_clear()
    try:
        with pytest.warns(UserWarning, match="no compiled code"):
            painter = AtariPainter(*SCREEN)
        views = empty_views("policy", "rgb160")
        painter.paint(views, fresh=True)
    finally:
        native.load.cache_clear()
