"""Our environments behind Gymnasium's vector interface, for any trainer: fast, and they can be saved."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from coex.core.numbers import column, whole
from coex.envs.game import is_atari, resolve_game
from coex.envs.game_config import GameConfig
from coex.envs.vector import VectorEnv
from coex.envs.views import POLICY_SHAPE, STACK, Shape
from coex.envs.worker import STAY
from coex.errors import UsageError

_POLICY = "policy"
Observations = NDArray[np.uint8]


def make_vec(
    game: str,
    num_envs: int = 1,
    *,
    config: GameConfig | None = None,
    views: Mapping[str, Shape] | None = None,
    autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
    num_workers: int = -1,
    seed: int = 0,
) -> "GymnasiumVectorEnv":
    """Returns environments of a game as `coex train` takes it, such as `MontezumaRevenge` or `gym:MiniGrid-…`.

    An observation is the last four frames, grey, (4, 84, 84). `views` asks for more pictures, such as an explorer's:
    they are then in `views` and `final_views`. Raises UsageError for a game that is not known.
    """
    game = resolve_game(str(game))
    if not isinstance(config, GameConfig | None):
        raise UsageError(f"config takes a GameConfig, not {config!r}")
    config = config or (GameConfig() if is_atari(game) else GameConfig(frame_skip=1, max_noops=0))
    return GymnasiumVectorEnv(game, num_envs, config, dict(views or {}), autoreset_mode, num_workers, seed)


class GymnasiumVectorEnv(gymnasium.vector.VectorEnv[Observations, NDArray[np.int64], np.ndarray]):
    """`num_envs` environments of one game, in worker processes, whose whole state can be saved and restored."""

    def __init__(
        self,
        game: str,
        num_envs: int,
        config: GameConfig,
        views: dict[str, Shape],
        autoreset_mode: AutoresetMode,
        num_workers: int,
        seed: int,
    ) -> None:
        if autoreset_mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise UsageError("autoreset_mode takes NEXT_STEP or SAME_STEP: episodes always follow each other")
        if _POLICY in views:
            raise UsageError(f"the view {_POLICY!r} is what observations are: name yours otherwise")
        num_envs = whole("num_envs", num_envs, least=1)
        self._env = VectorEnv(
            game,
            config,
            num_envs=num_envs,
            num_workers=whole("num_workers", num_workers, least=-1),
            views={_POLICY: POLICY_SHAPE, **views},
            seed=np.random.SeedSequence(whole("seed", seed, least=0)),
        )
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": autoreset_mode}
        # Of a state, what it takes to go on from it.
        shapes = {name: list(view.shape[1:]) for name, view in self._env.views.items()}
        self._kind = {"game": game, "num_envs": num_envs, "autoreset_mode": autoreset_mode.value, "views": shapes}
        self.action_names = self._env.action_names
        height, width, _ = POLICY_SHAPE
        self.single_observation_space = spaces.Box(0, 255, (STACK, height, width), np.uint8)
        self.single_action_space = spaces.Discrete(self._env.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        # Beside the policy's, (N, …). Where the last step ended an episode, `views` has the next one's first picture,
        # in both modes, and `final_views` the last one.
        self.views = {name: view for name, view in self._env.views.items() if name != _POLICY}
        self.final_views = {name: view for name, view in self._env.final_views.items() if name != _POLICY}
        self._begun = False
        self._over = np.zeros(num_envs, bool)  # ended, and the next step shows the next episode's beginning
        self._observations = np.zeros(self.observation_space.shape or (), np.uint8)

    @property
    def observations(self) -> Observations:
        """(N, 4, 84, 84) what the last `reset`, `step` or `load_state_dict` led to."""
        return self._observations.copy()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begins new episodes. A seed makes them those of that seed: n, n + 1, … for the environments, or a list."""
        self._check(begun=True)
        if options and "reset_mask" in options:
            raise UsageError("reset_mask is for AutoresetMode.DISABLED: all environments are reset together")
        if seed is not None:
            given: Any = seed
            if not isinstance(given, Sequence | np.ndarray):
                given = [whole("seed", given, least=0) + n for n in range(self.num_envs)]
            seeds = list(given)
            if len(seeds) != self.num_envs:
                raise UsageError(f"seed takes a number, or one for each of the {self.num_envs} environments")
            numbers = [None if one is None else whole("seed", one, least=0) for one in seeds]
            self._env.reseed([None if one is None else np.random.SeedSequence(one) for one in numbers])
        self._env.reset()
        self._begun = True
        self._over[...] = False
        self._observations = _channels_first(self._env.views[_POLICY])
        return self.observations, {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Takes one step everywhere: observations, rewards (unclipped), terminations, truncations, infos."""
        self._check(self._begun)
        actions = column("actions", actions, self.num_envs, np.int64)
        if not self.action_space.contains(actions):
            raise UsageError(f"actions are whole numbers from 0 to {self._env.num_actions - 1}")
        answers = self._env.step(np.where(self._over, STAY, actions))
        rewards, terminated, truncated = (answer.copy() for answer in answers)
        ended = terminated | truncated
        infos: dict[str, Any] = {}
        self._observations = _channels_first(self._env.views[_POLICY])
        if ended.any():
            last = _channels_first(self._env.final_views[_POLICY])
            if self.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP:
                for n in np.flatnonzero(ended).tolist():
                    infos = self._add_info(infos, {"final_obs": last[n], "final_info": {}}, n)
            else:
                self._observations[ended] = last[ended]
        if self.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP:
            self._over = ended
        return self.observations, rewards, terminated, truncated, infos

    def state_dict(self) -> dict[str, Any]:
        """Returns everything: nested dictionaries and lists of arrays, numbers and text."""
        self._check(self._begun)
        return {
            **self._env.state_dict(),
            "over": self._over.copy(),
            "observations": self.observations,
            "of": self._kind,
        }

    def load_state_dict(self, state: dict[str, Any]) -> list[bool]:
        """Goes on from `state`; `observations` shows it. Returns which environments do so exactly: of Atari, all.

        A Gymnasium environment is played again from its episode's seed; where that leads elsewhere, a new episode
        begins. Raises UsageError for a state of another game, number of environments, autoreset mode or views.
        """
        self._check(begun=True)
        if not {"of", "envs", "views", "over", "observations"} <= set(state or ()):
            raise UsageError("this is not the state of such environments: state_dict() returns one")
        for name, ours in self._kind.items():
            if (theirs := state["of"].get(name)) != ours:
                raise UsageError(f"the state is of other environments: {name} is {theirs} there, and {ours} here")
        exact = self._env.load_state_dict(state)
        self._over = state["over"].copy()
        self._observations = state["observations"].copy()
        self._begun = True
        for n in np.flatnonzero(~np.array(exact)):
            self._over[n] = False
            self._observations[n] = _channels_first(self._env.views[_POLICY][n : n + 1])[0]
        return exact

    def _check(self, begun: bool) -> None:
        if self.closed:
            raise UsageError("the environments are closed: make_vec() makes others")
        if not begun:
            raise UsageError("reset(), or load_state_dict(), comes first")

    def close_extras(self, **kwargs: Any) -> None:
        self._env.close()


def _channels_first(stacks: NDArray[np.uint8]) -> Observations:
    return np.ascontiguousarray(np.moveaxis(stacks, -1, 1))
