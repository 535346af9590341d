"""Any registered Gymnasium environment with discrete actions and an RGB picture."""

import difflib
import importlib
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from coex.envs.game_config import GameConfig
from coex.envs.minigrid_picture import MiniGridPicture
from coex.envs.views import Frame, Views, paint_picture
from coex.errors import UsageError

# Packages that register their environments only when imported ("package:ID" names any other).
_PACKAGES = {"MiniGrid": "minigrid", "BabyAI": "minigrid", "ALE": "ale_py"}
_SMALLEST_IMAGE = 32


class GymGame:
    """One Gymnasium environment: a frame is one of its steps, and its own time limit holds as well as ours."""

    def __init__(self, env_id: str, config: GameConfig, seed: np.random.SeedSequence) -> None:
        if config.frame_skip != 1 or config.max_noops:
            raise UsageError(
                "env.frame_skip and env.max_noops are for Atari: leave them at 1 and 0 for gym: environments"
            )
        self.config = config
        self.generator = np.random.Generator(np.random.PCG64(seed))
        self._env, self._look = _make(env_id)
        actions = self._env.action_space
        if not isinstance(actions, spaces.Discrete):
            self._env.close()
            raise UsageError(f"gym:{env_id} has {actions} for actions: only discrete ones can be learned")
        self._first_action = int(actions.start)
        self.action_names = _action_names(self._env, int(actions.n))
        self._last_action = 0
        self._episode_frames = 0
        self._max_frames = self.config.first_episode_frames(self.generator)
        self._picture: Frame = np.zeros((1, 1, 3), np.uint8)
        self._seed = 0  # of the episode
        self._played: list[int] = []  # its actions so far

    def reset(self) -> None:
        # A seed an episode, from our own generator: a resumed run meets the same episodes.
        self.begin(self.config.draw_level(self.generator))

    def begin(self, start: int) -> None:
        """Begins the episode of that seed."""
        self._last_action = 0
        self._episode_frames = 0
        self._seed, self._played = start, []
        observation, _ = self._env.reset(seed=start)
        self._picture = self._look(observation)

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Reward (unclipped), terminated, truncated."""
        if not self.config.sticky or self.generator.random() >= self.config.sticky:
            self._last_action = action
        reward, terminated, truncated = self._act(self._last_action)
        self._episode_frames += 1
        cut_off = truncated or self._episode_frames >= self._max_frames
        if terminated or cut_off:
            self._max_frames = self.config.max_episode_frames
        return reward, terminated, cut_off and not terminated

    def _act(self, action: int) -> tuple[float, bool, bool]:
        observation, reward, terminated, truncated, _ = self._env.step(self._first_action + action)
        self._picture = self._look(observation)
        self._played.append(action)
        return float(reward), bool(terminated), bool(truncated)

    def paint(self, out: Views, fresh: bool) -> None:
        if isinstance(self._look, MiniGridPicture):
            self._look.paint(out, fresh=fresh)
        else:
            paint_picture(out, self._picture, fresh=fresh)

    @property
    def lives(self) -> int:
        """None are counted."""
        return 0

    def rgb(self) -> Frame:
        """(H, W, 3) the current picture in full size."""
        return self._picture.copy()

    def state_dict(self) -> dict[str, Any]:
        return {
            "generator": self.generator.bit_generator.state,
            "seed": self._seed,
            "played": np.array(self._played, np.int64),
            "last_action": self._last_action,
            "episode_frames": self._episode_frames,
            "max_frames": self._max_frames,
            "picture": zlib.crc32(self._picture.tobytes()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> bool:
        """Plays the episode again from its seed, as Gymnasium has no way to save an environment.

        Returns whether that ends with the picture that was saved. Otherwise the environment is not deterministic, and
        a new episode begins.
        """
        if self._replay(state["seed"], state["played"].tolist(), state["picture"]):
            self.generator.bit_generator.state = state["generator"]
            self._last_action, self._episode_frames = state["last_action"], state["episode_frames"]
            self._max_frames = state["max_frames"]
            return True
        self.generator.bit_generator.state = state["generator"]
        self._max_frames = self.config.first_episode_frames(self.generator)
        self.reset()
        return False

    def _replay(self, seed: int, actions: Sequence[int], picture: int) -> bool:
        self.begin(seed)
        for action in actions:
            _, terminated, truncated = self._act(action)
            if terminated or truncated:
                return False  # it went on when it was played
        return zlib.crc32(self._picture.tobytes()) == picture

    def close(self) -> None:
        self._env.close()


def _make(env_id: str) -> tuple[gymnasium.Env[Any, Any], Callable[[Any], Frame]]:
    """The environment, and the function that turns its observation into a picture."""
    module, _, name = env_id.rpartition(":")
    package = module or _PACKAGES.get(name.partition("-")[0].partition("/")[0])
    try:
        if package:
            importlib.import_module(package)
        spec = gymnasium.spec(name)
        can_render = "rgb_array" in getattr(_entry_point(spec), "metadata", {}).get("render_modes", [])
        mode: dict[str, Any] = (
            {"render_mode": "rgb_array"} if can_render else {}
        )  # a world that only shows pictures need not take it
        env = gymnasium.make(name, disable_env_checker=True, **mode)
    except (gymnasium.error.Error, ImportError, ValueError) as error:
        raise UsageError(_unknown(env_id, error)) from error
    if package == "minigrid":
        # Nobody looks at MiniGrid's own observation, which takes as long as a step of the game.
        vars(env.unwrapped)["gen_obs"] = lambda: None
    try:
        return env, find_picture(env)
    except UsageError as error:
        env.close()
        raise UsageError(f"gym:{env_id} {error}") from None


def find_picture(env: gymnasium.Env[Any, Any]) -> Callable[[Any], Frame]:
    """Returns the function that turns an environment's observation into an RGB picture of what is seen now.

    Raises UsageError if there is none.
    """
    if type(env.unwrapped).__module__.partition(".")[0] == "minigrid":
        return MiniGridPicture(env.unwrapped)
    if _is_picture(env.observation_space):
        return _as_picture
    if env.render_mode == "rgb_array":
        return lambda _: _as_picture(env.render())
    raise UsageError('has no RGB picture: neither its observation nor render_mode="rgb_array" gives one')


def _as_picture(shown: Any) -> Frame:
    picture = np.ascontiguousarray(shown)
    if picture.dtype != np.uint8 or picture.shape[2:] != (3,) or not picture.size:
        raise UsageError(
            f"the environment shows {picture.shape} {picture.dtype} for a picture: it must be (H, W, 3) uint8"
        )
    return picture


def _is_picture(space: spaces.Space[Any]) -> bool:
    """Whether an observation is an RGB image; tiny ones (MiniGrid's (7, 7, 3)) encode objects, not colours."""
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or space.shape[2:] != (3,):
        return False
    return min(space.shape[:2]) >= _SMALLEST_IMAGE


def _entry_point(spec: Any) -> Any:
    point = spec.entry_point
    return gymnasium.envs.registration.load_env_creator(point) if isinstance(point, str) else point


def _unknown(env_id: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        if error.name == env_id.partition(":")[0]:
            return f"gym:{env_id}: there is no module {error.name} here: put its directory on PYTHONPATH, or install it"
        return f"gym:{env_id} needs the package {error.name}: pip install {error.name}"
    if isinstance(error, gymnasium.error.UnregisteredEnv | gymnasium.error.NameNotFound):
        close = difflib.get_close_matches(env_id, gymnasium.registry, n=3, cutoff=0.5)
        hint = f"; did you mean {', '.join('gym:' + name for name in close)}?" if close else ""
        return f"gym:{env_id} is not a registered Gymnasium environment{hint or ' (is its package installed?)'}"
    return f"gym:{env_id} cannot be made: {' '.join(str(error).split())}"


def _action_names(env: gymnasium.Env[Any, Any], count: int) -> list[str]:
    actions = getattr(env.unwrapped, "actions", None)  # MiniGrid's enumeration
    try:
        names = [str(action.name).upper() for action in actions] if actions is not None else []
    except (AttributeError, TypeError):
        names = []
    return names if len(names) == count else [str(action) for action in range(count)]
