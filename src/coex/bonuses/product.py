"""CoEX's counts over the whole run, with a factor for what is new in the episode (global × episodic)."""

from typing import Any

import torch
from torch import Tensor

from coex.bonuses import BonusContext, Metrics, Rewarded
from coex.bonuses.e3b import E3BBonus
from coex.bonuses.parts import EpisodeMemory
from coex.config.field import CoexE3BConfig, CoexNovelDConfig
from coex.method.bonus import CoexBonus
from coex.rollouts.rollout import Transitions


class CoexE3BBonus(CoexBonus):
    """1/√N(ψ) · φᵀC⁻¹φ (after Henaff et al. 2023)."""

    skips_invalid = False

    def __init__(self, config: CoexE3BConfig, context: BonusContext) -> None:
        coex_seed, e3b_seed = context.seed.spawn(2)
        super().__init__(config, context._replace(seed=coex_seed))
        self.e3b = E3BBonus(config.e3b, context._replace(seed=e3b_seed))

    def reward(self, rollout: Transitions) -> Rewarded:
        counted, episodic = super().reward(rollout), self.e3b.reward(rollout)
        return counted._replace(bonus=counted.bonus * episodic.bonus, memo=(counted.memo, episodic.memo))

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        counted, episodic = rewarded.memo
        metrics = super().update(rollout, rewarded._replace(memo=counted))
        return metrics | self.e3b.update(rollout, rewarded._replace(memo=episodic))

    def forget_episodes(self) -> None:
        super().forget_episodes()
        self.e3b.forget_episodes()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "e3b": self.e3b.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.e3b.load_state_dict(state["e3b"])


class CoexNovelDBonus(CoexBonus):
    """max(1/√N(ψ') − α/√N(ψ), 0) where ψ' is first met in its episode: NovelD (Zhang et al. 2021) by CoEX's counts.

    Each N is of the step that led to the state. None led to an episode's first one: nothing is taken off there.
    """

    skips_invalid = False

    def __init__(self, config: CoexNovelDConfig, context: BonusContext) -> None:
        super().__init__(config, context)
        self._alpha = config.alpha
        self._met = EpisodeMemory()
        self._left: Tensor | None = None  # (N,) 1/√N of the states that the next steps leave

    def reward(self, rollout: Transitions) -> Rewarded:
        counted = super().reward(rollout)
        parts = [torch.from_numpy(counted.states[letter]) for letter in self.config.state]
        keys = [key.tobytes() for key in torch.stack(parts, -1).flatten(0, 1).numpy()]
        left = counted.bonus.new_zeros(1, counted.bonus.shape[1]) if self._left is None else self._left[None]
        left = torch.cat([left, counted.bonus])  # (T + 1, N)
        left[rollout.final_index[:, 0] + 1, rollout.final_index[:, 1]] = 0.0
        self._left = left[-1]
        rises = (counted.bonus - self._alpha * left[:-1]).clamp(min=0.0)
        return counted._replace(bonus=rises * torch.from_numpy(self._met.first_visits(keys, rollout)))

    def forget_episodes(self) -> None:
        super().forget_episodes()
        self._met.forget()
        self._left = None

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "met": self._met.state_dict(), "left": self._left}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._met.load_state_dict(state["met"])
        self._left = state["left"]
