"""The colour tables against the emulator's own colours."""

import numpy as np
import pytest
from ale_py import ALEInterface, LoggerMode, roms

from coex.envs import ROMS, palette


@pytest.mark.parametrize("game", ROMS)
def test_the_table_gives_the_emulators_colours(game: str) -> None:
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.loadROM(roms.get_rom_path(ROMS[game]))
    actions = ale.getMinimalActionSet()
    generator = np.random.default_rng(0)
    colours = palette.palette_of(ale.getScreenDims()[0])
    for _ in range(10):
        for _ in range(20):
            ale.act(actions[generator.integers(len(actions))])
            if ale.game_over():
                ale.reset_game()
        screen = ale.getScreen()
        np.testing.assert_array_equal(colours.rgb[screen], ale.getScreenRGB())
        coloured = screen % 2 == 0  # of others the emulator takes the next colour's blue
        np.testing.assert_array_equal(colours.grey[screen][coloured], ale.getScreenGrayscale()[coloured])


def test_screens_without_colour_are_as_grey_as_the_grey_view() -> None:
    for colours in (palette.NTSC, palette.PAL):
        np.testing.assert_array_equal(colours.rgb[1::2], colours.grey[1::2, None].repeat(3, axis=1))
