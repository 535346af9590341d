"""The bonus in Stable-Baselines3's learners: PPO and A2C, and sb3-contrib's RecurrentPPO and MaskablePPO.

It needs the extra: pip install 'coex-rl[sb3]'.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

try:
    from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import unwrap_vec_normalize
except ModuleNotFoundError as error:
    raise ImportError("coex.sb3 needs Stable-Baselines3: pip install 'coex-rl[sb3]'") from error

from coex.config.presets import bonus_config
from coex.envs.frames import KEY, Env, Frames, wrap_frames
from coex.errors import UsageError
from coex.training.explorer import Explorer

__all__ = ["CoexCallback", "CoexCheckpointCallback", "with_frames"]

_HOOKED = "compute_returns_and_advantage"


def with_frames(
    wrapper_class: Callable[..., Env] | None = None, *, bonus: str = "coex", config: Any = None
) -> Callable[..., Env]:
    """Returns a `wrapper_class` for `make_vec_env`: yours, with the pictures that the bonus needs taken from inside it.

    `bonus` and `config` are those of `CoexCallback`: they say which pictures.
    """
    find = getattr(bonus_config(bonus, "", config), "views", None)
    views = dict(find("")) if find else {}

    def wrap(env: Env, **kwargs: Any) -> Env:
        return wrap_frames(env, wrapper_class, views, **kwargs)

    return wrap


class CoexCallback(BaseCallback):
    """Adds the bonus to every rollout's rewards before returns are computed from them, and fits its networks.

    The weight is in units of the largest reward that the learner has seen (1 until it has seen one), or of what
    `VecNormalize` makes of rewards: it does not depend on the game's scale.
    """

    explorer: Explorer

    def __init__(
        self,
        bonus: str = "coex",
        config: Any = None,
        *,
        bonus_weight: float = 0.1,
        wait: bool = True,
        seed: int = 0,
        device: str = "cpu",
        explorer: Explorer | None = None,
        verbose: int = 0,
    ) -> None:
        """Takes what `Explorer` takes, or an explorer that was loaded.

        With `wait`, nothing is added until the bonus can be trusted: the attentive dynamics model has found the player,
        or has looked for `config.adm.found_by` steps. Until then all advantages are 0, as in `coex train`: the policy
        stays as random as it is, and values learn.
        """
        super().__init__(verbose)
        if not bonus_weight >= 0:  # nor NaN
            raise UsageError(f"bonus_weight must not be negative, not {bonus_weight}")
        self.bonus_weight = bonus_weight
        self._wait = wait
        self._make = functools.partial(Explorer, bonus=bonus, config=config, seed=seed, device=device)
        self._rewards: list[np.ndarray] = []  # of the rollout, as the learner sees them
        if explorer is not None:
            self.explorer = explorer

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu", **kwargs: Any) -> "CoexCallback":
        """Returns a callback that goes on with the explorer that `save` wrote."""
        return cls(explorer=Explorer.load(path, device), **kwargs)

    def save(self, path: str | Path) -> None:
        """Writes the explorer: see `Explorer.save`."""
        if not hasattr(self, "explorer"):
            raise UsageError("there is no explorer yet: learn() makes it, with CoexCallback among its callbacks")
        self.explorer.save(path)

    def _init_callback(self) -> None:
        model, env = self.model, self.training_env
        if not isinstance(model, OnPolicyAlgorithm):
            raise UsageError(f"{type(model).__name__} has no rollouts: take PPO, A2C, RecurrentPPO or MaskablePPO")
        if not isinstance(model.action_space, spaces.Discrete):
            raise UsageError(f"the actions are {model.action_space}: only discrete ones can be located by")
        if not all(env.env_is_wrapped(Frames)):
            raise UsageError("the environments show no pictures: make_vec_env(…, wrapper_class=with_frames(…))")
        actions = int(model.action_space.n)
        if not hasattr(self, "explorer"):
            self.explorer = self._make(actions, env.num_envs)
        if (self.explorer.num_actions, self.explorer.num_envs) != (actions, env.num_envs):
            raise UsageError(
                f"the explorer is for {self.explorer.num_envs} environments of {self.explorer.num_actions} actions, "
                f"not {env.num_envs} of {actions}"
            )
        # On the instance: a learner computes returns once, with the right last values, from what is in the buffer then.
        self._restore_buffer()
        compute = getattr(model.rollout_buffer, _HOOKED)

        def compute_with_bonus(last_values: torch.Tensor, dones: np.ndarray) -> None:
            is_held = self._add_bonus()
            compute(last_values=last_values, dones=dones)
            if is_held:
                model.rollout_buffer.advantages[...] = 0.0

        vars(model.rollout_buffer)[_HOOKED] = compute_with_bonus

    def _on_training_start(self) -> None:
        now = self.training_env.env_method("coex_now")
        self.explorer.begin(_stack([shown["views"] for shown in now]))
        self._rewards = []

    def _on_step(self) -> bool:
        shown = [info[KEY] for info in self.locals["infos"]]
        ended = np.asarray(self.locals["dones"])
        first = None
        if ended.any():
            resets = self.training_env.unwrapped.reset_infos  # of a wrapped one they are always empty
            first = _stack([(resets[n] if ended[n] else {KEY: shown[n]})[KEY]["views"] for n in range(len(shown))])
        self.explorer.add(
            np.asarray(self.locals["actions"]).reshape(-1),
            _stack([part["views"] for part in shown]),
            ended,
            scores=[part["score"] for part in shown],
            first_frames=first,
            log_probs=self.locals["log_probs"].cpu().numpy().reshape(-1),
        )
        self._rewards.append(np.copy(self.locals["rewards"]))  # a time limit's value is added to them later
        return True

    def _add_bonus(self) -> bool:
        """Returns whether the policy is held, because the bonus cannot be trusted yet."""
        if not self._rewards:  # the learner goes on without us
            return False
        bonus = self.explorer.bonus()
        scaled = unwrap_vec_normalize(self.training_env)
        unit = 1.0 if scaled and scaled.norm_reward else self.explorer.reward_unit(self._rewards)
        is_added = self.explorer.ready or not self._wait
        if is_added:
            assert isinstance(self.model, OnPolicyAlgorithm)
            self.model.rollout_buffer.rewards += self.bonus_weight * unit * bonus
        self.logger.record("coex/bonus_is_added", float(is_added))
        self.logger.record("coex/reward_unit", unit)
        return not is_added

    def _on_rollout_end(self) -> None:
        for name, value in self.explorer.update().items():
            self.logger.record(f"coex/{name}", value)
        self._rewards = []

    def _on_training_end(self) -> None:
        self._restore_buffer()

    def _restore_buffer(self) -> None:
        assert isinstance(self.model, OnPolicyAlgorithm)
        vars(self.model.rollout_buffer).pop(_HOOKED, None)


class CoexCheckpointCallback(CheckpointCallback):
    """Saves the explorer whenever it saves the model: beside NAME_STEPS_steps.zip, as NAME_coex_STEPS_steps/."""

    def __init__(self, coex: CoexCallback, save_freq: int, save_path: str, **kwargs: Any) -> None:
        """Takes the callback whose explorer is saved, and what `CheckpointCallback` takes."""
        super().__init__(save_freq, save_path, **kwargs)
        self._coex = coex

    def _on_step(self) -> bool:
        goes_on = super()._on_step()
        if self.n_calls % self.save_freq == 0:
            self._coex.save(self._checkpoint_path("coex_", "").removesuffix("."))
        return goes_on


def _stack(views: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.stack([view[name] for view in views]) for name in views[0]}
