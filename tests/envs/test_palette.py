"""The colour table against the emulator's own colours."""

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
    for _ in range(20):
        for _ in range(20):
            ale.act(actions[generator.integers(len(actions))])
            if ale.game_over():
                ale.reset_game()
        screen = ale.getScreen()
        np.testing.assert_array_equal(palette.RGB[screen], ale.getScreenRGB())
        np.testing.assert_array_equal(palette.GREY[screen], ale.getScreenGrayscale())
