"""One Atari game: frame skip, no-ops, sticky actions and a state that can be saved and restored exactly."""

import zlib
from typing import Any, NamedTuple

import ale_py
import numpy as np
from ale_py import Action, ALEInterface, ALEState, roms

from coex.envs.game_config import GameConfig
from coex.envs.views import AtariPainter, Frame, Views
from coex.errors import UsageError

# Four of the cartridges are for two players: the emulator keeps no score of them, and loading one ends the process.
TWO_PLAYER_ROMS = ("combat", "joust", "maze_craze", "warlords")
# By full name, as Gymnasium registers them: MsPacman, UpNDown.
ROMS = {rom.title().replace("_", ""): rom for rom in sorted(roms.get_all_rom_ids()) if rom not in TWO_PLAYER_ROMS}


class SavedGame(NamedTuple):
    """An emulator's state."""

    emulator: ALEState
    episode_frames: int

    def pack(self) -> bytes:
        """Returns it as bytes: one or two kilobytes."""
        return self.episode_frames.to_bytes(4, "little") + zlib.compress(self.emulator.serialize(), 1)

    @classmethod
    def unpack(cls, packed: bytes) -> "SavedGame":
        """Returns what was packed."""
        return cls(ALEState(zlib.decompress(packed[4:])), int.from_bytes(packed[:4], "little"))


class AtariGame:
    """One emulator, its generator and the painter of its screens."""

    def __init__(self, game: str, config: GameConfig, seed: np.random.SeedSequence) -> None:
        if config.levels:
            raise UsageError("env.levels is for gym: environments: leave it at 0 for Atari")
        ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.config = config
        self.generator = np.random.Generator(np.random.PCG64(seed))
        self._ale = ALEInterface()
        self._ale.setInt("random_seed", int(self.generator.integers(2**31 - 1)))
        # ALE's saved states leave out its sticky action, so stickiness is ours (see `_act`).
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.setInt("max_num_frames_per_episode", 0)
        rom = roms.get_rom_path(ROMS[game])
        if rom is None:
            raise UsageError(f"the ROM of {game} is missing from ale-py: reinstall it")
        self._ale.loadROM(rom)
        self._actions = self._ale.getMinimalActionSet()
        self.action_names = [action.name for action in self._actions]
        self._painter = AtariPainter(*self._ale.getScreenDims())
        self._screens = list(self._painter.screens)  # the last but one, and the last
        self._last_action = 0
        self._episode_frames = 0
        self._max_frames = config.first_episode_frames(self.generator)
        self._first_reset: ALEState | None = None

    def reset(self) -> None:
        self._ale.reset_game()
        self._wait(self.config.draw_noops(self.generator))

    def begin(self, start: int) -> None:
        """Begins an episode with that many frames without action, the same whatever was played before.

        A reset alone does not: in 28 games the console's memory begins with what chance left in it.
        """
        self._ale.reset_game()
        if self._first_reset is None:
            self._first_reset = self._ale.cloneSystemState()
        self._ale.restoreSystemState(self._first_reset)
        self._wait(start)

    def _wait(self, start: int) -> None:
        self._last_action = 0
        self._episode_frames = 0
        for _ in range(start):
            self._ale.act(Action.NOOP)
            self._episode_frames += 1
            if self._ale.game_over():
                self._ale.reset_game()
        for screen in self._screens:
            self._ale.getScreen(screen)

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Reward (unclipped), terminated, truncated."""
        reward, last = 0.0, self.config.frame_skip - 1
        for frame in range(self.config.frame_skip):
            reward += self._act(action)  # after the game is over this does nothing, and the screen stays
            if frame == last - 1:
                self._ale.getScreen(self._screens[0])
        self._ale.getScreen(self._screens[1])
        if last == 0:
            self._screens[0][...] = self._screens[1]
        self._episode_frames += self.config.frame_skip
        terminated: bool = self._ale.game_over()
        truncated = not terminated and self._episode_frames > self._max_frames - self.config.frame_skip
        if terminated or truncated:
            self._max_frames = self.config.max_episode_frames
        return reward, terminated, truncated

    def _act(self, action: int) -> int:
        if not self.config.sticky or self.generator.random() >= self.config.sticky:
            self._last_action = action
        reward: int = self._ale.act(self._actions[self._last_action])
        return reward

    def paint(self, out: Views, fresh: bool) -> None:
        self._painter.paint(out, fresh)
        if "ram" in out:
            self._ale.getRAM(out["ram"])

    @property
    def lives(self) -> int:
        """Left, as the emulator knows them; 0 in games that do not count any."""
        lives: int = self._ale.lives()
        return lives

    def rgb(self) -> Frame:
        """(H, W, 3) the current picture in full size; most games have 210 lines of 160 pixels."""
        return self._painter.rgb()

    def state_dict(self) -> dict[str, Any]:
        return {
            "emulator": np.frombuffer(self._ale.cloneSystemState().serialize(), np.uint8).copy(),
            "screens": self._painter.screens.copy(),
            "generator": self.generator.bit_generator.state,
            "last_action": self._last_action,
            "episode_frames": self._episode_frames,
            "max_frames": self._max_frames,
        }

    def load_state_dict(self, state: dict[str, Any]) -> bool:
        """Restores everything; what follows is identical to what followed the save."""
        self._restore(ALEState(state["emulator"].tobytes()), state["episode_frames"])
        self._painter.screens[...] = state["screens"]
        self.generator.bit_generator.state = state["generator"]
        self._last_action = state["last_action"]
        self._max_frames = state["max_frames"]
        return True

    def save(self) -> "SavedGame":
        """Returns what play goes on from with `restore`, without the generator: at a tenth of a state's cost."""
        return SavedGame(self._ale.cloneSystemState(), self._episode_frames)

    def restore(self, saved: "SavedGame") -> None:
        """Goes on from a saved game; its picture can be painted after the next step."""
        self._restore(saved.emulator, saved.episode_frames)
        self._last_action = 0

    def _restore(self, emulator: ALEState, episode_frames: int) -> None:
        # A saved state leaves something out that decides which way Q*bert goes: whether the emulator has acted since
        # its reset. It is brought about beforehand. (A reset takes fifty times as long as an action.)
        if episode_frames:
            self._ale.act(Action.NOOP)
        else:
            self._ale.reset_game()
        self._ale.restoreSystemState(emulator)
        self._episode_frames = episode_frames
        self._painter.forget()

    def close(self) -> None:
        pass  # the emulator goes with the object
