"""Pictures for a bonus from inside other people's Gymnasium wrappers, which leave a policy small grey ones."""

from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from coex.envs.gym import find_picture
from coex.envs.views import RAM_SHAPE, Frame, Shape, check_view, paint_picture
from coex.errors import UsageError

Env = gymnasium.Env[Any, Any]
KEY = "coex"  # of what is put into `info`


class Tap(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Innermost: keeps what the game shows, and its score since the true reset, before others change them."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._look = find_picture(env)
        self._flickers = hasattr(env.unwrapped, "ale")  # Atari draws some sprites only every other frame
        if self._flickers and getattr(env.unwrapped, "_frameskip", 1) != 1:
            raise UsageError("frames are skipped inside the emulator: make it with frameskip=1, and let a wrapper skip")
        self._last: tuple[Any, Any] = (None, None)  # the last two observations
        self.score = 0.0

    def picture(self) -> Frame:
        """Returns (H, W, 3) what is seen now."""
        before, now = self._last
        return np.maximum(self._look(before), self._look(now)) if self._flickers else self._look(now)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        self._last = (observation, observation)
        self.score = 0.0
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._last = (self._last[1], observation)
        self.score += float(reward)
        return observation, reward, terminated, truncated, info


class Frames(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Outermost: puts the bonus's views and the score into the `info` of every step and reset, as `info["coex"]`."""

    def __init__(self, env: Env, tap: Tap, views: Mapping[str, Shape]) -> None:
        super().__init__(env)
        self._tap = tap
        self._views = {name: np.zeros(shape, np.uint8) for name, shape in views.items()}
        self._reset_info: dict[str, Any] = {}

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        paint_picture(self._views, self._tap.picture(), fresh=True)
        self._reset_info = {**info, KEY: self.coex_now()}
        return observation, self._reset_info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        # Stable-Baselines3's worker processes send the last reset's info with every step: once is enough.
        self._reset_info.pop(KEY, None)
        observation, reward, terminated, truncated, info = self.env.step(action)
        paint_picture(self._views, self._tap.picture(), fresh=False)
        return observation, reward, terminated, truncated, {**info, KEY: self.coex_now()}

    def coex_now(self) -> dict[str, Any]:
        """Returns what the game shows now: `views` by name, and the `score` of this game so far."""
        return {"views": {name: view.copy() for name, view in self._views.items()}, "score": self._tap.score}


def wrap_frames(env: Env, wrapper: Callable[..., Env] | None, views: Mapping[str, Shape], **kwargs: Any) -> Frames:
    """Returns the environment in `wrapper(…, **kwargs)`, with the views that are seen inside it in every `info`."""
    for name, shape in views.items():
        check_view(name, shape)
        if shape == RAM_SHAPE:
            raise UsageError(f"view {name!r} is the console's memory, which no picture shows")
    tap = Tap(env)
    return Frames(wrapper(tap, **kwargs) if wrapper else tap, tap, views)
